"""Schedules by when they fire next and by their numbers, and times around now, in the database; each by an index."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, Select, TextClause, func, literal_column, or_, select, text

from frontdesk.db.engine import Database
from frontdesk.db.schema import WAITS_FOR_ITS_TIME, occurrences, schedules, turns
from frontdesk.schedule.lanes.store import owned
from frontdesk.schedule.model import Overlap, Past, Schedule, Standing, State, Whose, moment
from frontdesk.schedule.overview.model import Newer, Sent, Turn, Waiting
from frontdesk.schedule.rows import lane_of, schedule_of, trigger_of
from frontdesk.schedule.store import READ

# What does not wait for its time; these are few beside all others, and found by an index of their own.
RESTS = text("state IN ('paused', 'cancelled', 'ended')")


class OverviewStore:
    """Looks, and changes nothing; every list is bounded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def coming(self, whose: Whose, after: Turn | None, limit: int) -> Sequence[Schedule]:
        """Those that wait for their time, the next one first."""
        wanted = READ.where(*_waiting(whose))
        if after is not None:
            at, number = schedules.c.fire_us, schedules.c.id
            # The first says nothing new, but is what an index can be asked.
            wanted = wanted.where(at >= after.fire_us, or_(at > after.fire_us, number > after.id))
        return await self._read(wanted.order_by(schedules.c.fire_us, schedules.c.id).limit(limit))

    async def newest(self, whose: Whose, state: State | None, before: int | None, limit: int) -> Sequence[Schedule]:
        """By their numbers, the newest first."""
        wanted = READ.where(*owned(schedules, whose))
        if state is not None:
            wanted = wanted.where(schedules.c.state == state, *([] if state is State.ACTIVE else [RESTS]))
        if before is not None:
            wanted = wanted.where(schedules.c.id < before)
        return await self._read(wanted.order_by(schedules.c.id.desc()).limit(limit))

    async def ahead(self, whose: Whose, until_us: int, limit: int) -> Sequence[Waiting]:
        """What fires by then."""
        names = ("fire_us", "kind", "value", "zone", "start_us", "end_us", "jitter_s")
        wanted = select(*(schedules.c[name] for name in names)).where(*_waiting(whose), schedules.c.fire_us <= until_us)
        wanted = wanted.order_by(schedules.c.fire_us, schedules.c.id).limit(limit)
        rows = await self._database.look(lambda connection: connection.execute(wanted).mappings().all())
        return [Waiting(row["fire_us"], trigger_of(row)) for row in rows]

    async def behind(self, whose: Whose, since_us: int, limit: int) -> Sequence[tuple[int, Standing]]:
        """What ended since then, the last one first."""
        at = occurrences.c.ended_us
        wanted = select(at, occurrences.c.standing).where(*owned(occurrences, whose), at >= since_us)
        # An agent's runs are kept by when they were due, which is before they end.
        by = at if whose.agent_id is None else occurrences.c.intended_us
        wanted = wanted.where(by >= since_us).order_by(by.desc()).limit(limit)
        rows = await self._database.look(lambda connection: connection.execute(wanted).all())
        return [(row.ended_us, Standing(row.standing)) for row in rows]

    async def dead(self, whose: Whose, most: int) -> int:
        """How many runs were given up; nobody counts further than `most`."""
        given_up = occurrences.c.standing == literal_column("'dead'")
        some = select(occurrences.c.id).where(given_up, *owned(occurrences, whose)).limit(most).subquery()
        count = select(func.count()).select_from(some)
        return await self._database.look(lambda connection: connection.execute(count).scalar_one())

    async def newer(self, whose: Whose, most: int) -> Newer:
        """By what one can tell that something happened: no index has when a schedule was changed, and none is needed.

        What is made, paused, resumed, moved or begun changes what fires next; the index that has this has all of it.
        """
        ended = select(func.max(occurrences.c.ended_us)).where(occurrences.c.ended_us.is_not(None))
        newest = select(ended.scalar_subquery(), select(func.max(schedules.c.id)).scalar_subquery())
        line = select(schedules.c.fire_us, schedules.c.id).where(*_waiting(whose))
        line = line.order_by(schedules.c.fire_us, schedules.c.id).limit(most)

        def work(connection: Connection) -> Newer:
            last, number = connection.execute(newest).one()
            return Newer(last or 0, number or 0, [(row.fire_us, row.id) for row in connection.execute(line)])

        return await self._database.look(work)

    async def zones(self, ids: Collection[int]) -> Mapping[int, str]:
        """The zones of schedules, by their numbers."""
        wanted = select(schedules.c.id, schedules.c.zone).where(schedules.c.id.in_(ids))
        rows = await self._database.look(lambda connection: connection.execute(wanted).all())
        return {row.id: row.zone for row in rows}

    async def sent(self, whose: Whose, ids: Collection[str]) -> Mapping[str, Sent]:
        """Of these ids those of runs, and which schedule's they are."""
        columns = (occurrences.c.id, occurrences.c.schedule_id, occurrences.c.agent_id)
        wanted = select(*columns).where(occurrences.c.id.in_(ids), *owned(occurrences, whose))
        rows = await self._database.look(lambda connection: connection.execute(wanted).all())
        return {row.id: Sent(row.id, row.schedule_id, row.agent_id) for row in rows}

    async def turns_of(self, run: Past, now_us: int, apart_us: int, limit: int) -> Sequence[str]:
        """The turns that a run made, the newest first: among those its agent took meanwhile, by clocks so far apart."""
        begun = [at for at in (run.started_us, *(one.started_us for one in run.earlier)) if at]
        if not begun:
            return []
        since, until = moment(min(begun) - apart_us), moment((run.ended_us or now_us) + apart_us)
        meanwhile = (turns.c.agent_id == run.agent_id, turns.c.started_at.between(since, until))
        wanted = select(turns.c.id).where(*meanwhile, turns.c.otid == run.id)
        wanted = wanted.order_by(turns.c.started_at.desc(), turns.c.id.desc()).limit(limit)
        return await self._database.look(lambda connection: connection.execute(wanted).scalars().all())

    async def _read(self, wanted: Select[tuple[object, ...]]) -> Sequence[Schedule]:
        rows = await self._database.look(lambda connection: connection.execute(wanted).mappings().all())
        return [schedule_of(row) for row in rows]


def _waiting(whose: Whose) -> list[ColumnElement[bool] | TextClause]:
    """What waits for its time; an agent's stand in its two lines, and are kept there by time."""
    found: list[ColumnElement[bool] | TextClause] = [WAITS_FOR_ITS_TIME, *owned(schedules, whose)]
    if whose.agent_id is not None:
        found.append(schedules.c.lane.in_([lane_of(whose.agent_id, one) for one in (Overlap.QUEUE, Overlap.ALLOW)]))
    return found
