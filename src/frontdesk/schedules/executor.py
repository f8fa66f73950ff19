"""Delivers due prompts on request, and reports the state of this process's worker."""

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
    """A background delivery on demand, from its start to its end."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class OnDemandRuns:
    """Delivers due prompts in the background; at most one delivery per caller runs at a time."""

    def __init__(self, tasks: TaskGroup, deliver: Callable[[OwnerFilter], Awaitable[object]]) -> None:
        self._tasks = tasks
        self._deliver = deliver
        self._under_way: dict[OwnerFilter, OnDemandRun] = {}

    def start(self, owner: OwnerFilter) -> None:
        if owner not in self._under_way:
            self._under_way[owner] = OnDemandRun()
            self._tasks.start_soon(self._run, owner, self._under_way[owner])

    async def close(self) -> None:
        """Wait for running deliveries, as long as a worker would; call it while agents can still take turns."""
        under_way = list(self._under_way.values())
        for run in under_way:
            run.scope.cancel()
        for run in under_way:
            await run.ended.wait()

    async def _run(self, owner: OwnerFilter, run: OnDemandRun) -> None:
        try:
            with run.scope:
                await ON_DEMAND_JOB.attempt(partial(self._deliver, owner))
        finally:
            del self._under_way[owner]
            run.ended.set()


MEASURE_SECONDS = 2.0
MAX_HANDED_OVER = 1000
HANDED_TO_WORKER = "Not yet: it was handed to the worker, and comes when your present turn has ended"

log = structlog.get_logger("frontdesk.schedules")

# (number of the round, the runs in it)
ReportRound = Callable[[int, Sequence[ExecutedRun]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ScheduleExecutor:
    """Delivers due prompts for a caller, and reports what the caller may see of the worker."""

    worker: Worker
    store: ScheduleStore
    past: HistoryStore
    metrics: ScheduleMetrics
    autostart: bool
    interval_s: int
    concurrency: int
    on_demand: OnDemandRuns

    async def run_due(self, caller: Caller) -> Sequence[ExecutedRun]:
        """Deliver what is due now, and wait for it.

        An agent that calls this in its own turn would wait for itself, so its prompts are delivered after that turn.
        """
        require_write(caller)
        whose = owner_filter(caller)
        # This fails immediately if the database is unreachable; the worker would retry for a while.
        await self.store.next_due()
        if await self._is_in_a_turn(caller):
            return await self._hand_over(whose)
        done = await self.worker.deliver_due(whose)
        return [
            await self._executed_run(one)
            for one in done
            if whose.covers(one.occurrence.agent_id, one.occurrence.user_id)
        ]

    async def loop(
        self,
        caller: Caller,
        interval: object = None,
        seconds: object = MAX_LOOP_SECONDS,
        report: ReportRound | None = None,
    ) -> int:
        """Deliver what is due, repeatedly, for a bounded time; returns how many prompts were run.

        It ends early if a prompt has to wait for the end of the caller's own turn.
        """
        pause = parse_loop_interval_s(self.interval_s if interval is None else interval)
        most = parse_within("max_seconds", seconds, MAX_LOOP_SECONDS)
        until, number, count = anyio.current_time() + most, 0, 0
        while True:
            ran = await self.run_due(caller)
            number, count = number + 1, count + len(ran)
            if report is not None:
                await report(number, ran)
            if anyio.current_time() + pause > until or any(one.later for one in ran):
                return count
            await anyio.sleep(pause)

    async def state(self, caller: Caller) -> ExecutorState:
        """The state of this process's worker; an admin also gets the figures of all schedules."""
        require_read(caller)
        status = self.worker.status()
        state = ExecutorState(status.running, self.autostart, self.interval_s, self.concurrency)
        if not is_schedules_admin(caller):
            return state
        figures = await self.past.figures(now_us())
        return replace(
            state,
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
        """Overdue schedules of all owners, the oldest first; for an admin."""
        require_schedules_admin(caller, "To see what is overdue")
        return await self.past.overdue(now_us(), limit)

    async def holders(self, caller: Caller, limit: int) -> Sequence[RunHolder]:
        """The workers with active runs, in all processes; for an admin."""
        require_schedules_admin(caller, "To see who delivers")
        return await self.past.holders(limit)

    async def close(self) -> None:
        """Wait for deliveries in the background."""
        await self.on_demand.close()

    async def update_metrics(self) -> None:
        """Read the figures for the metrics; if the database is unreachable, they keep their values."""
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

    async def _hand_over(self, owner: OwnerFilter) -> Sequence[ExecutedRun]:
        """Return what is due, and have it delivered in the background, by this process's worker if it runs one."""
        now = now_us()
        listed = await self.store.list(ScheduleFilter(owner, (ScheduleState.ACTIVE,), limit=MAX_HANDED_OVER))
        due = [_deferred_schedule(one) for one in listed if one.fire_us is not None and one.fire_us <= now]
        waiting = await self.past.history(HistoryQuery(owner, standings=(RunStatus.WAITING,), limit=MAX_HANDED_OVER))
        due += [_deferred_run(one) for one in waiting if one.attempt == 0]
        if due and not self.worker.status().running:
            self.on_demand.start(owner)
        return due

    async def _executed_run(self, settled: SettledRun) -> ExecutedRun:
        run = settled.occurrence
        schedule = await self.store.get(run.schedule_id)
        most = schedule.what.max_repetitions if schedule else None
        return ExecutedRun(
            id=run.schedule_id,
            agent_id=run.agent_id,
            delivered=settled.delivered,
            delivery_id=run.id,
            next_us=schedule.intended_us if schedule else None,
            repetition_count=run.number,
            max_repetitions=most,
            completed=settled.delivered and most is not None and run.number >= most,
            error=settled.error,
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
