"""Reads the history of runs, retries dead ones, counts due and active runs, and prunes old rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from frontdesk.db.engine import Database
from frontdesk.db.schema import (
    RUN_IS_ACTIVE,
    SCHEDULE_IS_OVER,
    SCHEDULE_IS_WAITING,
    attempts,
    forwards,
    lanes,
    occurrences,
    schedules,
)
from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.schedules.claim_store import lower_due, owned_by
from frontdesk.schedules.model import Attempt, OwnerFilter, RunRecord, RunStatus, ScheduleState, WebhookStatus, to_us
from frontdesk.schedules.store import LAST_FIRE_BEGAN_US
from frontdesk.schedules.triggers import parse_iso_time
from frontdesk.schedules.wakeup import WakeupNotifier

CURSOR_SHAPE = re.compile(r"(\d{1,18})\.([\w.:-]{1,64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class HistoryCursor:
    """A place in the history: before `intended_us`, or with an `id`, after that run of the same time."""

    intended_us: int
    id: str | None = None

    def __str__(self) -> str:
        return f"{self.intended_us}.{self.id or ''}"

    @classmethod
    def after_run(cls, last: RunRecord) -> "HistoryCursor":
        """The start of the page after this run."""
        return cls(last.intended_us, last.id)

    @classmethod
    def parse(cls, text: str) -> "HistoryCursor":
        """Parse a cursor from a page, or a time with an offset."""
        if found := CURSOR_SHAPE.fullmatch(text.strip()):
            return cls(int(found[1]), found[2])
        try:
            return cls(to_us(parse_iso_time(text)))
        except Invalid as error:
            raise Invalid(
                "`before` is a time with Z or an offset, such as 2025-12-25T10:00:00Z, or `next` of the page before"
            ) from error


PRUNE_BATCH = 2_000
IMPORT_PREFIX = "import:"
# The number of queues read at a time, and of reads, to find what is due next.
QUEUES_PER_LOOK, MAX_LOOKS = 100, 20
# At most this many runs are searched for those with one status.
RUNS_LOOKED_THROUGH = 2_000


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which runs to read, newest first: at most `limit` before `before`."""

    whose: OwnerFilter = field(default_factory=OwnerFilter)
    schedule_id: int | None = None
    standings: Sequence[RunStatus] = ()
    before: HistoryCursor | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ScheduleFigures:
    """Counts of schedules and runs; `oldest_overdue_us` is the lateness of the oldest due schedule not yet started."""

    due: int
    oldest_overdue_us: int
    running: int
    waiting: int
    dead: int


@dataclass(frozen=True, slots=True)
class OverdueSchedule:
    """A schedule that is due, and that no worker has started."""

    schedule_id: int
    agent_id: str
    fire_us: int


@dataclass(frozen=True, slots=True)
class RunHolder:
    """A worker with active runs, in any process: how many, and when the last of its leases ends."""

    owner: str
    runs: int
    leased_until_us: int


class HistoryStore:
    """Reads and prunes the history of runs."""

    def __init__(self, database: Database, notifier: WakeupNotifier) -> None:
        self._database = database
        self._notifier = notifier

    async def history(self, query: HistoryQuery) -> Sequence[RunRecord]:
        wanted = select(occurrences).where(*owned_by(occurrences, query.whose))
        if query.schedule_id is not None:
            wanted = wanted.where(occurrences.c.schedule_id == query.schedule_id)
        if query.standings:
            wanted = wanted.where(occurrences.c.standing.in_(query.standings))
        if query.before is not None:
            wanted = wanted.where(*_is_before(query.before))
        # Many may be due at one time: their ids decide the order.
        in_order = wanted.order_by(occurrences.c.intended_us.desc(), occurrences.c.id.desc())
        return await self._read(in_order.limit(query.limit))

    async def ended(self, query: HistoryQuery) -> tuple[Sequence[RunRecord], HistoryCursor | None]:
        """Runs that are over, by their end, or for one agent by their due time, the last first; and the next cursor.

        Runs of a status that may be rare are searched among the newest `RUNS_LOOKED_THROUGH`; the next page continues
        after these.
        """
        at = occurrences.c.ended_us if query.whose.agent_id is None else occurrences.c.intended_us
        order = (at.desc(), occurrences.c.id.desc())
        over = [*owned_by(occurrences, query.whose), occurrences.c.ended_us.is_not(None)]
        over += [] if query.before is None else _is_before(query.before, at)
        rare = [one for one in query.standings if one is not RunStatus.DEAD or query.whose.agent_id is not None]
        wanted = select(occurrences).where(*over)
        if rare:
            looked = select(occurrences.c.id).where(*over).order_by(*order).limit(RUNS_LOOKED_THROUGH)
            wanted = select(occurrences).where(occurrences.c.id.in_(looked), occurrences.c.standing.in_(rare))
        elif query.standings:
            wanted = wanted.where(occurrences.c.standing == literal_column("'dead'"))
        found = await self._read(wanted.order_by(*order).limit(query.limit + 1))
        if len(found) > query.limit:
            last = found[query.limit - 1]
            return found[: query.limit], HistoryCursor(
                (last.ended_us or 0) if query.whose.agent_id is None else last.intended_us, last.id
            )
        if not rare:
            return found, None
        further = (
            select(at.label("at"), occurrences.c.id)
            .where(*over)
            .order_by(*order)
            .offset(RUNS_LOOKED_THROUGH - 1)
            .limit(1)
        )
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(further)).first()
        return found, None if row is None else HistoryCursor(row.at, row.id)

    async def under_way(self, query: HistoryQuery) -> Sequence[RunRecord]:
        """Runs that have started or wait for a retry, in no order, because there may be very many."""
        return await self._read(
            select(occurrences).where(RUN_IS_ACTIVE, *owned_by(occurrences, query.whose)).limit(query.limit)
        )

    async def get(self, occurrence_id: str) -> RunRecord | None:
        found = await self._read(select(occurrences).where(occurrences.c.id == occurrence_id))
        return found[0] if found else None

    async def redrive(self, occurrence_id: str, now_us: int) -> bool:
        """Retry a dead run with all its attempts; False if it is not dead."""
        this = occurrences.c.id == occurrence_id
        of_schedule = (schedules, schedules.c.id == occurrences.c.schedule_id)

        def work(connection: Connection) -> bool:
            row = connection.execute(select(occurrences, schedules.c.state).join(*of_schedule).where(this)).first()
            if row is None:
                raise NotFound(f"There is no run '{occurrence_id}'; the history lists them")
            if row.state == ScheduleState.CANCELLED:
                raise Conflict(f"Schedule {row.schedule_id} was cancelled; make a new one")
            lower_due(connection, {row.lane: now_us}, now_us)
            back = {
                "standing": RunStatus.WAITING,
                "attempt": 0,
                "lost": 0,
                "available_us": now_us,
                "created_us": now_us,
                "ended_us": None,
                "reason": None,
            }
            dead = (this, occurrences.c.standing == RunStatus.DEAD)
            if connection.execute(update(occurrences).where(*dead).values(back)).rowcount == 0:
                return False
            tried = {"number": row.attempt, "started_us": row.started_us or 0, "ended_us": row.ended_us or now_us}
            connection.execute(insert(attempts), {"occurrence_id": row.id, **tried, "error": row.reason or ""})
            return True

        changed = await self._database.write(work, small=True)
        self._notifier.notify(now_us, now_us)
        return changed

    async def figures(self, now_us: int) -> ScheduleFigures:
        """Count due and active runs, in a time that does not depend on how many schedules wait."""
        standing = (
            select(occurrences.c.standing, func.count().label("number"))
            .where(RUN_IS_ACTIVE)
            .group_by(occurrences.c.standing)
        )
        # A due schedule is in a queue that is itself due or busy.
        busy = select(occurrences.c.lane).where(RUN_IS_ACTIVE)
        names = select(lanes.c.name).where(lanes.c.due_us.is_not(None), lanes.c.due_us <= now_us).union(busy)
        due = select(func.count(), func.min(schedules.c.fire_us)).where(
            schedules.c.lane.in_(names),
            SCHEDULE_IS_WAITING,
            schedules.c.fire_us <= now_us,
            LAST_FIRE_BEGAN_US.is_(None),
        )
        dead = select(func.count()).select_from(occurrences).where(occurrences.c.standing == literal_column("'dead'"))
        async with self._database.read_transaction() as connection:
            under_way = {row.standing: row.number for row in (await connection.execute(standing)).all()}
            number, oldest = (await connection.execute(due)).one()
            return ScheduleFigures(
                due=number,
                oldest_overdue_us=0 if oldest is None else now_us - oldest,
                running=under_way.get(RunStatus.RUNNING, 0),
                waiting=under_way.get(RunStatus.WAITING, 0),
                dead=(await connection.execute(dead)).scalar_one(),
            )

    async def overdue(self, now_us: int, limit: int) -> Sequence[OverdueSchedule]:
        """Overdue schedules, the oldest first; if very many queues are due, only from those that are due longest."""
        overdue = select(lanes.c.name).where(lanes.c.due_us.is_not(None), lanes.c.due_us <= now_us)
        overdue = overdue.order_by(lanes.c.due_us).limit(QUEUES_PER_LOOK)
        busy = select(occurrences.c.lane).where(RUN_IS_ACTIVE).limit(QUEUES_PER_LOOK)

        def work(connection: Connection) -> list[OverdueSchedule]:
            names = {*connection.execute(overdue).scalars(), *connection.execute(busy).scalars()}
            due = (
                schedules.c.lane.in_(names),
                SCHEDULE_IS_WAITING,
                schedules.c.fire_us <= now_us,
                LAST_FIRE_BEGAN_US.is_(None),
            )
            query = select(schedules.c.id, schedules.c.agent_id, schedules.c.fire_us).where(*due)
            rows = connection.execute(query.order_by(schedules.c.fire_us, schedules.c.id).limit(limit)).all()
            return [OverdueSchedule(row.id, row.agent_id, row.fire_us) for row in rows]

        return await self._database.read(work)

    async def holders(self, limit: int) -> Sequence[RunHolder]:
        """The workers that have active runs now."""
        running = (
            RUN_IS_ACTIVE,
            occurrences.c.standing == literal_column("'running'"),
            occurrences.c.owner.is_not(None),
        )
        leased = func.max(occurrences.c.leased_until_us)
        query = select(occurrences.c.owner, func.count().label("runs"), leased.label("until_us")).where(*running)
        query = query.group_by(occurrences.c.owner).order_by(occurrences.c.owner).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [RunHolder(row.owner, row.runs, row.until_us or 0) for row in rows]

    async def next_us(self) -> int | None:
        """When anything is due next, except what waits for the end of an active run."""
        best: int | None = None
        ahead = select(lanes.c.name, lanes.c.due_us).where(lanes.c.due_us.is_not(None))
        ahead = ahead.order_by(lanes.c.due_us, lanes.c.name).limit(QUEUES_PER_LOOK)
        async with self._database.read_transaction() as connection:
            for number in range(MAX_LOOKS):
                found = (await connection.execute(ahead.offset(number * QUEUES_PER_LOOK))).all()
                # A queue may be due before any of its runs: because of a schedule that was cancelled since.
                for when in _next_due_in_queues([row.name for row in found]):
                    at = (await connection.execute(when)).scalar_one()
                    best = at if best is None or (at is not None and at < best) else best
                if len(found) < QUEUES_PER_LOOK or (best is not None and found[-1].due_us >= best):
                    break
        return best

    async def prune(self, before_us: int, dead_before_us: int) -> int:
        """Delete runs that ended before then, dead runs later, and schedules that are over and have no runs left.

        Imported schedules are kept, so that a second import does not import them again.
        """
        old = select(occurrences.c.id).where(occurrences.c.ended_us.is_not(None))
        gone = await self._delete_runs(
            old.where(occurrences.c.ended_us < before_us, occurrences.c.standing != RunStatus.DEAD)
        )
        gone += await self._delete_runs(
            old.where(occurrences.c.standing == literal_column("'dead'"), occurrences.c.ended_us < dead_before_us)
        )
        await self._delete_schedules(before_us)
        return gone

    async def _delete_runs(self, old: Select[Any]) -> int:
        gone = 0
        while True:
            async with self._database.transaction() as connection:
                ids = list((await connection.execute(old.limit(PRUNE_BATCH))).scalars())
                for table, column in ((attempts, "occurrence_id"), (forwards, "occurrence_id"), (occurrences, "id")):
                    await connection.execute(delete(table).where(table.c[column].in_(ids)))
            gone += len(ids)
            if len(ids) < PRUNE_BATCH:
                return gone

    async def _delete_schedules(self, before_us: int) -> None:
        traces = exists().where(occurrences.c.schedule_id == schedules.c.id)
        imported = func.coalesce(schedules.c.made_by, "").like(f"{IMPORT_PREFIX}%")
        old = select(schedules.c.id).where(SCHEDULE_IS_OVER, schedules.c.updated_us < before_us, ~traces, ~imported)
        old = old.limit(PRUNE_BATCH)
        while True:
            async with self._database.transaction() as connection:
                ids = list((await connection.execute(old)).scalars())
                await connection.execute(delete(schedules).where(schedules.c.id.in_(ids)))
            if len(ids) < PRUNE_BATCH:
                return

    async def _read(self, query: Select[Any]) -> Sequence[RunRecord]:
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).mappings().all()
            ids = [row["id"] for row in rows]
            tried = select(attempts).where(attempts.c.occurrence_id.in_(ids))
            earlier: dict[str, list[Attempt]] = {}
            for row in (await connection.execute(tried.order_by(attempts.c.id))).all():
                attempt = Attempt(row.number, row.started_us, row.ended_us, row.error)
                earlier.setdefault(row.occurrence_id, []).append(attempt)
            sent = select(forwards).where(forwards.c.occurrence_id.in_(ids)).order_by(forwards.c.id)
            forwarded = {
                row.occurrence_id: WebhookStatus(row.state, row.attempt, row.error)
                for row in (await connection.execute(sent)).all()
            }
        return [_run_record(row, earlier.get(row["id"], ()), forwarded.get(row["id"])) for row in rows]


def _next_due_in_queues(names: Sequence[str]) -> list[Select[Any]]:
    """Statements for when the first schedule in these queues fires, and when their first retry is due."""
    waiting = (occurrences.c.lane.in_(names), RUN_IS_ACTIVE, occurrences.c.standing == RunStatus.WAITING)
    line = select(schedules.c.fire_us).where(
        schedules.c.lane == lanes.c.name, SCHEDULE_IS_WAITING, LAST_FIRE_BEGAN_US.is_(None)
    )
    first = line.order_by(schedules.c.fire_us, schedules.c.id).limit(1).correlate(lanes).scalar_subquery()
    return [
        # The first of each queue, by the index, however many follow it.
        select(func.min(first)).where(lanes.c.name.in_(names)),
        select(func.min(occurrences.c.available_us)).where(*waiting),
    ]


def _is_before(place: HistoryCursor, at: ColumnElement[int] = occurrences.c.intended_us) -> list[ColumnElement[bool]]:
    name = occurrences.c.id
    if place.id is None:
        return [at < place.intended_us]
    # The first condition is redundant, but an index can serve it.
    return [at <= place.intended_us, or_(at < place.intended_us, name < place.id)]


def _run_record(row: RowMapping, earlier: Sequence[Attempt], forwarded: WebhookStatus | None) -> RunRecord:
    return RunRecord(
        id=row["id"],
        schedule_id=row["schedule_id"],
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        intended_us=row["intended_us"],
        number=row["number"],
        standing=RunStatus(row["standing"]),
        attempt=row["attempt"],
        started_us=row["started_us"],
        ended_us=row["ended_us"],
        reason=row["reason"],
        answer=row["answer"],
        manual=row["manual"],
        earlier=earlier,
        forwarded=forwarded,
    )
