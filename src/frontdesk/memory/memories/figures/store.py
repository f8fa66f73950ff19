"""Memories counted in the database."""

from collections import Counter
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Integer, and_, case, cast, func, select

from frontdesk.db.schema import memories as table
from frontdesk.db.schema import timeline_items
from frontdesk.memory.items.store import split
from frontdesk.memory.matching.store import counts
from frontdesk.memory.memories.store import current
from frontdesk.memory.memories.wanted import MemoryStats
from frontdesk.memory.model import MemoryStatus
from frontdesk.memory.moments import span_of, today, zone_of
from frontdesk.memory.store import Mine

MOST_USED = 10


def stats(mine: Mine, zone: str | None = None) -> MemoryStats:
    """This week begins on Monday, where the person is."""
    shown = _shown(mine)
    sums = select(
        func.count().label("total"),
        func.sum(cast(table.c.is_highlight, Integer)).label("highlights"),
        func.avg(table.c.emotion_valence).label("valence"),
        func.avg(table.c.salience_score).label("salience"),
        *_lately(mine, zone),
    )
    row = mine.connection.execute(sums.where(shown)).one()
    return MemoryStats(
        total=row.total,
        superseded=_number(mine, table.c.superseded_by.is_not(None)),
        expired=_number(mine, table.c.superseded_by.is_(None), table.c.expires_at <= mine.now),
        by_type=_by(mine, table.c.memory_type, shown),
        by_status=_by(mine, table.c.status, shown),
        highlights=row.highlights or 0,
        average_valence=_rounded(row.valence),
        average_salience=_rounded(row.salience),
        by_place=_by(mine, table.c.place_name, and_(shown, table.c.place_name.is_not(None)), MOST_USED),
        by_tag=_tags(mine, shown),
        this_week=row.this_week or 0,
        this_month=row.this_month or 0,
    )


def _lately(mine: Mine, zone: str | None) -> list[ColumnElement[Any]]:
    where = zone_of(zone, mine.zone_name)
    day = today(mine.now, where)
    firsts = {"this_week": day - timedelta(days=day.weekday()), "this_month": day.replace(day=1)}
    since = {name: span_of(first, where).start for name, first in firsts.items()}
    return [func.sum(case((table.c.captured_at >= start, 1), else_=0)).label(name) for name, start in since.items()]


def _by(mine: Mine, column: ColumnElement[Any], which: ColumnElement[bool], most: int | None = None) -> dict[str, int]:
    number = func.count()
    grouped = select(column, number).where(which).group_by(column).order_by(number.desc(), column).limit(most)
    return {value: times for value, times in mine.connection.execute(grouped)}  # noqa: C416 - rows are no pairs


def _tags(mine: Mine, which: ColumnElement[bool]) -> dict[str, int]:
    """A tag is counted whatever its case."""
    together = and_(timeline_items.c.user_id == table.c.user_id, timeline_items.c.id == table.c.id)
    grouped = select(timeline_items.c.tags, func.count()).where(together, which, timeline_items.c.tags != "")
    found: Counter[str] = Counter()
    for tags, times in mine.connection.execute(grouped.group_by(timeline_items.c.tags)):
        found.update(dict.fromkeys((tag.casefold() for tag in split(tags)), times))
    return counts(found.most_common(MOST_USED))


def _number(mine: Mine, *which: ColumnElement[bool]) -> int:
    kept = (table.c.user_id == mine.user_id, table.c.status != MemoryStatus.DELETED)
    return mine.connection.execute(select(func.count()).where(*kept, *which)).scalar_one()


def _shown(mine: Mine) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.status != MemoryStatus.DELETED, current(mine))


def _rounded(value: Any) -> float | None:  # noqa: ANN401 - PostgreSQL's averages are decimals, SQLite's floats
    return None if value is None else round(float(value), 2)
