"""Stores journal entries, reads them, sums them up, and deletes old ones."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Integer,
    RowMapping,
    String,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    literal_column,
    not_,
    or_,
    select,
)

from frontdesk.db.engine import Database
from frontdesk.db.schema import IS_NOT_OK, journal
from frontdesk.identity.model import AgentIdSource, ClaimedIds
from frontdesk.journal.model import PAGES_SURFACE, EntryKind, EntryTiming, FailureSummary, JournalEntry, Outcome

PRUNE_BATCH = 5_000
# Writes on the event loop's thread let SQLite's WAL grow; a batch written in the writer thread checkpoints it.
BATCHES_PER_CHECKPOINT = 16
# Failed rows are counted up to this number.
MAX_FAILURES_COUNTED = 500
REASON_LENGTH = 300
# Names of errors about an invalid or unknown agent id.
AGENT_ID_ERRORS = ("AgentIdMismatch", "InvalidAgentId", "UnknownAgent")
MAX_REFUSALS_READ = 2_000
INSERT_ENTRIES = insert(journal)
TIMING_COLUMNS = (
    journal.c.id,
    journal.c.at,
    journal.c.kind,
    journal.c.surface,
    journal.c.outcome,
    journal.c.duration_us,
)
IS_PAGE_VIEW = and_(journal.c.surface == PAGES_SURFACE, journal.c.action.like("GET %"))


@dataclass(frozen=True, slots=True)
class JournalQuery:
    """A filter for rows, oldest first: the newest `limit` rows, or the next `limit` rows after `after_id`."""

    agent_id: str | None = None
    user_id: str | None = None
    kind: EntryKind | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    after_id: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ToolUseQuery:
    """A filter for the summary of tool calls, most used tools first."""

    agent_id: str | None = None
    user_id: str | None = None
    tool: str | None = None
    since: datetime | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ToolUse:
    """An agent's use of a tool: number of calls, failures, average duration, and the last call."""

    agent_id: str | None
    tool: str
    calls: int
    failed: int
    mean_us: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class AgentIdUse:
    """One way in which an agent was identified recently: the source, whether it was proven, how often and when last."""

    kind: EntryKind
    source: AgentIdSource
    verified: bool
    times: int
    last_at: datetime


_NEWEST_OF_AGENT = (
    select(journal.c.kind, journal.c.source, journal.c.verified, journal.c.at)
    .where(journal.c.agent_id == bindparam("agent", type_=String()))
    .order_by(journal.c.id.desc())
    .limit(bindparam("most", type_=Integer()))
    .subquery()
)
_ID_USE_COLUMNS = (_NEWEST_OF_AGENT.c.kind, _NEWEST_OF_AGENT.c.source, _NEWEST_OF_AGENT.c.verified)
AGENT_ID_USES = select(
    *_ID_USE_COLUMNS, func.count().label("times"), func.max(_NEWEST_OF_AGENT.c.at).label("last_at")
).group_by(*_ID_USE_COLUMNS)


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """One call of a tool: its time, tool, agent and outcome."""

    at: datetime
    tool: str
    agent_id: str | None
    ok: bool
    duration_us: int


@dataclass(frozen=True, slots=True)
class AgentIdByParameter:
    """An agent whose id came as a parameter recently: how often, how often in the header instead, and when last."""

    agent_id: str
    times: int
    by_header: int
    last_at: datetime


class JournalStore:
    """Stores entries in batches. Rows are never changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batches = 0

    async def append(self, entries: Sequence[JournalEntry]) -> None:
        self._batches += 1
        aside = self._batches % BATCHES_PER_CHECKPOINT == 0
        async with self._database.transaction() if aside else self._database.brief_transaction() as connection:
            await connection.execute(INSERT_ENTRIES, [_row_of_entry(entry) for entry in entries])

    async def read(self, query: JournalQuery) -> Sequence[tuple[int, JournalEntry]]:
        # After a row, the next rows are wanted; without one, the newest rows.
        newest_first = query.after_id == 0
        order = journal.c.id.desc() if newest_first else journal.c.id
        wanted = select(journal).where(journal.c.id > query.after_id).order_by(order).limit(query.limit)
        for column in ("agent_id", "user_id", "kind", "outcome"):
            value = getattr(query, column)
            if value is not None:
                wanted = wanted.where(journal.c[column] == value)
        if query.since is not None:
            wanted = wanted.where(journal.c.at >= query.since)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(wanted)).mappings().all()
        return [_entry_of_row(dict(row)) for row in (reversed(rows) if newest_first else rows)]

    async def tool_use(self, query: ToolUseQuery) -> Sequence[ToolUse]:
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
            .where(journal.c.kind == EntryKind.TOOL)
            .group_by(journal.c.agent_id, journal.c.action)
            .order_by(calls.desc(), journal.c.action, journal.c.agent_id)
            .limit(query.limit)
        )
        for column, value in (("agent_id", query.agent_id), ("user_id", query.user_id), ("action", query.tool)):
            if value is not None:
                wanted = wanted.where(journal.c[column] == value)
        if query.since is not None:
            wanted = wanted.where(journal.c.at >= query.since)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(wanted)).all()
        return [
            ToolUse(row.agent_id, row.action, row.calls, int(row.failed), int(row.mean_us), row.last_at) for row in rows
        ]

    async def agent_id_uses(self, agents: Sequence[str], most: int) -> Mapping[str, Sequence[AgentIdUse]]:
        """The ways in which each of these agents was identified in its `most` newest rows."""

        def work(connection: Connection) -> dict[str, Sequence[AgentIdUse]]:
            return {
                agent: [
                    _agent_id_use(row)
                    for row in connection.execute(AGENT_ID_USES, {"agent": agent, "most": most}).mappings()
                ]
                for agent in agents
            }

        return await self._database.read(work)

    async def tool_calls(self, tool: str | None, limit: int, within: int) -> Sequence[ToolCallRecord]:
        """The newest calls of one tool or of all tools, among the `within` newest rows, newest first."""
        columns = (journal.c.at, journal.c.action, journal.c.agent_id, journal.c.outcome, journal.c.duration_us)
        query = select(*columns).where(_among_newest(within), journal.c.kind == EntryKind.TOOL)
        if tool is not None:
            query = query.where(journal.c.action == tool)
        query = query.order_by(journal.c.id.desc()).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [
            ToolCallRecord(at, named, agent, outcome == Outcome.OK, took) for at, named, agent, outcome, took in rows
        ]

    async def timings(self, after_id: int, limit: int) -> Sequence[EntryTiming]:
        """The timings of the newest `limit` rows after this one, newest first."""
        query = select(*TIMING_COLUMNS).where(journal.c.id > after_id).order_by(journal.c.id.desc()).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [
            EntryTiming(row.id, row.at, EntryKind(row.kind), row.surface, Outcome(row.outcome), row.duration_us)
            for row in rows
        ]

    async def latest(self, limit: int, within: int) -> Sequence[tuple[int, JournalEntry]]:
        """The newest rows without page views, among the `within` newest, newest first."""
        query = select(journal).where(_among_newest(within), not_(IS_PAGE_VIEW))
        query = query.order_by(journal.c.id.desc()).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [_entry_of_row(dict(row)) for row in rows]

    async def failures(self, since: datetime, limit: int) -> FailureSummary:
        """The number of requests that failed since then, and the newest `limit` of them."""
        # Written as literals, so that SQLite sees that the partial index covers the condition.
        failed = (IS_NOT_OK, journal.c.outcome == literal_column(f"'{Outcome.FAILED}'"))
        newest = select(journal).where(*failed).order_by(journal.c.id.desc()).limit(MAX_FAILURES_COUNTED).subquery()
        # A failed request leaves a row at each layer. The row with a reason represents it, or else the innermost row.
        request = func.coalesce(newest.c.request_id, cast(newest.c.id, String))
        place = func.row_number().over(partition_by=request, order_by=(newest.c.reason.is_(None), newest.c.id))
        placed = select(newest, place.label("place"), func.count().over().label("looked_at"))
        each = placed.where(newest.c.at >= since).subquery()
        query = select(each, func.count().over().label("number")).where(each.c.place == 1)
        query = query.order_by(each.c.id.desc()).limit(limit)

        def work(connection: Connection) -> FailureSummary:
            rows = [dict(row) for row in connection.execute(query).mappings()]
            found = [(row.pop("number"), row.pop("looked_at"), row.pop("place")) for row in rows]
            count, looked_at, _ = found[0] if found else (0, 0, 0)
            return FailureSummary(count, looked_at == MAX_FAILURES_COUNTED, [_entry_of_row(row) for row in rows])

        return await self._database.read(work)

    async def denials(self, before_id: int | None, limit: int) -> Sequence[tuple[int, JournalEntry]]:
        """Denied calls and calls with invalid agent ids, newest first, or only those older than `before_id`."""
        query = select(journal).order_by(journal.c.id.desc()).limit(limit)
        if before_id is not None:
            query = query.where(journal.c.id < before_id)

        # Few refusals concern an agent's id, so the number of rows that are searched is limited.
        refused = query.where(*_has_outcome(Outcome.REFUSED)).limit(MAX_REFUSALS_READ).subquery()
        of_ids = select(refused).where(or_(*(refused.c.reason.like(f"{reason}%") for reason in AGENT_ID_ERRORS)))
        each = [query.where(*_has_outcome(outcome)) for outcome in (Outcome.DENIED, Outcome.LIMITED)]

        def work(connection: Connection) -> Sequence[tuple[int, JournalEntry]]:
            found = [
                _entry_of_row(dict(row))
                for statement in (*each, of_ids.order_by(refused.c.id.desc()).limit(limit))
                for row in connection.execute(statement).mappings()
            ]
            return sorted(found, key=lambda one: one[0], reverse=True)[:limit]

        return await self._database.read(work)

    async def agent_ids_by_parameter(self, within: int, limit: int) -> Sequence[AgentIdByParameter]:
        """Agents whose ids came as a parameter, among the `within` newest rows, most frequent first."""
        newest = select(journal.c.agent_id, journal.c.source, journal.c.at).order_by(journal.c.id.desc())
        lately = newest.limit(within).subquery()
        times = func.sum(case((lately.c.source == AgentIdSource.PARAMETER, 1), else_=0)).label("times")
        by_header = func.sum(case((lately.c.source == AgentIdSource.HEADER, 1), else_=0)).label("by_header")
        last = func.max(case((lately.c.source == AgentIdSource.PARAMETER, lately.c.at))).label("last_at")
        query = (
            select(lately.c.agent_id, times, by_header, last)
            .where(lately.c.agent_id.is_not(None))
            .group_by(lately.c.agent_id)
            .having(times > 0)
            .order_by(times.desc(), lately.c.agent_id)
            .limit(limit)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [AgentIdByParameter(row.agent_id, int(row.times), int(row.by_header), row.last_at) for row in rows]

    async def prune(self, before: datetime) -> int:
        """Delete rows older than `before`, in batches so that nobody waits long. Returns the number of rows."""
        gone = 0
        oldest = select(journal.c.id).where(journal.c.at < before).order_by(journal.c.id).limit(PRUNE_BATCH)
        while True:
            async with self._database.transaction() as connection:
                done = await connection.execute(delete(journal).where(journal.c.id.in_(oldest.scalar_subquery())))
            gone += done.rowcount
            if done.rowcount < PRUNE_BATCH:
                return gone

    async def entries_of_person(self, user_id: str) -> Sequence[JournalEntry]:
        """All rows of a person, oldest first."""
        query = select(journal).where(journal.c.user_id == user_id).order_by(journal.c.id)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [_entry_of_row(dict(row))[1] for row in rows]

    async def delete_person(self, user_id: str) -> int:
        """Delete all rows of a person, in batches so that nobody waits long. Returns the number of rows."""
        gone = last = 0
        query = select(journal.c.id).where(journal.c.user_id == user_id).order_by(journal.c.id).limit(PRUNE_BATCH)
        while True:
            async with self._database.transaction() as connection:
                ids = list((await connection.execute(query.where(journal.c.id > last))).scalars())
                if not ids:
                    return gone
                between = journal.c.id.between(ids[0], ids[-1])
                await connection.execute(delete(journal).where(journal.c.user_id == user_id, between))
            gone, last = gone + len(ids), ids[-1]

    async def count(self) -> int:
        async with self._database.read_transaction() as connection:
            return (await connection.execute(select(func.count()).select_from(journal))).scalar_one()


def _has_outcome(outcome: Outcome) -> tuple[ColumnElement[bool], ...]:
    # One outcome at a time, written out: each reads along the index of failures.
    return and_(IS_NOT_OK), journal.c.outcome == literal_column(f"'{outcome}'")


def _among_newest(rows: int) -> ColumnElement[bool]:
    """Limits a statement to the newest rows, by their ids, so that older rows are never scanned."""
    return journal.c.id > select(func.coalesce(func.max(journal.c.id), 0) - rows).scalar_subquery()


def _agent_id_use(row: RowMapping) -> AgentIdUse:
    return AgentIdUse(
        EntryKind(row["kind"]), AgentIdSource(row["source"]), row["verified"], row["times"], row["last_at"]
    )


def insert_from_select(columns: Mapping[str, str | bool | ColumnElement[Any]], *where: ColumnElement[bool]) -> Insert:
    """A statement that inserts entries about rows of another table, within the transaction that changes those."""
    told = [value if isinstance(value, ColumnElement) else literal(value) for value in columns.values()]
    return insert(journal).from_select(list(columns), select(*told).where(*where))


# The claims are stored in the reason, and have no column of their own.
_COLUMNS = tuple(field.name for field in fields(JournalEntry) if field.name != "claimed")
_values = attrgetter(*_COLUMNS)
CLAIM_NAMES = frozenset(field.name for field in fields(ClaimedIds))


def _row_of_entry(entry: JournalEntry) -> dict[str, object]:
    row: dict[str, object] = dict(zip(_COLUMNS, _values(entry), strict=True))
    return row if entry.claimed is None else row | {"reason": _with_claims(entry.reason or "", entry.claimed)}


def _with_claims(reason: str, claimed: ClaimedIds) -> str:
    """The reason, followed by one line for each claim, cut to the length of the column."""
    claims = [(name, claim) for name, claim in asdict(claimed).items() if claim is not None]
    left_over = REASON_LENGTH - len(reason) - sum(len(name) + 2 for name, _ in claims)
    lines: list[str] = []
    # Shortest first, so that the space they leave goes to longer claims.
    for left, (name, claim) in zip(range(len(claims), 0, -1), sorted(claims, key=lambda one: len(one[1])), strict=True):
        share = max(left_over // left, 1)
        lines.append(f"{name} {claim if len(claim) <= share else claim[: share - 1] + '…'}")
        left_over -= min(len(claim), share)
    return "\n".join([reason, *sorted(lines)])


def _entry_of_row(row: dict[str, object]) -> tuple[int, JournalEntry]:
    number = row.pop("id")
    row |= {"kind": EntryKind(row["kind"]), "outcome": Outcome(row["outcome"]), "source": AgentIdSource(row["source"])}
    reason, *claims = str(row["reason"] or "").split("\n")
    claimed = {name: claim for name, _, claim in (one.partition(" ") for one in claims)}
    if claimed and claimed.keys() <= CLAIM_NAMES:
        row |= {"reason": reason or None, "claimed": ClaimedIds(**claimed)}
    return number, JournalEntry(**row)  # pyright: ignore[reportReturnType, reportArgumentType] - the columns are the fields
