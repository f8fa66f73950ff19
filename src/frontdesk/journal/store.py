"""The journal in the database: append, read, sum up, forget what is old."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Insert, case, delete, func, insert, literal, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import journal
from frontdesk.identity.model import Source
from frontdesk.journal.model import Entry, Kind, Outcome

PRUNE_BATCH = 5_000
# What is written in place leaves SQLite's log of changes to grow; a batch that is written aside folds it back.
ASIDE = 16
INSERT = insert(journal)


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows to read, oldest first: the newest `limit` of them, or the next `limit` after `after_id`."""

    agent_id: str | None = None
    user_id: str | None = None
    kind: Kind | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    after_id: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class UseQuery:
    """Whose calls of which tools to sum up; the most used come first."""

    agent_id: str | None = None
    user_id: str | None = None
    tool: str | None = None
    since: datetime | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What an agent made of a tool: how often, how often in vain, how long it took on average, and when last."""

    agent_id: str | None
    tool: str
    calls: int
    failed: int
    mean_us: int
    last_at: datetime


class JournalStore:
    """Rows go in, in batches, and are never changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batches = 0

    async def append(self, entries: Sequence[Entry]) -> None:
        self._batches += 1
        aside = self._batches % ASIDE == 0
        async with self._database.transaction() if aside else self._database.brief() as connection:
            await connection.execute(INSERT, [_row(entry) for entry in entries])

    async def read(self, query: Query) -> Sequence[tuple[int, Entry]]:
        # Whoever goes on from a row wants what came next; whoever starts wants what came last.
        newest_first = query.after_id == 0
        order = journal.c.id.desc() if newest_first else journal.c.id
        wanted = select(journal).where(journal.c.id > query.after_id).order_by(order).limit(query.limit)
        for column in ("agent_id", "user_id", "kind", "outcome"):
            value = getattr(query, column)
            if value is not None:
                wanted = wanted.where(journal.c[column] == value)
        if query.since is not None:
            wanted = wanted.where(journal.c.at >= query.since)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).mappings().all()
        return [_entry(dict(row)) for row in (reversed(rows) if newest_first else rows)]

    async def tool_use(self, query: UseQuery) -> Sequence[ToolUse]:
        """One row for each agent and tool."""
        calls = func.count().label("calls")
        failed = func.sum(case((journal.c.outcome == Outcome.OK, 0), else_=1))
        wanted = (
            select(
                journal.c.agent_id,
                journal.c.action,
                calls,
                failed.label("failed"),
                func.avg(journal.c.duration_us).label("mean_us"),
                func.max(journal.c.at).label("last_at"),
            )
            .where(journal.c.kind == Kind.TOOL)
            .group_by(journal.c.agent_id, journal.c.action)
            .order_by(calls.desc(), journal.c.action, journal.c.agent_id)
            .limit(query.limit)
        )
        for column, value in (("agent_id", query.agent_id), ("user_id", query.user_id), ("action", query.tool)):
            if value is not None:
                wanted = wanted.where(journal.c[column] == value)
        if query.since is not None:
            wanted = wanted.where(journal.c.at >= query.since)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        return [
            ToolUse(row.agent_id, row.action, row.calls, int(row.failed), int(row.mean_us), row.last_at) for row in rows
        ]

    async def prune(self, before: datetime) -> int:
        """Forget rows older than `before`, a batch at a time so that nobody waits long; how many went."""
        gone = 0
        oldest = select(journal.c.id).where(journal.c.at < before).order_by(journal.c.id).limit(PRUNE_BATCH)
        while True:
            async with self._database.transaction() as connection:
                done = await connection.execute(delete(journal).where(journal.c.id.in_(oldest.scalar_subquery())))
            gone += done.rowcount
            if done.rowcount < PRUNE_BATCH:
                return gone

    async def of_person(self, user_id: str) -> Sequence[Entry]:
        """Everything that is told of a person, oldest first."""
        wanted = select(journal).where(journal.c.user_id == user_id).order_by(journal.c.id)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).mappings().all()
        return [_entry(dict(row))[1] for row in rows]

    async def forget_person(self, user_id: str) -> int:
        """Delete everything that is told of a person, a batch at a time so that nobody waits long; how many went."""
        gone = last = 0
        theirs = select(journal.c.id).where(journal.c.user_id == user_id).order_by(journal.c.id).limit(PRUNE_BATCH)
        while True:
            async with self._database.transaction() as connection:
                ids = list((await connection.execute(theirs.where(journal.c.id > last))).scalars())
                if not ids:
                    return gone
                between = journal.c.id.between(ids[0], ids[-1])
                await connection.execute(delete(journal).where(journal.c.user_id == user_id, between))
            gone, last = gone + len(ids), ids[-1]

    async def count(self) -> int:
        async with self._database.reading() as connection:
            return (await connection.execute(select(func.count()).select_from(journal))).scalar_one()


def appending(columns: Mapping[str, str | bool | ColumnElement[Any]], *where: ColumnElement[bool]) -> Insert:
    """A statement that writes rows about rows of another table, for the transaction of what they tell of."""
    told = [value if isinstance(value, ColumnElement) else literal(value) for value in columns.values()]
    return insert(journal).from_select(list(columns), select(*told).where(*where))


_COLUMNS = tuple(field.name for field in fields(Entry))
_values = attrgetter(*_COLUMNS)


def _row(entry: Entry) -> dict[str, object]:
    return dict(zip(_COLUMNS, _values(entry), strict=True))


def _entry(row: dict[str, object]) -> tuple[int, Entry]:
    number = row.pop("id")
    row |= {"kind": Kind(row["kind"]), "outcome": Outcome(row["outcome"]), "source": Source(row["source"])}
    return number, Entry(**row)  # pyright: ignore[reportReturnType, reportArgumentType] - the columns are the fields
