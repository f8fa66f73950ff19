"""Activities counted in the database."""

from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, func, select

from frontdesk.db.schema import activities as table
from frontdesk.memory.activities.wanted import ActivityStats
from frontdesk.memory.matching.store import counts
from frontdesk.memory.moments import span_of, today, zone_of
from frontdesk.memory.store import Mine

MINUTES = func.coalesce(func.sum(table.c.duration_minutes), 0)


def stats(mine: Mine, zone: str | None = None) -> ActivityStats:
    """This week begins on Monday, where the person is."""
    sums = select(
        func.count().label("total"),
        MINUTES.label("minutes"),
        func.avg(table.c.satisfaction_level).label("satisfaction"),
        func.avg(table.c.mood_after - table.c.mood_before).label("mood"),
        func.avg(table.c.energy_after - table.c.energy_before).label("energy"),
        *_lately(mine, zone),
    )
    row = mine.connection.execute(sums.where(table.c.user_id == mine.user_id)).one()
    return ActivityStats(
        total=row.total,
        by_type=_by(mine, table.c.activity_type, func.count()),
        by_status=_by(mine, table.c.status, func.count()),
        minutes_by_type=_by(mine, table.c.activity_type, MINUTES),
        total_minutes=row.minutes,
        average_satisfaction=_rounded(row.satisfaction),
        average_mood_change=_rounded(row.mood),
        average_energy_change=_rounded(row.energy),
        this_week=row.this_week or 0,
        this_month=row.this_month or 0,
    )


def _lately(mine: Mine, zone: str | None) -> list[ColumnElement[Any]]:
    where = zone_of(zone, mine.zone_name)
    day = today(mine.now, where)
    firsts = {"this_week": day - timedelta(days=day.weekday()), "this_month": day.replace(day=1)}
    since = {name: span_of(first, where).start for name, first in firsts.items()}
    return [func.sum(case((table.c.started_at >= start, 1), else_=0)).label(name) for name, start in since.items()]


def _by(mine: Mine, column: ColumnElement[Any], number: ColumnElement[Any]) -> dict[str, int]:
    grouped = select(column, number).where(table.c.user_id == mine.user_id).group_by(column).order_by(column)
    return counts((value, times) for value, times in mine.connection.execute(grouped))


def _rounded(value: Any) -> float | None:  # noqa: ANN401 - PostgreSQL's averages are decimals, SQLite's floats
    return None if value is None else round(float(value), 2)
