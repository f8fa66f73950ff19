"""What lists of records have in common in SQL: words in columns, bounds of time, order and pages."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, RowMapping, Select, func, or_

from frontdesk.memory.matching.spelling import spellings
from frontdesk.memory.store import Mine

SECOND, INSTANT = timedelta(seconds=1), timedelta(microseconds=1)
T = TypeVar("T")


def contains(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """The column has this text somewhere in it, whatever its case."""
    lowered = func.lower(column)
    return or_(*(lowered.contains(way, autoescape=True) for way in spellings(text)))


def has_words(columns: Sequence[ColumnElement[Any]], text: str) -> list[ColumnElement[bool]]:
    """Each word of the text stands in one of the columns at least."""
    return [or_(*(contains(column, word) for column in columns)) for word in text.split()]


def up_to(column: ColumnElement[Any], bound: datetime) -> ColumnElement[bool]:
    """At that moment at the latest; one without fractions of a second means the whole second."""
    return column < bound + (INSTANT if bound.microsecond else SECOND)


def ordered(
    wanted: Select[Any], column: ColumnElement[Any], tie: ColumnElement[Any], order: str, *, nullable: bool = False
) -> Select[Any]:
    """In that order, with those that have no value last either way, and a place for each of those that are alike."""
    directed = [one.asc() if order == "asc" else one.desc() for one in (column, tie)]
    return wanted.order_by(directed[0].nulls_last() if nullable else directed[0], directed[1])


def page(mine: Mine, wanted: Select[Any], limit: int, offset: int) -> tuple[Sequence[RowMapping], int]:
    """Some of the rows, and how many there are in all, counted only where that is not plain from these."""
    rows = mine.connection.execute(wanted.limit(limit).offset(offset)).mappings().all()
    if len(rows) < limit and (rows or not offset):
        return rows, offset + len(rows)
    counting = wanted.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
    return rows, mine.connection.execute(counting).scalar_one()


def counts(rows: Iterable[tuple[T, int]]) -> dict[T, int]:
    """How many of each, the most first."""
    return dict(sorted(rows, key=lambda pair: -pair[1]))
