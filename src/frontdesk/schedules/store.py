"""Stores schedules, their states and default agents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, select, true, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import RUN_IS_ACTIVE, SCHEDULE_IS_WAITING, agent_defaults, lanes, occurrences, schedules
from frontdesk.errors import Conflict, NotFound
from frontdesk.identity.authority import Authority
from frontdesk.schedules.claim_store import (
    RUNNING_RUNS,
    SCHEDULE_CANCELLED,
    lower_due,
    occurrence_of,
    owned_by,
    queue_of,
)
from frontdesk.schedules.model import (
    AnswerForwarding,
    Misfire,
    Occurrence,
    Overlap,
    OwnerFilter,
    RunStatus,
    Schedule,
    ScheduleDefinition,
    SchedulePolicy,
    ScheduleState,
    Trigger,
    TriggerKind,
    delivery_id,
)
from frontdesk.schedules.triggers import add_jitter, next_fire_after
from frontdesk.schedules.wakeup import WakeupNotifier

# A schedule keeps its last time during that run; this is when the run started.
LAST_FIRE_BEGAN_US = (
    select(occurrences.c.created_us)
    .where(
        occurrences.c.schedule_id == schedules.c.id, occurrences.c.intended_us == schedules.c.intended_us, RUN_IS_ACTIVE
    )
    .correlate(schedules)
    .scalar_subquery()
)
SELECT_SCHEDULES = select(schedules, LAST_FIRE_BEGAN_US.label("began_us"))
LIVE_STATES = (ScheduleState.ACTIVE, ScheduleState.PAUSED)
INSERT_BATCH = 1_000
# The number of active manual runs per agent.
MAX_MANUAL_RUNS = 20


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Which schedules to list: at most `limit` with an id above `after`; `made_by` is the run that created them."""

    whose: OwnerFilter = field(default_factory=OwnerFilter)
    states: Sequence[ScheduleState] = (ScheduleState.ACTIVE,)
    made_by: str | None = None
    after: int = 0
    limit: int = 100


class StaleSchedule(Conflict):
    """The schedule was changed since it was read, so a change based on the old state is refused."""


class RowValues(Protocol):
    """A row of the table, or the values of one."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401 - a column of any type


def definition_columns(what: ScheduleDefinition) -> dict[str, Any]:
    """The columns for the definition of a schedule."""
    trigger, policy, forward = what.trigger, what.policy, what.forward
    return {
        "agent_id": what.agent_id,
        "user_id": what.user_id,
        "lane": queue_of(what.agent_id, policy.overlap),
        "prompt": what.prompt,
        "kind": trigger.kind,
        "value": trigger.value,
        "zone": trigger.zone,
        "start_us": trigger.start_us,
        "end_us": trigger.end_us,
        "jitter_s": trigger.jitter_s,
        "max_repetitions": what.max_repetitions,
        "overlap": policy.overlap,
        "misfire": policy.misfire,
        "max_late_s": policy.max_late_s,
        "attempts": policy.attempts,
        "words": what.words,
        "webhook": forward.webhook,
        "timeline": forward.timeline,
        "conversation_id": what.conversation_id,
        "made_by": what.made_by,
        **what.authority.columns,
    }


def trigger_of(row: RowValues) -> Trigger:
    times = (row["start_us"], row["end_us"], row["jitter_s"])
    return Trigger(TriggerKind(row["kind"]), row["value"], row["zone"], *times)


def columns_after_last_fire(row: RowValues) -> dict[str, Any]:
    """The columns of a schedule in its last run, as if they had been written at the start of that run."""
    return {"intended_us": None, "fire_us": None, "fired": row["fired"] + 1, "last_us": row["began_us"]}


def schedule_of(row: RowValues) -> Schedule:
    """Build a schedule from its row, and from the start of its last run if that run is active."""
    times = row if row["began_us"] is None else columns_after_last_fire(row)
    what = ScheduleDefinition(
        agent_id=row["agent_id"],
        prompt=row["prompt"],
        trigger=trigger_of(row),
        user_id=row["user_id"],
        policy=SchedulePolicy(Overlap(row["overlap"]), Misfire(row["misfire"]), row["max_late_s"], row["attempts"]),
        max_repetitions=row["max_repetitions"],
        words=row["words"],
        forward=AnswerForwarding(row["webhook"], row["timeline"]),
        conversation_id=row["conversation_id"],
        made_by=row["made_by"],
        authority=Authority.from_columns(row["credentials"], row["scopes"]),
    )
    return Schedule(
        id=row["id"],
        what=what,
        state=ScheduleState(row["state"]),
        intended_us=times["intended_us"],
        fire_us=times["fire_us"],
        fired=times["fired"],
        last_us=times["last_us"],
        created_us=row["created_us"],
        updated_us=row["updated_us"],
    )


class ScheduleStore:
    """Stores schedules. Callers compute `intended_us`."""

    def __init__(self, database: Database, notifier: WakeupNotifier) -> None:
        self._database = database
        self._notifier = notifier

    async def add(self, new: ScheduleDefinition, intended_us: int, now_us: int, limit: int | None = None) -> Schedule:
        """Add a schedule, unless the agent already has `limit` of them."""

        def work(connection: Connection) -> RowMapping:
            lower_due(connection, {queue_of(new.agent_id, new.policy.overlap): intended_us}, now_us)
            if limit is not None and _count_live(connection, new.agent_id) >= limit:
                raise Conflict(f"Agent '{new.agent_id}' has {limit} schedules, the most it may have; cancel some first")
            row = {**definition_columns(new), **_new_schedule_columns(intended_us, now_us)}
            number = connection.execute(insert(schedules).returning(schedules.c.id), row).scalar_one()
            if new.trigger.jitter_s:
                _update_schedule(connection, number, {"fire_us": add_jitter(new.trigger, number, intended_us)})
            return _read_schedule(connection, number)

        made = schedule_of(await self._database.write(work, small=True))
        self._notifier.notify(intended_us, now_us)
        return made

    async def add_many(
        self, news: Sequence[tuple[ScheduleDefinition, int]], now_us: int, fired: Sequence[int] = ()
    ) -> Sequence[int]:
        """Add many schedules, each with its intended time, all or none; returns their ids.

        `fired` is how often each has already run elsewhere.
        """

        def work(connection: Connection) -> list[int]:
            lower_due(connection, _earliest_by_queue(news), now_us)
            ids: list[int] = []
            for start in range(0, len(news), INSERT_BATCH):
                some = slice(start, start + INSERT_BATCH)
                ids += _insert_batch(connection, news[some], now_us, fired[some] or [0] * len(news[some]))
            return ids

        if not news:
            return []
        made = await self._database.write(work, small=False)
        self._notifier.notify(min(intended for _, intended in news), now_us)
        return made

    async def get(self, schedule_id: int) -> Schedule | None:
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(SELECT_SCHEDULES.where(schedules.c.id == schedule_id))).mappings().first()
        return None if row is None else schedule_of(row)

    async def list(self, filters: ScheduleFilter) -> Sequence[Schedule]:
        chosen = _apply_filter(SELECT_SCHEDULES, filters).where(schedules.c.id > filters.after)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(chosen.order_by(schedules.c.id).limit(filters.limit))).mappings().all()
        return [schedule_of(row) for row in rows]

    async def count(self, filters: ScheduleFilter) -> int:
        async with self._database.read_transaction() as connection:
            return (
                await connection.execute(_apply_filter(select(func.count()).select_from(schedules), filters))
            ).scalar_one()

    async def count_active(self, agent_id: str) -> int:
        return await self.count(ScheduleFilter(OwnerFilter(agent_id), LIVE_STATES))

    async def cancel(self, schedule_id: int, now_us: int) -> bool:
        """Cancel a schedule: no further run starts, an active run may end. False if it was already over."""

        def work(connection: Connection) -> bool:
            row = _lock_schedule(connection, schedule_id, now_us)
            if row is None or row["state"] not in LIVE_STATES:
                return False
            gone = {"state": ScheduleState.CANCELLED, "intended_us": None, "fire_us": None, "updated_us": now_us}
            connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(gone))
            waiting = (occurrences.c.schedule_id == schedule_id, occurrences.c.standing == RunStatus.WAITING)
            ended = {
                "standing": RunStatus.CANCELLED,
                "ended_us": now_us,
                "reason": SCHEDULE_CANCELLED,
                "available_us": None,
            }
            if connection.execute(update(occurrences).where(*waiting).values(ended)).rowcount:
                # The next run in the queue may start now.
                lower_due(connection, dict.fromkeys(_queues_of(row["agent_id"]), now_us), now_us)
            return True

        changed = await self._database.write(work, small=True)
        self._notifier.notify(now_us, now_us)
        return changed

    async def pause(self, schedule_id: int, now_us: int) -> bool:
        """Pause a schedule; an active run continues. False if it was not active."""

        def work(connection: Connection) -> bool:
            row = _lock_schedule(connection, schedule_id, now_us)
            if row is None or row["state"] != ScheduleState.ACTIVE:
                return False
            _update_schedule(connection, schedule_id, {"state": ScheduleState.PAUSED, "updated_us": now_us})
            return True

        return await self._database.write(work, small=True)

    async def resume(self, schedule_id: int, now_us: int) -> Schedule | None:
        """Resume a schedule; None if it was not paused.

        A recurring schedule continues with its next time, and skips those that passed meanwhile. A one-time schedule
        that became due meanwhile runs now or is skipped, by its policy.
        """

        def work(connection: Connection) -> RowMapping | None:
            row = _lock_schedule(connection, schedule_id, now_us)
            if row is None or row["state"] != ScheduleState.PAUSED:
                return None
            intended = row["intended_us"]
            if intended is not None and intended <= now_us and row["kind"] != TriggerKind.ONCE:
                intended = next_fire_after(trigger_of(row), now_us)
            state = ScheduleState.ENDED if intended is None else ScheduleState.ACTIVE
            _update_schedule(
                connection, schedule_id, {"state": state, "updated_us": now_us, **_fire_columns(row, intended)}
            )
            if intended is not None:
                lower_due(connection, {row["lane"]: intended}, now_us)
            return _read_schedule(connection, schedule_id)

        return self._notify_for(await self._database.write(work, small=True), now_us)

    async def update(
        self,
        schedule_id: int,
        what: ScheduleDefinition,
        intended_us: int | None,
        now_us: int,
        seen: Schedule | None = None,
    ) -> Schedule | None:
        """Change a schedule; None if it is over. Without `intended_us` it keeps its next time.

        `seen` is the schedule that the change is based on; raises `StaleSchedule` if it was changed since.
        """

        def work(connection: Connection) -> RowMapping | None:
            row = _lock_schedule(connection, schedule_id, now_us)
            if row is None or row["state"] not in LIVE_STATES:
                return None
            if seen is not None and schedule_of(row).what != seen.what:
                raise StaleSchedule(
                    f"Schedule {schedule_id} was changed meanwhile; look at it again and repeat the change"
                )
            if what.agent_id != row["agent_id"]:
                raise Conflict("A schedule stays with its agent; make a new one for another agent")
            values: dict[str, Any] = {**definition_columns(what), "updated_us": now_us}
            intended = intended_us if intended_us is not None else row["intended_us"]
            _update_schedule(
                connection, schedule_id, {**values, **_fire_columns({"id": schedule_id, **values}, intended)}
            )
            if intended is not None:
                lower_due(connection, {values["lane"]: intended}, now_us)
            return _read_schedule(connection, schedule_id)

        return self._notify_for(await self._database.write(work, small=True), now_us)

    async def run_now(self, schedule_id: int, now_us: int) -> str:
        """Add a run as soon as the agent is free, in addition to the rule; returns the delivery id."""

        def work(connection: Connection) -> str:
            row = _lock_schedule(connection, schedule_id, now_us)
            if row is None:
                raise NotFound(f"Schedule {schedule_id} not found")
            if row["state"] == ScheduleState.CANCELLED:
                raise Conflict(f"Schedule {schedule_id} was cancelled; make a new one")
            lower_due(connection, {row["lane"]: now_us}, now_us)
            waiting = (occurrences.c.lane == row["lane"], RUN_IS_ACTIVE, occurrences.c.manual == true())
            if (
                connection.execute(select(func.count()).select_from(occurrences).where(*waiting)).scalar_one()
                >= MAX_MANUAL_RUNS
            ):
                raise Conflict(
                    f"{MAX_MANUAL_RUNS} runs of agent '{row['agent_id']}' were asked for and have not ended; wait"
                )
            return _insert_manual(connection, row, now_us)

        made = await self._database.write(work, small=True)
        self._notifier.notify(now_us, now_us)
        return made

    async def under_way(self, agent_id: str) -> Occurrence | None:
        """The active run of an agent; if there are several, the one that started last."""
        running = (
            RUNNING_RUNS.where(occurrences.c.lane.in_(_queues_of(agent_id)))
            .order_by(occurrences.c.started_us.desc())
            .limit(1)
        )
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(running)).first()
        return None if row is None else occurrence_of(row)

    async def next_due(self) -> int | None:
        """When a worker must look for work next."""
        async with self._database.read_transaction() as connection:
            return (await connection.execute(select(func.min(lanes.c.due_us)))).scalar_one()

    async def next_fire_of_agents(self, agents: Sequence[str]) -> Mapping[str, int]:
        """When each of these agents is prompted next; agents without a schedule are missing."""
        soonest = select(func.min(schedules.c.fire_us)).where(schedules.c.lane == lanes.c.name, SCHEDULE_IS_WAITING)
        names = {lane: agent for agent in agents for lane in _queues_of(agent)}
        query = select(lanes.c.name, soonest.scalar_subquery().label("us")).where(lanes.c.name.in_(names))
        async with self._database.read_transaction() as connection:
            rows = [(names[row.name], row.us) for row in await connection.execute(query) if row.us is not None]
        return {agent: min(us for name, us in rows if name == agent) for agent, _ in rows}

    async def upcoming(self, agent_id: str, limit: int) -> Sequence[Schedule]:
        """The next schedules of an agent, the soonest first."""

        def work(connection: Connection) -> list[Schedule]:
            found: list[Schedule] = []
            for lane in _queues_of(agent_id):
                line = SELECT_SCHEDULES.where(schedules.c.lane == lane, SCHEDULE_IS_WAITING)
                rows = connection.execute(line.order_by(schedules.c.fire_us, schedules.c.id).limit(limit)).mappings()
                found += [schedule_of(row) for row in rows]
            return sorted(found, key=lambda one: (one.fire_us or 0, one.id))[:limit]

        return await self._database.read(work)

    def _notify_for(self, row: RowMapping | None, now_us: int) -> Schedule | None:
        if row is None:
            return None
        if row["fire_us"] is not None:
            self._notifier.notify(row["fire_us"], now_us)
        return schedule_of(row)


def _apply_filter(statement: Select[Any], filters: ScheduleFilter) -> Select[Any]:
    chosen = statement.where(*owned_by(schedules, filters.whose))
    if filters.states:
        chosen = chosen.where(schedules.c.state.in_(filters.states))
    return chosen if filters.made_by is None else chosen.where(schedules.c.made_by == filters.made_by)


def _new_schedule_columns(intended_us: int, now_us: int) -> dict[str, Any]:
    return {
        "state": ScheduleState.ACTIVE,
        "intended_us": intended_us,
        "fire_us": intended_us,
        "fired": 0,
        "created_us": now_us,
        "updated_us": now_us,
    }


def _earliest_by_queue(news: Sequence[tuple[ScheduleDefinition, int]]) -> dict[str, int | None]:
    """The time at which each queue is due for these schedules."""
    due: dict[str, int | None] = {}
    for new, intended in news:
        lane = queue_of(new.agent_id, new.policy.overlap)
        sooner = due.get(lane)
        due[lane] = intended if sooner is None else min(sooner, intended)
    return due


def _insert_batch(
    connection: Connection, news: Sequence[tuple[ScheduleDefinition, int]], now_us: int, fired: Sequence[int]
) -> list[int]:
    rows = [
        {**definition_columns(new), **_new_schedule_columns(intended, now_us), "fired": count}
        for (new, intended), count in zip(news, fired, strict=True)
    ]
    made = insert(schedules).returning(schedules.c.id, sort_by_parameter_order=True)
    ids = list(connection.execute(made, rows).scalars())
    for number, (new, intended) in zip(ids, news, strict=True):
        if new.trigger.jitter_s:
            _update_schedule(connection, number, {"fire_us": add_jitter(new.trigger, number, intended)})
    return ids


def _insert_manual(connection: Connection, row: RowMapping, now_us: int) -> str:
    intended = now_us
    taken = select(occurrences.c.id).where(occurrences.c.schedule_id == row["id"])
    # The id contains milliseconds, so this one may be taken.
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
        "standing": RunStatus.WAITING,
        "attempt": 0,
        "lost": 0,
        "in_doubt": False,
        "fence": 0,
        "available_us": now_us,
        "created_us": now_us,
    }
    connection.execute(insert(occurrences), new)
    return made


def _lock_schedule(connection: Connection, schedule_id: int, now_us: int) -> RowMapping | None:
    """Read a schedule and lock it: nothing else claims or changes it before this transaction ends."""
    wanted = SELECT_SCHEDULES.where(schedules.c.id == schedule_id)
    row = connection.execute(wanted).mappings().first()
    if row is None:
        return None
    # Both queues of the agent: the schedule may move from one to the other, but its runs stay in the old queue.
    lower_due(connection, dict.fromkeys(_queues_of(row["agent_id"])), now_us)
    row = connection.execute(wanted).mappings().first()
    if row is None or row["began_us"] is None:
        return row
    # The row is about to change: the end of the run must not change the new schedule.
    _update_schedule(connection, schedule_id, columns_after_last_fire(row))
    return _read_schedule(connection, schedule_id)


def _queues_of(agent_id: str) -> list[str]:
    return [queue_of(agent_id, overlap) for overlap in (Overlap.QUEUE, Overlap.ALLOW)]


def _count_live(connection: Connection, agent_id: str) -> int:
    wanted = _apply_filter(
        select(func.count()).select_from(schedules), ScheduleFilter(OwnerFilter(agent_id), LIVE_STATES)
    )
    return connection.execute(wanted).scalar_one()


def _read_schedule(connection: Connection, schedule_id: int) -> RowMapping:
    return connection.execute(SELECT_SCHEDULES.where(schedules.c.id == schedule_id)).mappings().one()


def _update_schedule(connection: Connection, schedule_id: int, values: dict[str, Any]) -> None:
    connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(values))


def _fire_columns(row: RowMapping | dict[str, Any], intended_us: int | None) -> dict[str, Any]:
    fire_us = None if intended_us is None else add_jitter(trigger_of(row), row["id"], intended_us)
    return {"intended_us": intended_us, "fire_us": fire_us}


class DefaultAgentStore:
    """Stores default agents by scope; '' is the scope of all callers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, scope: str) -> str | None:
        async with self._database.read_transaction() as connection:
            return (
                await connection.execute(select(agent_defaults.c.agent_id).where(agent_defaults.c.scope == scope))
            ).scalar_one_or_none()

    async def set(self, scope: str, agent_id: str | None, now_us: int) -> None:
        """Set the default agent of a scope, or remove it with None."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(agent_defaults).where(agent_defaults.c.scope == scope))
            if agent_id is not None:
                row = {"scope": scope, "agent_id": agent_id, "updated_us": now_us}
                await connection.execute(insert(agent_defaults), row)
