"""The scheduler as every door uses it: plan, change, look back, and never at another's."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
import structlog

from frontdesk.agents.host import Agent
from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.schedule import guard, making, numbers, reading, rights
from frontdesk.schedule.asked import (
    Added,
    Asked,
    Change,
    Executed,
    Executor,
    HostTest,
    Imported,
    Inferred,
    Listed,
    PastListed,
    PastWanted,
    Preview,
    Rule,
    ScopedDefault,
    Uploaded,
    Wanted,
)
from frontdesk.schedule.defaults.service import Defaults
from frontdesk.schedule.executing import Executing, ToldOf
from frontdesk.schedule.forwards.address import check_webhook
from frontdesk.schedule.guard import Run
from frontdesk.schedule.hosting import Hosted
from frontdesk.schedule.importing.service import Importing
from frontdesk.schedule.limits import Limits
from frontdesk.schedule.model import NewSchedule, Past, Schedule, State, Trigger, now_us
from frontdesk.schedule.past.place import Place
from frontdesk.schedule.past.store import PastQuery, PastStore
from frontdesk.schedule.placing import Places
from frontdesk.schedule.store import ScheduleFilter, ScheduleStore, Stale
from frontdesk.schedule.triggers import echo
from frontdesk.schedule.triggers.next import first, next_after, preview

ALIVE = (State.ACTIVE, State.PAUSED)
MOST_LISTED = 1000
MOST_PREVIEWED = 100
# A change is made anew from what another one has made of the schedule meanwhile, so that neither is lost.
CHANGES = 3

log = structlog.get_logger("frontdesk.schedule")


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Whether answers can be signed on their way out, and may go to private networks."""

    signed: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class Schedules:
    """Every method asks for the caller, and does what that caller may.

    What belongs to others is `NotFound`, in the words for what is not there at all.
    """

    store: ScheduleStore
    past: PastStore
    limits: Limits
    webhooks: Webhooks
    places: Places
    defaults: Defaults
    hosted: Hosted
    executing: Executing
    importing: Importing
    # One plan at a time for each agent, so that what a run may make is counted right.
    doors: WeakValueDictionary[str, anyio.Lock] = field(default_factory=WeakValueDictionary[str, anyio.Lock])

    async def add(self, caller: Caller, asked: Asked) -> Added:
        """Make a schedule for the caller's agent."""
        rights.may_write(caller)
        agent_id = await self.defaults.agent(caller, asked.agent_id)
        now = now_us()
        new = making.made(asked, agent_id, caller.user_id, self.limits, now)
        self._check_forward(new)
        if not asked.skip_validation:
            await self.hosted.validate(agent_id)
        async with self.doors.setdefault(agent_id, anyio.Lock()):
            # A conversation that is made for a schedule stays, also where there is no room for the schedule.
            self.limits.check_count(agent_id, await self.store.count_active(agent_id))
            new = replace(new, made_by=await self._made_by(caller, new))
            new = replace(new, conversation_id=await self.places.of(new, asked.conversation_id or None))
            made = await self.store.add(new, _first(new.trigger, now), now, self.limits.count)
        return Added(made, self.rule(made))

    async def list(self, caller: Caller, wanted: Wanted | None = None) -> Listed:
        """Those that the caller may see, in the order they were made."""
        rights.may_read(caller)
        asked = wanted or Wanted()
        whose = rights.narrowed(caller, asked.agent_id)
        states = (asked.state,) if asked.state else tuple(State) if asked.include_cancelled else ALIVE
        limit = min(max(asked.limit, 1), MOST_LISTED)
        found = await self.store.list(ScheduleFilter(whose, states, after=max(asked.after_id, 0), limit=limit + 1))
        return Listed(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def get(self, caller: Caller, schedule_id: object) -> Schedule:
        rights.may_read(caller)
        return await self._own(caller, schedule_id)

    async def cancel(self, caller: Caller, schedule_id: object) -> Schedule:
        """No run of it begins any more; one that is under way ends by itself."""
        rights.may_write(caller)
        gone = "Schedule {} not found or already cancelled"
        old = await self._own(caller, schedule_id, gone)
        if not await self.store.cancel(old.id, now_us()):
            raise NotFound(gone.format(old.id))
        return await self._again(old)

    async def pause(self, caller: Caller, schedule_id: object) -> Schedule:
        rights.may_write(caller)
        old = await self._own(caller, schedule_id)
        if not await self.store.pause(old.id, now_us()):
            raise Conflict(f"Schedule {old.id} is {old.state}, and only an active one can be paused")
        return await self._again(old)

    async def resume(self, caller: Caller, schedule_id: object) -> Added:
        """Go on from now; a one-time prompt whose time went by meanwhile is run at once."""
        rights.may_write(caller)
        old = await self._own(caller, schedule_id)
        found = await self.store.resume(old.id, now_us())
        if found is None:
            raise Conflict(f"Schedule {old.id} is {old.state}, and only a paused one can be resumed")
        return Added(found, self.rule(found))

    async def update(self, caller: Caller, schedule_id: object, change: Change) -> Added:
        """Change a schedule in place; a new rule counts from now."""
        rights.may_write(caller)
        for _ in range(CHANGES):
            with suppress(Stale):
                return await self._update(caller, await self._own(caller, schedule_id), change)
        return await self._update(caller, await self._own(caller, schedule_id), change)

    async def _update(self, caller: Caller, old: Schedule, change: Change) -> Added:
        now = now_us()
        new = making.changed(old, change, self.limits, now)
        self._check_forward(new)
        if _recurs(new) and not _recurs(old.what):
            guard.check(await self._runs(caller, old.what.agent_id), 0, recurring=True)
        if change.conversation_id or "conversation_id" in change.clear:
            new = replace(new, conversation_id=await self.places.of(new, change.conversation_id or None))
        found = await self.store.update(old.id, new, _newly_intended(old, new, now), now, old)
        if found is None:
            raise Conflict(f"Schedule {old.id} is {old.state}, and cannot be changed any more; make a new one")
        return Added(found, self.rule(found))

    async def run_now(self, caller: Caller, schedule_id: object) -> str:
        """Run it once more, next in its agent's line; the delivery id."""
        rights.may_write(caller)
        old = await self._own(caller, schedule_id)
        guard.check_start(await self._runs(caller, old.what.agent_id))
        return await self.store.run_now(old.id, now_us())

    async def history(self, caller: Caller, wanted: PastWanted | None = None) -> Sequence[Past]:
        """What became of the runs that the caller may see, the newest first."""
        return (await self.history_page(caller, wanted)).runs

    async def history_page(self, caller: Caller, wanted: PastWanted | None = None) -> PastListed:
        """The same, and where to go on."""
        rights.may_read(caller)
        asked = wanted or PastWanted()
        number = None if asked.schedule_id is None else (await self._own(caller, asked.schedule_id)).id
        whose = rights.narrowed(caller, asked.agent_id)
        standings = (asked.standing,) if asked.standing else ()
        before = Place.read(asked.before) if asked.before else None
        limit = min(max(asked.limit, 1), MOST_LISTED)
        found = await self.past.history(PastQuery(whose, number, standings, before, limit + 1))
        return PastListed(found[:limit], str(Place.of(found[limit - 1])) if len(found) > limit else None)

    async def redrive(self, caller: Caller, delivery_id: str) -> Past:
        """Give a dead run all of its attempts again."""
        rights.may_write(caller)
        found = await self.past.get(delivery_id)
        if found is None or not rights.sees(caller, found.agent_id, found.user_id):
            raise NotFound(f"There is no run '{delivery_id[:64]}'")
        if not await self.past.redrive(found.id, now_us()):
            raise Conflict(f"Run '{found.id}' is {found.standing}, and only a dead one can be tried again")
        return await self.past.get(found.id) or found

    async def preview(self, caller: Caller, schedule_id: object, count: int = 5) -> Preview:
        """When a schedule is meant to fire next."""
        rights.may_read(caller)
        found = await self._own(caller, schedule_id)
        what = found.what
        left = 0 if found.state not in ALIVE else _left(what.max_repetitions, found.fired, count)
        return Preview(self.rule(found), what.trigger.zone, preview(what.trigger, now_us(), left))

    async def preview_rule(self, caller: Caller, asked: Asked, count: int = 5) -> Preview:
        """When a rule would fire, without making it."""
        rights.may_read(caller)
        now = now_us()
        told = reading.read(making.when(asked), now)
        times = preview(told.trigger, now, _left(numbers.max_repetitions(asked.max_repetitions), 0, count))
        return Preview(_said(told.trigger, times[0] if times else None), told.trigger.zone, times)

    async def execute_once(self, caller: Caller) -> Sequence[Executed]:
        """Deliver what is due of the caller's now, and wait for it."""
        return await self.executing.once(caller)

    async def execute_loop(
        self, caller: Caller, interval: object = None, seconds: float | None = None, told: ToldOf | None = None
    ) -> int:
        """The same again and again, for a bounded time; how many were run."""
        return await self.executing.loop(caller, interval, seconds, told)

    async def close(self) -> None:
        """Let what was begun behind somebody's back come to an end."""
        await self.executing.handed.close()

    async def executor(self, caller: Caller) -> Executor:
        return await self.executing.executor(caller)

    async def measure(self) -> None:
        """Bring the figures for /metrics up to date."""
        await self.executing.measure()

    async def infer(self, caller: Caller) -> Inferred:
        rights.may_read(caller)
        return await self.defaults.infer(caller)

    async def set_default(self, caller: Caller, agent_id: str | None) -> ScopedDefault:
        """Everybody's default agent, for the operator and admins to set; None takes it away."""
        rights.may_write(caller)
        return await self.defaults.set_for_everybody(caller, agent_id, self.hosted.validate)

    async def set_scoped_default(self, caller: Caller, agent_id: str | None, scope: str | None = None) -> ScopedDefault:
        """The caller's own default agent; None takes it away."""
        rights.may_write(caller)
        return await self.defaults.set(caller, agent_id, scope, self.hosted.validate)

    async def scoped_default(self, caller: Caller, scope: str | None = None) -> ScopedDefault:
        rights.may_read(caller)
        return await self.defaults.get(caller, scope)

    async def agents(self, caller: Caller) -> Sequence[Agent]:
        rights.may_read(caller)
        return await self.hosted.agents(caller)

    async def test_host(self, caller: Caller) -> HostTest:
        rights.may_read(caller)
        return await self.hosted.test()

    async def upload_tool(
        self, caller: Caller, source_code: str, name: str | None = None, description: str | None = None
    ) -> Uploaded:
        """Give the agent host a tool; it is called what its function is called, and `name` is for the log."""
        rights.may_write(caller)
        log.info("tool_upload", name=name, request_id=caller.request_id)
        return await self.hosted.upload_tool(caller, source_code, description)

    async def import_file(self, caller: Caller, path: Path) -> Imported:
        """Take over the schedules of a PromptYoSelf file."""
        rights.require_admin(caller, "An import")
        return await self.importing.take_over(path)

    def rule(self, schedule: Schedule) -> Rule:
        """A schedule's rule said back exactly."""
        return _said(schedule.what.trigger, schedule.intended_us)

    async def _own(self, caller: Caller, schedule_id: object, gone: str = "Schedule {} not found") -> Schedule:
        number = numbers.schedule_id(schedule_id)
        found = await self.store.get(number) if number else None
        if found is None or not rights.sees(caller, found.what.agent_id, found.what.user_id):
            raise NotFound(gone.format(str(schedule_id).strip()[:20]))
        return found

    async def _again(self, old: Schedule) -> Schedule:
        return await self.store.get(old.id) or old

    async def _runs(self, caller: Caller, agent_id: str) -> Sequence[Run]:
        """The run that the caller may be in the middle of: an agent's own, and never a person's or an admin's."""
        if rights.is_admin(caller) or not rights.names_agent(caller):
            return ()
        run = await self.store.under_way(agent_id)
        if run is None or (caller.user_id is not None and run.user_id != caller.user_id):
            return ()
        return (Run(run.id, run.schedule_id, run.recurring),)

    async def _made_by(self, caller: Caller, new: NewSchedule) -> str | None:
        """The run in which it is made, if that run may."""
        runs = await self._runs(caller, new.agent_id)
        if not runs:
            return None
        made = await self.store.count(ScheduleFilter(states=tuple(State), made_by=runs[0].delivery_id))
        guard.check(runs, made, recurring=_recurs(new))
        return runs[0].delivery_id

    def _check_forward(self, new: NewSchedule) -> None:
        if new.forward.timeline and new.user_id is None:
            raise Invalid("There is no person whose timeline the answer could go into; leave `timeline` out")
        if new.forward.webhook is not None:
            check_webhook(new.forward.webhook, signed=self.webhooks.signed, private=self.webhooks.private)


def _said(trigger: Trigger, next_us: int | None) -> Rule:
    return Rule(echo.told(trigger, next_us), echo.sentence(trigger, next_us))


def _first(trigger: Trigger, now: int) -> int:
    found = first(trigger, now)
    if found is None:
        raise AssertionError("a rule that was read fires at least once")
    return found


def _newly_intended(old: Schedule, new: NewSchedule, now: int) -> int | None:
    """When a changed schedule is to fire, if that is not when it was to anyway."""
    if new.trigger != old.what.trigger:
        return _first(new.trigger, now)
    # Its last run is under way, and was not to be followed by another.
    goes_on = old.intended_us is None and new.max_repetitions != old.what.max_repetitions
    return next_after(new.trigger, now) if goes_on else None


def _recurs(what: NewSchedule) -> bool:
    return guard.recurs(what.trigger, what.max_repetitions)


def _left(most: int | None, fired: int, count: int) -> int:
    wanted = min(max(count, 1), MOST_PREVIEWED)
    return wanted if most is None else max(0, min(wanted, most - fired))
