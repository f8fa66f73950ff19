"""Runs due prompts on somebody's word, and says how the worker of this process is doing."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import anyio
import structlog

from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.schedule import numbers, rights
from frontdesk.schedule.asked import LOOP_SECONDS, Executed, Executor
from frontdesk.schedule.metrics import ScheduleMetrics
from frontdesk.schedule.model import Past, Ran, Schedule, Standing, State, Whose, delivery_id, now_us
from frontdesk.schedule.past.store import Holder, Late, PastQuery, PastStore
from frontdesk.schedule.store import ScheduleFilter, ScheduleStore
from frontdesk.schedule.stretches import Stretches
from frontdesk.schedule.worker import Worker

MEASURE_SECONDS = 2.0
MOST_TOLD = 1000
LATER = "Not yet: it was handed to the worker, and comes when your present turn has ended"

log = structlog.get_logger("frontdesk.schedule")

# (round, what it ran)
ToldOf = Callable[[int, Sequence[Executed]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Executing:
    """What is told is what the caller may see; the worker's own loop needs nobody's word."""

    worker: Worker
    store: ScheduleStore
    past: PastStore
    metrics: ScheduleMetrics
    autostart: bool
    interval_s: int
    concurrency: int
    handed: Stretches

    async def once(self, caller: Caller) -> Sequence[Executed]:
        """Deliver what is due now, and wait for it; what stands behind another's in an agent's line waits its turn.

        An agent that asks in the midst of its own turn would wait for itself: its prompts come after that turn.
        """
        rights.may_write(caller)
        whose = rights.whose(caller)
        # A database that is away is found out here at once: the worker would try for a while to make up with it.
        await self.store.next_due()
        if await self._is_in_a_turn(caller):
            return await self._hand_over(whose)
        done = await self.worker.once(whose)
        mine = [ran for ran in done if whose.covers(ran.occurrence.agent_id, ran.occurrence.user_id)]
        return [await self._told(ran) for ran in mine]

    async def loop(
        self, caller: Caller, interval: object = None, seconds: object = LOOP_SECONDS, told: ToldOf | None = None
    ) -> int:
        """Deliver what is due, again and again, for a bounded time; how many were run.

        It ends where something waits for the caller's own turn to end.
        """
        pause = numbers.interval_s(self.interval_s if interval is None else interval)
        most = numbers.within("max_seconds", seconds, LOOP_SECONDS)
        until, number, count = anyio.current_time() + most, 0, 0
        while True:
            ran = await self.once(caller)
            number, count = number + 1, count + len(ran)
            if told is not None:
                await told(number, ran)
            if anyio.current_time() + pause > until or any(one.later for one in ran):
                return count
            await anyio.sleep(pause)

    async def executor(self, caller: Caller) -> Executor:
        """How the worker is doing; what waits altogether is for an admin to know."""
        rights.may_read(caller)
        status = self.worker.status()
        told = Executor(status.running, self.autostart, self.interval_s, self.concurrency)
        if not rights.is_admin(caller):
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

    async def late(self, caller: Caller, limit: int) -> Sequence[Late]:
        """What is overdue, whoever's it is, the oldest first."""
        rights.require_admin(caller, "To see what is overdue")
        return await self.past.late(now_us(), limit)

    async def holders(self, caller: Caller, limit: int) -> Sequence[Holder]:
        """The workers that have runs under way, in this process and in others."""
        rights.require_admin(caller, "To see who delivers")
        return await self.past.holders(limit)

    async def close(self) -> None:
        """Let what was begun behind somebody's back come to an end."""
        await self.handed.close()

    async def measure(self) -> None:
        """Figures that somebody is about to read; while the database is away they stay as they were."""
        try:
            with anyio.fail_after(MEASURE_SECONDS):
                self.metrics.show(await self.past.figures(now_us()))
        except (Unavailable, TimeoutError) as error:
            log.warning("schedule_figures_not_read", error=str(error))

    async def _is_in_a_turn(self, caller: Caller) -> bool:
        if rights.is_agent(caller):
            return True
        named = caller.agent_id if rights.names_agent(caller) and not rights.is_admin(caller) else None
        return named is not None and await self.store.under_way(named) is not None

    async def _hand_over(self, whose: Whose) -> Sequence[Executed]:
        """What is due, to be delivered behind the caller's back: by the worker, or where none runs here by itself."""
        now = now_us()
        listed = await self.store.list(ScheduleFilter(whose, (State.ACTIVE,), limit=MOST_TOLD))
        due = [_later(one) for one in listed if one.fire_us is not None and one.fire_us <= now]
        waiting = await self.past.history(PastQuery(whose, standings=(Standing.WAITING,), limit=MOST_TOLD))
        due += [_asked_for(one) for one in waiting if one.attempt == 0]
        if due and not self.worker.status().running:
            self.handed.start(whose)
        return due

    async def _told(self, ran: Ran) -> Executed:
        run = ran.occurrence
        schedule = await self.store.get(run.schedule_id)
        most = schedule.what.max_repetitions if schedule else None
        return Executed(
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


def _later(one: Schedule) -> Executed:
    run = delivery_id(one.id, one.intended_us or 0)
    agent_id, next_us = one.what.agent_id, one.intended_us
    return Executed(one.id, agent_id, delivered=False, delivery_id=run, next_us=next_us, error=LATER, later=True)


def _asked_for(run: Past) -> Executed:
    return Executed(run.schedule_id, run.agent_id, delivered=False, delivery_id=run.id, error=LATER, later=True)
