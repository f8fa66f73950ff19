"""Reports the results about finding memories, as tables for people and as JSON for machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from bench.memory.locomo import CATEGORIES
from bench.memory.measure import MemoryMeasured
from bench.memory.quality import DEPTHS, FoundShares, QualityMeasured
from bench.memory.speed import EACH, SpeedMeasured, at

BY_CATEGORY = 10


def table(measured: MemoryMeasured) -> str:
    return f"{_quality_table(measured.quality)}\n\n{_speed_table(measured.speed)}"


def _quality_table(measured: QualityMeasured) -> str:
    """Evidence recall in percent: at each depth, and by category at one depth; the tokens are for ten answers."""
    head = ("evidence recall", *(f"@{depth}" for depth in DEPTHS), *(f"{name} @10" for name in CATEGORIES.values()))
    counts = ("questions", *("" for _ in DEPTHS), *(f"{measured.questions[name]:,}" for name in CATEGORIES.values()))
    rows = [(*head, "p50", "p95", "tokens"), *(_quality_row(way, found) for way, found in measured.found.items())]
    kept = f"{measured.memories:,} memories; to keep one took {measured.keep_ms:.2f} ms (p50)"
    return f"{_aligned([*rows, (*counts, '', '', '')])}\n{kept}"


def _quality_row(way: str, found: FoundShares) -> tuple[str, ...]:
    recalls = (f"{found.recall(depth):.1f}" for depth in DEPTHS)
    of_category = (f"{found.recall(BY_CATEGORY, name):.1f}" for name in CATEGORIES.values())
    costs = ("", "", "")
    if found.ms:
        costs = (f"{found.ms_at(50):.1f} ms", f"{found.ms_at(95):.1f} ms", f"{mean(found.tokens):.0f}")
    return (way, *recalls, *of_category, *costs)


def _speed_table(measured: Mapping[str, SpeedMeasured]) -> str:
    """Times of a whole search, embedding included; `nearest seen` is the share of the truly nearest ten it reads."""
    head = ("database", "people", "with", "p50", "p95", "one with", "its p50", "its p95", "nearest seen")
    return _aligned([head, *(_speed_row(name, one) for name, one in measured.items())])


def _speed_row(name: str, one: SpeedMeasured) -> tuple[str, ...]:
    times = [f"{at(ms, share):.1f} ms" for ms in (one.few_ms, one.many_ms) for share in (50, 95)]
    seen = f"{100 * one.looked_at:.1f} %"
    few, many = times[:2], times[2:]
    return (name, f"{one.size.people:,}", f"{EACH:,}", *few, f"{one.size.many:,}", *many, seen)


def document(measured: MemoryMeasured) -> dict[str, Any]:
    found = {
        way: {"recall": {str(depth): one.recall(depth) for depth in DEPTHS}, "ms": one.ms, "tokens": one.tokens}
        for way, one in measured.quality.found.items()
    }
    return {"quality": found, "speed": {name: asdict(one) for name, one in measured.speed.items()}}


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()
