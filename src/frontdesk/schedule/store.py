"""Schedules in the database: made, shown, changed. Whoever changes one holds the lane it stands in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, select, true, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import UNDER_WAY, WAITS_FOR_ITS_TIME, lanes, occurrences, schedules
from frontdesk.errors import Conflict, NotFound
from frontdesk.schedule.bell import Bell
from frontdesk.schedule.due.again.store import RUNNING, occurrence_of
from frontdesk.schedule.due.settle.store import BEGAN_US, CANCELLED
from frontdesk.schedule.lanes.store import lower, owned
from frontdesk.schedule.model import (
    NewSchedule,
    Occurrence,
    Overlap,
    Schedule,
    Standing,
    State,
    TriggerKind,
    Whose,
    delivery_id,
)
from frontdesk.schedule.rows import lane_of, on_its_last, schedule_of, trigger_of, written
from frontdesk.schedule.triggers.next import fire_at, next_after

READ = select(schedules, BEGAN_US.label("began_us"))
LIVING = (State.ACTIVE, State.PAUSED)
CHUNK = 1_000
# Runs of one agent that were asked for by hand and have not ended.
MANUAL = 20


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Which schedules to list: the `limit` that come after the id `after`; `made_by` is the run that made them."""

    whose: Whose = field(default_factory=Whose)
    states: Sequence[State] = (State.ACTIVE,)
    made_by: str | None = None
    after: int = 0
    limit: int = 100


class Stale(Conflict):
    """Somebody else changed it since it was read; what was read is not to be written back."""


class ScheduleStore:
    """`intended_us` is always given: when a trigger fires is decided elsewhere."""

    def __init__(self, database: Database, bell: Bell) -> None:
        self._database = database
        self._bell = bell

    async def add(self, new: NewSchedule, intended_us: int, now_us: int, limit: int | None = None) -> Schedule:
        """A new schedule; an agent that has `limit` of them already gets no more."""

        def work(connection: Connection) -> RowMapping:
            lower(connection, {lane_of(new.agent_id, new.policy.overlap): intended_us}, now_us)
            if limit is not None and _count_living(connection, new.agent_id) >= limit:
                raise Conflict(f"Agent '{new.agent_id}' has {limit} schedules, the most it may have; cancel some first")
            row = {**written(new), **_fresh(intended_us, now_us)}
            number = connection.execute(insert(schedules).returning(schedules.c.id), row).scalar_one()
            if new.trigger.jitter_s:
                _change(connection, number, {"fire_us": fire_at(new.trigger, number, intended_us)})
            return _row(connection, number)

        made = schedule_of(await self._database.whole(work, small=True))
        self._bell.ring(intended_us, now_us)
        return made

    async def add_many(
        self, news: Sequence[tuple[NewSchedule, int]], now_us: int, fired: Sequence[int] = ()
    ) -> Sequence[int]:
        """Many new schedules, each with its intended time, all or none of them; their ids.

        `fired` is how often each has run elsewhere; left out, none has.
        """

        def work(connection: Connection) -> list[int]:
            lower(connection, _soonest(news), now_us)
            ids: list[int] = []
            for start in range(0, len(news), CHUNK):
                some = slice(start, start + CHUNK)
                ids += _insert_some(connection, news[some], now_us, fired[some] or [0] * len(news[some]))
            return ids

        if not news:
            return []
        made = await self._database.whole(work, small=False)
        self._bell.ring(min(intended for _, intended in news), now_us)
        return made

    async def get(self, schedule_id: int) -> Schedule | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(READ.where(schedules.c.id == schedule_id))).mappings().first()
        return None if row is None else schedule_of(row)

    async def list(self, wanted: ScheduleFilter) -> Sequence[Schedule]:
        chosen = _chosen(READ, wanted).where(schedules.c.id > wanted.after)
        async with self._database.reading() as connection:
            rows = (await connection.execute(chosen.order_by(schedules.c.id).limit(wanted.limit))).mappings().all()
        return [schedule_of(row) for row in rows]

    async def count(self, wanted: ScheduleFilter) -> int:
        async with self._database.reading() as connection:
            return (await connection.execute(_chosen(select(func.count()).select_from(schedules), wanted))).scalar_one()

    async def count_active(self, agent_id: str) -> int:
        return await self.count(ScheduleFilter(Whose(agent_id), LIVING))

    async def cancel(self, schedule_id: int, now_us: int) -> bool:
        """Nothing of it begins from now on, though what runs may end; False when it was over already."""

        def work(connection: Connection) -> bool:
            row = _held(connection, schedule_id, now_us)
            if row is None or row["state"] not in LIVING:
                return False
            gone = {"state": State.CANCELLED, "intended_us": None, "fire_us": None, "updated_us": now_us}
            connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(gone))
            waiting = (occurrences.c.schedule_id == schedule_id, occurrences.c.standing == Standing.WAITING)
            ended = {"standing": Standing.CANCELLED, "ended_us": now_us, "reason": CANCELLED, "available_us": None}
            if connection.execute(update(occurrences).where(*waiting).values(ended)).rowcount:
                # What stood behind it may begin now.
                lower(connection, dict.fromkeys(_lanes(row["agent_id"]), now_us), now_us)
            return True

        changed = await self._database.whole(work, small=True)
        self._bell.ring(now_us, now_us)
        return changed

    async def pause(self, schedule_id: int, now_us: int) -> bool:
        """Fire no more until it is resumed; what is under way goes on. False when it was not active."""

        def work(connection: Connection) -> bool:
            row = _held(connection, schedule_id, now_us)
            if row is None or row["state"] != State.ACTIVE:
                return False
            _change(connection, schedule_id, {"state": State.PAUSED, "updated_us": now_us})
            return True

        return await self._database.whole(work, small=True)

    async def resume(self, schedule_id: int, now_us: int) -> Schedule | None:
        """Go on; None when it was not paused.

        What recurs goes on with its next time, and leaves out those that passed meanwhile. What fires once and was
        due meanwhile is run now, or left out, as its policy says.
        """

        def work(connection: Connection) -> RowMapping | None:
            row = _held(connection, schedule_id, now_us)
            if row is None or row["state"] != State.PAUSED:
                return None
            intended = row["intended_us"]
            if intended is not None and intended <= now_us and row["kind"] != TriggerKind.ONCE:
                intended = next_after(trigger_of(row), now_us)
            state = State.ENDED if intended is None else State.ACTIVE
            _change(connection, schedule_id, {"state": state, "updated_us": now_us, **_times(row, intended)})
            if intended is not None:
                lower(connection, {row["lane"]: intended}, now_us)
            return _row(connection, schedule_id)

        return self._ring_for(await self._database.whole(work, small=True), now_us)

    async def update(
        self, schedule_id: int, what: NewSchedule, intended_us: int | None, now_us: int, seen: Schedule | None = None
    ) -> Schedule | None:
        """Make it another; None when it is over. Without a new intended time it keeps the one it has.

        `seen` is what the change was made from; `Stale` if it is not that any more.
        """

        def work(connection: Connection) -> RowMapping | None:
            row = _held(connection, schedule_id, now_us)
            if row is None or row["state"] not in LIVING:
                return None
            if seen is not None and schedule_of(row).what != seen.what:
                raise Stale(f"Schedule {schedule_id} was changed meanwhile; look at it again and repeat the change")
            if what.agent_id != row["agent_id"]:
                raise Conflict("A schedule stays with its agent; make a new one for another agent")
            values: dict[str, Any] = {**written(what), "updated_us": now_us}
            intended = intended_us if intended_us is not None else row["intended_us"]
            _change(connection, schedule_id, {**values, **_times({"id": schedule_id, **values}, intended)})
            if intended is not None:
                lower(connection, {values["lane"]: intended}, now_us)
            return _row(connection, schedule_id)

        return self._ring_for(await self._database.whole(work, small=True), now_us)

    async def run_now(self, schedule_id: int, now_us: int) -> str:
        """Have it run as soon as its agent is free, beside its rule; the delivery id."""

        def work(connection: Connection) -> str:
            row = _held(connection, schedule_id, now_us)
            if row is None:
                raise NotFound(f"Schedule {schedule_id} not found")
            if row["state"] == State.CANCELLED:
                raise Conflict(f"Schedule {schedule_id} was cancelled; make a new one")
            lower(connection, {row["lane"]: now_us}, now_us)
            waiting = (occurrences.c.lane == row["lane"], UNDER_WAY, occurrences.c.manual == true())
            if connection.execute(select(func.count()).select_from(occurrences).where(*waiting)).scalar_one() >= MANUAL:
                raise Conflict(f"{MANUAL} runs of agent '{row['agent_id']}' were asked for and have not ended; wait")
            return _insert_manual(connection, row, now_us)

        made = await self._database.whole(work, small=True)
        self._bell.ring(now_us, now_us)
        return made

    async def under_way(self, agent_id: str) -> Occurrence | None:
        """The run that an agent is in just now: of several, the one begun last."""
        running = (
            RUNNING.where(occurrences.c.lane.in_(_lanes(agent_id))).order_by(occurrences.c.started_us.desc()).limit(1)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(running)).first()
        return None if row is None else occurrence_of(row)

    async def next_due(self) -> int | None:
        """When a worker must look next."""
        async with self._database.reading() as connection:
            return (await connection.execute(select(func.min(lanes.c.due_us)))).scalar_one()

    async def next_of(self, agents: Sequence[str]) -> Mapping[str, int]:
        """When each of these agents is prompted next; who has nothing to come is left out."""
        soonest = select(func.min(schedules.c.fire_us)).where(schedules.c.lane == lanes.c.name, WAITS_FOR_ITS_TIME)
        names = {lane: agent for agent in agents for lane in _lanes(agent)}
        wanted = select(lanes.c.name, soonest.scalar_subquery().label("us")).where(lanes.c.name.in_(names))
        async with self._database.reading() as connection:
            rows = [(names[row.name], row.us) for row in await connection.execute(wanted) if row.us is not None]
        return {agent: min(us for name, us in rows if name == agent) for agent, _ in rows}

    async def upcoming(self, agent_id: str, limit: int) -> Sequence[Schedule]:
        """What an agent is prompted with next, the soonest first."""

        def work(connection: Connection) -> list[Schedule]:
            found: list[Schedule] = []
            for lane in _lanes(agent_id):
                line = READ.where(schedules.c.lane == lane, WAITS_FOR_ITS_TIME)
                rows = connection.execute(line.order_by(schedules.c.fire_us, schedules.c.id).limit(limit)).mappings()
                found += [schedule_of(row) for row in rows]
            return sorted(found, key=lambda one: (one.fire_us or 0, one.id))[:limit]

        return await self._database.look(work)

    def _ring_for(self, row: RowMapping | None, now_us: int) -> Schedule | None:
        if row is None:
            return None
        if row["fire_us"] is not None:
            self._bell.ring(row["fire_us"], now_us)
        return schedule_of(row)


def _chosen(statement: Select[Any], wanted: ScheduleFilter) -> Select[Any]:
    chosen = statement.where(*owned(schedules, wanted.whose))
    if wanted.states:
        chosen = chosen.where(schedules.c.state.in_(wanted.states))
    return chosen if wanted.made_by is None else chosen.where(schedules.c.made_by == wanted.made_by)


def _fresh(intended_us: int, now_us: int) -> dict[str, Any]:
    return {
        "state": State.ACTIVE,
        "intended_us": intended_us,
        "fire_us": intended_us,
        "fired": 0,
        "created_us": now_us,
        "updated_us": now_us,
    }


def _soonest(news: Sequence[tuple[NewSchedule, int]]) -> dict[str, int | None]:
    """When each lane is due for these."""
    due: dict[str, int | None] = {}
    for new, intended in news:
        lane = lane_of(new.agent_id, new.policy.overlap)
        sooner = due.get(lane)
        due[lane] = intended if sooner is None else min(sooner, intended)
    return due


def _insert_some(
    connection: Connection, news: Sequence[tuple[NewSchedule, int]], now_us: int, fired: Sequence[int]
) -> list[int]:
    rows = [
        {**written(new), **_fresh(intended, now_us), "fired": count}
        for (new, intended), count in zip(news, fired, strict=True)
    ]
    made = insert(schedules).returning(schedules.c.id, sort_by_parameter_order=True)
    ids = list(connection.execute(made, rows).scalars())
    for number, (new, intended) in zip(ids, news, strict=True):
        if new.trigger.jitter_s:
            _change(connection, number, {"fire_us": fire_at(new.trigger, number, intended)})
    return ids


def _insert_manual(connection: Connection, row: RowMapping, now_us: int) -> str:
    intended = now_us
    taken = select(occurrences.c.id).where(occurrences.c.schedule_id == row["id"])
    # The id tells milliseconds, and this one may have been given away.
    while connection.execute(taken.where(occurrences.c.id == delivery_id(row["id"], intended))).first():
        intended += 1_000
    made = delivery_id(row["id"], intended)
    new = {
        "id": made,
        "schedule_id": row["id"],
        "agent_id": row["agent_id"],
        "user_id": row["user_id"],
        "lane": row["lane"],
        "serial": row["overlap"] != Overlap.ALLOW,
        "intended_us": intended,
        "number": row["fired"],
        "manual": True,
        "standing": Standing.WAITING,
        "attempt": 0,
        "lost": 0,
        "in_doubt": False,
        "fence": 0,
        "available_us": now_us,
        "created_us": now_us,
    }
    connection.execute(insert(occurrences), new)
    return made


def _held(connection: Connection, schedule_id: int, now_us: int) -> RowMapping | None:
    """The schedule, which nobody else claims or changes before this transaction ends."""
    wanted = READ.where(schedules.c.id == schedule_id)
    row = connection.execute(wanted).mappings().first()
    if row is None:
        return None
    # Both lines of the agent: the schedule may be moved from one to the other, and its runs stand where they began.
    lower(connection, dict.fromkeys(_lanes(row["agent_id"])), now_us)
    row = connection.execute(wanted).mappings().first()
    if row is None or row["began_us"] is None:
        return row
    # It is about to be changed: the end of the run must not take what it will be for what it was.
    _change(connection, schedule_id, on_its_last(row))
    return _row(connection, schedule_id)


def _lanes(agent_id: str) -> list[str]:
    return [lane_of(agent_id, overlap) for overlap in (Overlap.QUEUE, Overlap.ALLOW)]


def _count_living(connection: Connection, agent_id: str) -> int:
    wanted = _chosen(select(func.count()).select_from(schedules), ScheduleFilter(Whose(agent_id), LIVING))
    return connection.execute(wanted).scalar_one()


def _row(connection: Connection, schedule_id: int) -> RowMapping:
    return connection.execute(READ.where(schedules.c.id == schedule_id)).mappings().one()


def _change(connection: Connection, schedule_id: int, values: dict[str, Any]) -> None:
    connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(values))


def _times(row: RowMapping | dict[str, Any], intended_us: int | None) -> dict[str, Any]:
    fire_us = None if intended_us is None else fire_at(trigger_of(row), row["id"], intended_us)
    return {"intended_us": intended_us, "fire_us": fire_us}
