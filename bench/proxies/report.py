"""Reports what the proxies cost, as a table for people and as JSON for machines."""

import statistics
from dataclasses import asdict
from typing import Any

from bench.proxies.measure import Passage, ProxiesMeasured
from bench.proxies.ways import Way

NAMES = {
    Way.DIRECT: "direct call",
    Way.MCP_PROXY: "mcp-proxy",
    Way.CONTEXTFORGE: "ContextForge",
    Way.DESK: "Frontdesk call_tool",
}
COLUMNS = ("way", "CPU/call", "added", "of it in the proxies", "spread", "p50", "memory")


def table(measured: ProxiesMeasured) -> str:
    """One line per way."""
    rows = [COLUMNS, *(_row(measured, way) for way in measured.passages)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def document(measured: ProxiesMeasured) -> dict[str, Any]:
    """Every round of every way."""
    return {"ways": [_way(measured, way) for way in measured.passages]}


def _way(measured: ProxiesMeasured, way: Way) -> dict[str, Any]:
    return {
        "way": way,
        "cpu_us": measured.cpu_us(way),
        "added_us": statistics.median(measured.added_us(way)),
        "latency_p50_us": measured.latency_us(way),
        "resident_bytes": measured.resident[way],
        "passages": [asdict(passage) for passage in measured.passages[way]],
    }


def _row(measured: ProxiesMeasured, way: Way) -> tuple[str, ...]:
    added = measured.added_us(way)
    return (
        NAMES[way],
        _ms(measured.cpu_us(way)),
        _ms(statistics.median(added)),
        _in_proxies(measured.passages[way]),
        f"{min(added) / 1e3:.2f}-{max(added) / 1e3:.2f}",
        _ms(measured.latency_us(way)),
        f"{measured.resident[way] / 2**20:.0f} MiB",
    )


def _in_proxies(passages: list[Passage]) -> str:
    """The cost of each process of a chain, in the order in which a call reaches them."""
    each = zip(*(passage.proxies_us for passage in passages), strict=True)
    return " + ".join(_ms(statistics.median(costs)) for costs in each) or "-"


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1e3:.2f} ms"
