"""Reads lists of schedules and runs for pages: by next fire, by number, around now. Every list is bounded."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from sqlalchemy import ColumnElement, Connection, Select, TextClause, func, literal_column, or_, select, text

from frontdesk.db.engine import Database
from frontdesk.db.schema import SCHEDULE_IS_WAITING, occurrences, schedules, turns
from frontdesk.errors import Invalid
from frontdesk.schedules.claim_store import owned_by, queue_of
from frontdesk.schedules.model import (
    Overlap,
    OwnerFilter,
    RunRecord,
    RunStatus,
    Schedule,
    ScheduleState,
    Trigger,
    from_us,
)
from frontdesk.schedules.store import SELECT_SCHEDULES, schedule_of, trigger_of

CURSOR_SHAPE = re.compile(r"(\d{1,18})\.(\d{1,16})", re.ASCII)


@dataclass(frozen=True, slots=True)
class UpcomingCursor:
    """The position in a list by next times: after this schedule, which fires at `fire_us`."""

    fire_us: int
    id: int

    def __str__(self) -> str:
        return f"{self.fire_us}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> "UpcomingCursor":
        found = CURSOR_SHAPE.fullmatch(text.strip())
        if found is None:
            raise Invalid("`after` is where the page before ended; begin the list anew")
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class UpcomingPage:
    """Schedules that will fire, the next one first; `next` is the cursor of the next page, None at the end."""

    schedules: Sequence[Schedule]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class NewestPage:
    """Schedules by their numbers, the newest first; pass `next` as `before`."""

    schedules: Sequence[Schedule]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class EndedRunsPage:
    """Runs that are over, the last first; pass `next` as `before`. `next` may be set although nothing was found."""

    runs: Sequence[RunRecord]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class UpcomingFire:
    """A schedule that will fire at `fire_us`, with the rule by which it may fire again."""

    fire_us: int
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class FiresAroundNow:
    """The times of fires after now and of runs that ended before now; `more` if some were left out."""

    ahead: Sequence[int] = ()
    behind: Sequence[tuple[int, RunStatus]] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """A mark that changes with every event: the last end of a run, the newest schedule, and the next fires."""

    ended_us: int
    schedule_id: int
    coming: Sequence[tuple[int, int]]

    @property
    def digest(self) -> str:
        """The mark as one short text."""
        return f"{self.ended_us}.{self.schedule_id}.{crc32(repr(self.coming).encode()):08x}"


@dataclass(frozen=True, slots=True)
class RunReference:
    """A run that a page looked up by its id."""

    run_id: str
    schedule_id: int
    agent_id: str


# Few schedules are in these states, and they have their own index.
IS_NOT_ACTIVE = text("state IN ('paused', 'cancelled', 'ended')")


class OverviewStore:
    """Reads data for pages, and changes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def upcoming(self, owner: OwnerFilter, after: UpcomingCursor | None, limit: int) -> Sequence[Schedule]:
        """Schedules that wait for their time, the next one first."""
        wanted = SELECT_SCHEDULES.where(*_waits_for_its_time(owner))
        if after is not None:
            at, number = schedules.c.fire_us, schedules.c.id
            # The first condition is redundant, but an index can serve it.
            wanted = wanted.where(at >= after.fire_us, or_(at > after.fire_us, number > after.id))
        return await self._read(wanted.order_by(schedules.c.fire_us, schedules.c.id).limit(limit))

    async def newest(
        self, owner: OwnerFilter, state: ScheduleState | None, before: int | None, limit: int
    ) -> Sequence[Schedule]:
        """Schedules by their numbers, the newest first."""
        wanted = SELECT_SCHEDULES.where(*owned_by(schedules, owner))
        if state is not None:
            wanted = wanted.where(
                schedules.c.state == state, *([] if state is ScheduleState.ACTIVE else [IS_NOT_ACTIVE])
            )
        if before is not None:
            wanted = wanted.where(schedules.c.id < before)
        return await self._read(wanted.order_by(schedules.c.id.desc()).limit(limit))

    async def fires_until(self, owner: OwnerFilter, until_us: int, limit: int) -> Sequence[UpcomingFire]:
        """Schedules that fire by that time."""
        names = ("fire_us", "kind", "value", "zone", "start_us", "end_us", "jitter_s")
        query = select(*(schedules.c[name] for name in names)).where(
            *_waits_for_its_time(owner), schedules.c.fire_us <= until_us
        )
        query = query.order_by(schedules.c.fire_us, schedules.c.id).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [UpcomingFire(row["fire_us"], trigger_of(row)) for row in rows]

    async def ended_since(self, owner: OwnerFilter, since_us: int, limit: int) -> Sequence[tuple[int, RunStatus]]:
        """When and how runs ended since then, the last one first."""
        at = occurrences.c.ended_us
        query = select(at, occurrences.c.standing).where(*owned_by(occurrences, owner), at >= since_us)
        # The index of an agent's runs is by due time, which is before their end.
        by = at if owner.agent_id is None else occurrences.c.intended_us
        query = query.where(by >= since_us).order_by(by.desc()).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [(row.ended_us, RunStatus(row.standing)) for row in rows]

    async def dead(self, owner: OwnerFilter, most: int) -> int:
        """How many runs are dead, counted up to `most`."""
        given_up = occurrences.c.standing == literal_column("'dead'")
        some = select(occurrences.c.id).where(given_up, *owned_by(occurrences, owner)).limit(most).subquery()
        count = select(func.count()).select_from(some)
        return await self._database.read(lambda connection: connection.execute(count).scalar_one())

    async def change_mark(self, owner: OwnerFilter, most: int) -> ChangeMark:
        """A mark that changes with every event.

        It needs no index of when schedules changed: creating, pausing, resuming, moving or starting a schedule changes
        what fires next, which has an index.
        """
        ended = select(func.max(occurrences.c.ended_us)).where(occurrences.c.ended_us.is_not(None))
        newest = select(ended.scalar_subquery(), select(func.max(schedules.c.id)).scalar_subquery())
        line = select(schedules.c.fire_us, schedules.c.id).where(*_waits_for_its_time(owner))
        line = line.order_by(schedules.c.fire_us, schedules.c.id).limit(most)

        def work(connection: Connection) -> ChangeMark:
            last, number = connection.execute(newest).one()
            return ChangeMark(last or 0, number or 0, [(row.fire_us, row.id) for row in connection.execute(line)])

        return await self._database.read(work)

    async def zones(self, ids: Collection[int]) -> Mapping[int, str]:
        """The zones of schedules, by their numbers."""
        query = select(schedules.c.id, schedules.c.zone).where(schedules.c.id.in_(ids))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.id: row.zone for row in rows}

    async def run_references(self, owner: OwnerFilter, ids: Collection[str]) -> Mapping[str, RunReference]:
        """The runs among these ids."""
        columns = (occurrences.c.id, occurrences.c.schedule_id, occurrences.c.agent_id)
        query = select(*columns).where(occurrences.c.id.in_(ids), *owned_by(occurrences, owner))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.id: RunReference(row.id, row.schedule_id, row.agent_id) for row in rows}

    async def turns_of(self, run: RunRecord, now_us: int, apart_us: int, limit: int) -> Sequence[str]:
        """The turns of a run, the newest first; clocks of two machines may differ by `apart_us`."""
        begun = [at for at in (run.started_us, *(one.started_us for one in run.earlier)) if at]
        if not begun:
            return []
        since, until = from_us(min(begun) - apart_us), from_us((run.ended_us or now_us) + apart_us)
        meanwhile = (turns.c.agent_id == run.agent_id, turns.c.started_at.between(since, until))
        query = select(turns.c.id).where(*meanwhile, turns.c.otid == run.id)
        query = query.order_by(turns.c.started_at.desc(), turns.c.id.desc()).limit(limit)
        return await self._database.read(lambda connection: connection.execute(query).scalars().all())

    async def _read(self, query: Select[tuple[object, ...]]) -> Sequence[Schedule]:
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [schedule_of(row) for row in rows]


def _waits_for_its_time(owner: OwnerFilter) -> list[ColumnElement[bool] | TextClause]:
    """The conditions for schedules that wait for their time; for one agent, by the index of its two queues."""
    found: list[ColumnElement[bool] | TextClause] = [SCHEDULE_IS_WAITING, *owned_by(schedules, owner)]
    if owner.agent_id is not None:
        found.append(schedules.c.lane.in_([queue_of(owner.agent_id, one) for one in (Overlap.QUEUE, Overlap.ALLOW)]))
    return found
