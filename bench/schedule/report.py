"""Reports the results about the schedulers, as tables for people and as JSON for machines."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.schedule.cases import Case, Firing
from bench.schedule.measure import ScheduleMeasured

COLUMNS = ("schedules", "engine", "database", "workers", "fires/s", "spread", "late p50", "p99", "CPU/fire", "came")


def table(measured: ScheduleMeasured) -> str:
    """One line for each case: the median of the runs a second; `late` counts from the time each was due."""
    cases = sorted(measured.firings, key=lambda case: case.schedules)
    return "\n\n".join([_aligned([COLUMNS, *(_row(measured, case) for case in cases)]), _lines(measured)])


def _row(measured: ScheduleMeasured, case: Case) -> tuple[str, ...]:
    firings = measured.firings[case]
    rates = [firing.per_second for firing in firings]
    return (
        f"{case.schedules:,}",
        case.engine,
        case.store,
        str(case.workers),
        f"{measured.per_second(case):,.0f}",
        f"{min(rates):,.0f}-{max(rates):,.0f}",
        _seconds(measured.late_ms(case, 0.5)),
        _seconds(measured.late_ms(case, 0.99)),
        f"{firings[0].cpu_us:.0f} µs",
        f"{min(len(firing.late_us) for firing in firings):,}",
    )


def _lines(measured: ScheduleMeasured) -> str:
    single = [
        f"one after the other on {store}: late {firing.late_ms(0.5):.1f} ms (p50), {firing.late_ms(0.99):.1f} ms (p99)"
        for store, firing in measured.single.items()
        if len(firing.late_us) == firing.due
    ]
    waiting = {f"an idle worker on {store}": share for store, share in measured.idle.workers.items()}
    resting = {f"a program that {floor}": share for floor, share in measured.idle.floors.items()}
    idle = [f"{name}: {share * 100:.4f} % of a core" for name, share in {**waiting, **resting}.items()]
    return "\n".join([*single, *idle])


def document(measured: ScheduleMeasured) -> dict[str, Any]:
    return {
        "effort": asdict(measured.effort),
        "cases": [_case(case, firings) for case, firings in measured.firings.items()],
        "one_by_one": {store: _told(firing) for store, firing in measured.single.items()},
        "idle": asdict(measured.idle),
    }


def _case(case: Case, firings: Sequence[Firing]) -> dict[str, Any]:
    return asdict(case) | {"firings": [_told(firing) for firing in firings]}


def _told(firing: Firing) -> dict[str, Any]:
    return {
        "due": firing.due,
        "came": len(firing.late_us),
        "per_second": firing.per_second,
        "late_p50_ms": firing.late_ms(0.5),
        "late_p99_ms": firing.late_ms(0.99),
        "cpu_us": firing.cpu_us,
    }


def _seconds(milliseconds: float | None) -> str:
    return "never" if milliseconds is None else f"{milliseconds / 1e3:.2f} s"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(lines)
