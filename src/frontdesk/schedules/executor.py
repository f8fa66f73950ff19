"""Delivers due prompts on request, and reports how the worker of this process is doing."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import structlog
from anyio.abc import TaskGroup

from frontdesk.background import BackgroundJob
from frontdesk.errors import Unavailable
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.schedules.access import (
    is_agent_calling,
    is_schedules_admin,
    owner_filter,
    require_read,
    require_schedules_admin,
    require_write,
)
from frontdesk.schedules.delivery_rules import SettledRun
from frontdesk.schedules.history_store import HistoryQuery, HistoryStore, OverdueSchedule, RunHolder
from frontdesk.schedules.model import (
    OwnerFilter,
    RunRecord,
    RunStatus,
    Schedule,
    ScheduleState,
    delivery_id,
    now_us,
)
from frontdesk.schedules.requests import (
    MAX_LOOP_SECONDS,
    ExecutedRun,
    ExecutorState,
    parse_loop_interval_s,
    parse_within,
)
from frontdesk.schedules.store import ScheduleFilter, ScheduleStore
from frontdesk.schedules.worker import ScheduleMetrics, Worker

ON_DEMAND_JOB = BackgroundJob(structlog.get_logger("frontdesk.schedules"), "schedule_waits", "schedule_failed")


@dataclass(frozen=True, slots=True)
class OnDemandRun:
    """One of them, from its start to its end."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class OnDemandRuns:
    """Each caller's are delivered in one stretch at a time, however often they ask."""

    def __init__(self, tasks: TaskGroup, deliver: Callable[[OwnerFilter], Awaitable[object]]) -> None:
        self._tasks = tasks
        self._deliver = deliver
        self._under_way: dict[OwnerFilter, OnDemandRun] = {}

    def start(self, whose: OwnerFilter) -> None:
        if whose not in self._under_way:
            self._under_way[whose] = OnDemandRun()
            self._tasks.start_soon(self._run, whose, self._under_way[whose])

    async def close(self) -> None:
        """Let what runs end, for as long as a worker would; to be called while agents can still take their turns."""
        under_way = list(self._under_way.values())
        for stretch in under_way:
            stretch.scope.cancel()
        for stretch in under_way:
            await stretch.ended.wait()

    async def _run(self, whose: OwnerFilter, stretch: OnDemandRun) -> None:
        try:
            with stretch.scope:
                await ON_DEMAND_JOB.attempt(partial(self._deliver, whose))
        finally:
            del self._under_way[whose]
            stretch.ended.set()


MEASURE_SECONDS = 2.0
MAX_HANDED_OVER = 1000
HANDED_TO_WORKER = "Not yet: it was handed to the worker, and comes when your present turn has ended"

log = structlog.get_logger("frontdesk.schedules")

# (round, what it ran)
ReportRound = Callable[[int, Sequence[ExecutedRun]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ScheduleExecutor:
    """What is told is what the caller may see; the worker's own loop needs nobody's word."""

    worker: Worker
    store: ScheduleStore
    past: HistoryStore
    metrics: ScheduleMetrics
    autostart: bool
    interval_s: int
    concurrency: int
    on_demand: OnDemandRuns

    async def run_due(self, caller: Caller) -> Sequence[ExecutedRun]:
        """Deliver what is due now, and wait for it; what stands behind another's in an agent's line waits its turn.

        An agent that asks in the midst of its own turn would wait for itself: its prompts come after that turn.
        """
        require_write(caller)
        whose = owner_filter(caller)
        # A database that is away is found out here at once: the worker would try for a while to make up with it.
        await self.store.next_due()
        if await self._is_in_a_turn(caller):
            return await self._hand_over(whose)
        done = await self.worker.deliver_due(whose)
        mine = [ran for ran in done if whose.covers(ran.occurrence.agent_id, ran.occurrence.user_id)]
        return [await self._executed_run(ran) for ran in mine]

    async def loop(
        self,
        caller: Caller,
        interval: object = None,
        seconds: object = MAX_LOOP_SECONDS,
        told: ReportRound | None = None,
    ) -> int:
        """Deliver what is due, again and again, for a bounded time; how many were run.

        It ends where something waits for the caller's own turn to end.
        """
        pause = parse_loop_interval_s(self.interval_s if interval is None else interval)
        most = parse_within("max_seconds", seconds, MAX_LOOP_SECONDS)
        until, number, count = anyio.current_time() + most, 0, 0
        while True:
            ran = await self.run_due(caller)
            number, count = number + 1, count + len(ran)
            if told is not None:
                await told(number, ran)
            if anyio.current_time() + pause > until or any(one.later for one in ran):
                return count
            await anyio.sleep(pause)

    async def state(self, caller: Caller) -> ExecutorState:
        """How the worker is doing; what waits altogether is for an admin to know."""
        require_read(caller)
        status = self.worker.status()
        told = ExecutorState(status.running, self.autostart, self.interval_s, self.concurrency)
        if not is_schedules_admin(caller):
            return told
        figures = await self.past.figures(now_us())
        return replace(
            told,
            in_flight=status.in_flight,
            delivered=status.delivered,
            failed=status.failed,
            last_us=status.last_us,
            next_us=await self.past.next_us(),
            due=figures.due,
            waiting=figures.waiting,
            dead=figures.dead,
            oldest_overdue_us=figures.oldest_overdue_us,
        )

    async def overdue(self, caller: Caller, limit: int) -> Sequence[OverdueSchedule]:
        """What is overdue, whoever's it is, the oldest first."""
        require_schedules_admin(caller, "To see what is overdue")
        return await self.past.overdue(now_us(), limit)

    async def holders(self, caller: Caller, limit: int) -> Sequence[RunHolder]:
        """The workers that have runs under way, in this process and in others."""
        require_schedules_admin(caller, "To see who delivers")
        return await self.past.holders(limit)

    async def close(self) -> None:
        """Let what was begun behind somebody's back come to an end."""
        await self.on_demand.close()

    async def update_metrics(self) -> None:
        """Figures that somebody is about to read; while the database is away they stay as they were."""
        try:
            with anyio.fail_after(MEASURE_SECONDS):
                self.metrics.set_figures(await self.past.figures(now_us()))
        except (Unavailable, TimeoutError) as error:
            log.warning("schedule_figures_not_read", error=str(error))

    async def _is_in_a_turn(self, caller: Caller) -> bool:
        if is_agent_calling(caller):
            return True
        named = caller.agent_id if rights.names_agent(caller) and not is_schedules_admin(caller) else None
        return named is not None and await self.store.under_way(named) is not None

    async def _hand_over(self, whose: OwnerFilter) -> Sequence[ExecutedRun]:
        """What is due, to be delivered behind the caller's back: by the worker, or where none runs here by itself."""
        now = now_us()
        listed = await self.store.list(ScheduleFilter(whose, (ScheduleState.ACTIVE,), limit=MAX_HANDED_OVER))
        due = [_deferred_schedule(one) for one in listed if one.fire_us is not None and one.fire_us <= now]
        waiting = await self.past.history(HistoryQuery(whose, standings=(RunStatus.WAITING,), limit=MAX_HANDED_OVER))
        due += [_deferred_run(one) for one in waiting if one.attempt == 0]
        if due and not self.worker.status().running:
            self.on_demand.start(whose)
        return due

    async def _executed_run(self, ran: SettledRun) -> ExecutedRun:
        run = ran.occurrence
        schedule = await self.store.get(run.schedule_id)
        most = schedule.what.max_repetitions if schedule else None
        return ExecutedRun(
            id=run.schedule_id,
            agent_id=run.agent_id,
            delivered=ran.delivered,
            delivery_id=run.id,
            next_us=schedule.intended_us if schedule else None,
            repetition_count=run.number,
            max_repetitions=most,
            completed=ran.delivered and most is not None and run.number >= most,
            error=ran.error,
        )


def _deferred_schedule(one: Schedule) -> ExecutedRun:
    run = delivery_id(one.id, one.intended_us or 0)
    agent_id, next_us = one.what.agent_id, one.intended_us
    return ExecutedRun(
        one.id, agent_id, delivered=False, delivery_id=run, next_us=next_us, error=HANDED_TO_WORKER, later=True
    )


def _deferred_run(run: RunRecord) -> ExecutedRun:
    return ExecutedRun(
        run.schedule_id, run.agent_id, delivered=False, delivery_id=run.id, error=HANDED_TO_WORKER, later=True
    )
