"""The scheduler as every door uses it: plan and change here, and by its parts look back, run, and name agents."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

import anyio

from frontdesk.errors import Conflict, NotFound
from frontdesk.identity.authority import Authorities
from frontdesk.identity.model import Caller
from frontdesk.schedule import guard, making, rights
from frontdesk.schedule.asked import Added, Asked, Change
from frontdesk.schedule.defaults.service import Defaults
from frontdesk.schedule.executing import Executing
from frontdesk.schedule.forwards.address import check_webhook
from frontdesk.schedule.guard import Run
from frontdesk.schedule.hosting import Hosted
from frontdesk.schedule.importing.service import Importing
from frontdesk.schedule.limits import Limits
from frontdesk.schedule.looking import Looking
from frontdesk.schedule.model import NewSchedule, Past, Schedule, State, Trigger, Whose, now_us
from frontdesk.schedule.overview.service import Overview
from frontdesk.schedule.placing import Places
from frontdesk.schedule.store import ScheduleFilter, ScheduleStore, Stale
from frontdesk.schedule.triggers.next import first, next_after

# A change is made anew from what another one has made of the schedule meanwhile, so that neither is lost.
CHANGES = 3


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
    looking: Looking
    overview: Overview
    limits: Limits
    webhooks: Webhooks
    places: Places
    defaults: Defaults
    hosted: Hosted
    executing: Executing
    importing: Importing
    authorities: Authorities
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
            new = replace(new, made_by=await self._made_by(caller, new), authority=await self.authorities.of(caller))
            new = replace(new, conversation_id=await self.places.of(new, asked.conversation_id or None))
            made = await self.store.add(new, _first(new.trigger, now), now, self.limits.count)
        return Added(made)

    async def cancel(self, caller: Caller, schedule_id: object, only: Whose | None = None) -> Schedule:
        """No run of it begins any more; one that is under way ends by itself. `only` these may be cancelled now."""
        rights.may_write(caller)
        gone = "Schedule {} not found or already cancelled"
        old = await self.looking.own(caller, schedule_id, gone)
        if only is not None and not only.covers(old.what.agent_id, old.what.user_id):
            raise NotFound(gone.format(old.id))
        if not await self.store.cancel(old.id, now_us()):
            raise NotFound(gone.format(old.id))
        return await self._again(old)

    async def pause(self, caller: Caller, schedule_id: object) -> Schedule:
        rights.may_write(caller)
        old = await self.looking.own(caller, schedule_id)
        if not await self.store.pause(old.id, now_us()):
            raise Conflict(f"Schedule {old.id} is {old.state}; only an active one can be paused")
        return await self._again(old)

    async def resume(self, caller: Caller, schedule_id: object) -> Added:
        """Go on from now; a one-time prompt whose time went by meanwhile is run at once."""
        rights.may_write(caller)
        old = await self.looking.own(caller, schedule_id)
        found = await self.store.resume(old.id, now_us())
        if found is None:
            raise Conflict(f"Schedule {old.id} is {old.state}; only a paused one can be resumed")
        return Added(found)

    async def update(self, caller: Caller, schedule_id: object, change: Change) -> Added:
        """Change a schedule in place; a new rule counts from now."""
        rights.may_write(caller)
        for _ in range(CHANGES):
            with suppress(Stale):
                return await self._update(caller, await self.looking.own(caller, schedule_id), change)
        return await self._update(caller, await self.looking.own(caller, schedule_id), change)

    async def _update(self, caller: Caller, old: Schedule, change: Change) -> Added:
        now = now_us()
        new = making.changed(old, change, self.limits, now)
        self._check_forward(new)
        if _recurs(new) and not _recurs(old.what):
            guard.check(await self._runs(caller, old.what.agent_id), 0, recurring=True)
        if change.conversation_id or "conversation_id" in change.clear:
            new = replace(new, conversation_id=await self.places.of(new, change.conversation_id or None))
        if (new.prompt, new.forward, new.conversation_id) != (
            *(old.what.prompt, old.what.forward, old.what.conversation_id),
        ):
            # What is said, and where the answer goes, is by now the word of whoever changed it too.
            new = replace(new, authority=new.authority.together(await self.authorities.of(caller)))
        found = await self.store.update(old.id, new, _newly_intended(old, new, now), now, old)
        if found is None:
            raise Conflict(f"Schedule {old.id} is {old.state}, and cannot be changed any more; make a new one")
        return Added(found)

    async def run_now(self, caller: Caller, schedule_id: object) -> str:
        """Run it once more, next in its agent's line; the delivery id."""
        rights.may_write(caller)
        old = await self.looking.own(caller, schedule_id)
        guard.check_start(await self._runs(caller, old.what.agent_id))
        return await self.store.run_now(old.id, now_us())

    async def redrive(self, caller: Caller, delivery_id: str) -> Past:
        """Give a dead run all of its attempts again."""
        rights.may_write(caller)
        past = self.looking.past
        found = await self.looking.own_run(caller, delivery_id)
        if not await past.redrive(found.id, now_us()):
            raise Conflict(f"Run '{found.id}' is {found.standing}, and only a dead one can be tried again")
        return await past.get(found.id) or found

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
        if new.forward.webhook is not None:
            check_webhook(new.forward.webhook, signed=self.webhooks.signed, private=self.webhooks.private)


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
