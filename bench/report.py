"""Reports the results about a call, as a table for people and as JSON for machines."""

import platform
from dataclasses import asdict
from typing import Any

from bench.calls import SIZES, Case, Effort, Measured
from bench.claims import Verdict
from bench.processes import Kind
from bench.wire import Era

NAMES = {Kind.FLOOR: "Starlette floor", Kind.FASTMCP: "FastMCP", Kind.DESK: "Frontdesk"}
COLUMNS = ("era", "tools", "server", "CPU/call", "x floor", "spread", "p50", "answer", "memory")


def table(measured: Measured) -> str:
    """One line per server, size and era; the ratios are the claim, the times are context."""
    rows = [COLUMNS, *(_row(measured, Case(kind, tools, era)) for era in Era for tools in SIZES for kind in Kind)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _row(measured: Measured, case: Case) -> tuple[str, ...]:
    floor = Case(Kind.FLOOR, case.tools, case.era)
    ratios = measured.ratios(case, floor)
    return (
        case.era.value,
        f"{case.tools:,}",
        NAMES[case.kind],
        f"{measured.cpu_us(case):.0f} µs",
        f"{measured.ratio(case, floor):.2f}",
        f"{min(ratios):.2f}-{max(ratios):.2f}",
        f"{measured.latency_us(case):.0f} µs",
        f"{measured.samples[case][0].answer_bytes} B",
        f"{measured.resident[case.kind, case.tools] / 2**20:.0f} MiB",
    )


def verdict_lines(verdicts: list[Verdict]) -> str:
    return "\n".join(
        f"{'holds' if verdict.holds else 'FAILS'}  {verdict.found:5.2f} (at most {verdict.most:g})  {verdict.claim}"
        for verdict in verdicts
    )


def document(measured: Measured, verdicts: list[Verdict], effort: Effort) -> dict[str, Any]:
    """The whole run: every round of every case, and each verdict with its rounds."""
    return {
        "python": platform.python_version(),
        "effort": asdict(effort),
        "cases": [_case(measured, case) for case in measured.samples],
        "verdicts": [asdict(verdict) | {"holds": verdict.holds} for verdict in verdicts],
    }


def _case(measured: Measured, case: Case) -> dict[str, Any]:
    floor = Case(Kind.FLOOR, case.tools, case.era)
    return {
        "server": case.kind,
        "tools": case.tools,
        "era": case.era,
        "cpu_us": measured.cpu_us(case),
        "to_floor": measured.ratio(case, floor),
        "latency_p50_us": measured.latency_us(case),
        "resident_bytes": measured.resident[case.kind, case.tools],
        "visits": [asdict(sample) for sample in measured.samples[case]],
    }
