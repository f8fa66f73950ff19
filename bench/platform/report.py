"""Reports the results about the platform's client, as a table for people and as JSON for machines."""

from statistics import median
from typing import Any

from bench.platform.asking import Source, Way
from bench.platform.measure import PlatformMeasured

COLUMNS = ("id from", "discovery", "p50", "x without", "spread")


def table(measured: PlatformMeasured) -> str:
    """Each ratio is relative to our client without the header; the ratio of that client to itself is the noise."""
    rows = [COLUMNS, *(_row(measured, source, way) for source in Source for way in Way)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _row(measured: PlatformMeasured, source: Source, way: Way) -> tuple[str, ...]:
    ratios = measured.ratios(source, way, Way.WITHOUT)
    spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
    return source, way, f"{measured.p50_us(source, way):.0f} µs", f"{median(ratios):.3f}", spread


def document(measured: PlatformMeasured) -> dict[str, Any]:
    return {
        "reads": measured.reads,
        "p50_us": {source: {way: measured.p50_us(source, way) for way in Way} for source in Source},
    }
