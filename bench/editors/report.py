"""Reports the results about editors, as tables for people and as JSON for machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.editors.measure import EditorsMeasured
from bench.editors.overhead import Pairs, Part, at
from bench.editors.starts import ratios
from bench.editors.streams import StreamedAnswer, Streams
from bench.editors.ways import Way
from bench.editors.wear import Wear


def table(measured: EditorsMeasured) -> str:
    return "\n\n".join(
        [
            _aligned([("turn", "way", "first p50", "p95", "whole p50", "p95"), *_turn_rows(measured)]),
            _aligned([("long answer", "updates/s", "spread", "CPU/update"), *_stream_rows(measured.streams)]),
            _starts(measured),
            _wear(measured.wear),
        ]
    )


def _turn_rows(measured: EditorsMeasured) -> list[tuple[str, ...]]:
    return [row for kind, pairs in measured.turns.items() for row in _rows_of(kind, pairs)]


def _rows_of(kind: str, pairs: Pairs) -> list[tuple[str, ...]]:
    """Each way over all rounds, and the differences pair by pair."""
    ways = {way.value: {part: pairs.ms(way, part) for part in Part} for way in (Way.DIRECT, Way.EDITOR)}
    found = {**ways, "pair by pair": {part: pairs.each_ms(part) for part in Part}}
    return [(kind, name, *_percentiles(ms)) for name, ms in found.items()]


def _percentiles(ms: Mapping[Part, Sequence[float]]) -> list[str]:
    return [f"{at(ms[part], share):.1f} ms" for part in Part for share in (50, 95)]


def _stream_rows(streams: Streams) -> list[tuple[str, ...]]:
    return [_stream_row(way, told) for way, told in streams.told.items()]


def _stream_row(way: Way, told: Sequence[StreamedAnswer]) -> tuple[str, ...]:
    rates, us = [one.per_second for one in told], [one.cpu_us for one in told]
    return (way, f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}", f"{median(us):.0f} µs")


def _starts(measured: EditorsMeasured) -> str:
    told = (f"{way} {median(taken) * 1e3:.0f} ms" for way, taken in measured.starts.items())
    found = ratios(measured.starts)
    return f"start to initialize (p50): {', '.join(told)}; {min(found):.2f} to {max(found):.2f}x"


def _wear(wear: Wear) -> str:
    rows = [
        (name, f"{one.resident / 1e6:.1f} MB", str(one.threads), str(one.descriptors), str(one.children))
        for name, one in (("warmed up", wear.before), (f"{wear.prompts:,} prompts later", wear.after))
    ]
    return _aligned([("frontdesk acp", "memory", "threads", "descriptors", "children"), *rows])


def document(measured: EditorsMeasured) -> dict[str, Any]:
    """Every turn, round and start."""
    return {
        "turns": {
            kind: {way.name: [asdict(one) for one in taken] for way, taken in pairs.taken.items()}
            for kind, pairs in measured.turns.items()
        },
        "updates": {way.name: [asdict(one) for one in told] for way, told in measured.streams.told.items()},
        "start_seconds": {way.name: seconds for way, seconds in measured.starts.items()},
        "wear": asdict(measured.wear),
    }


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()
