"""Looks at schedules: which there are, what became of their runs, and when they fire next; never at another's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.errors import NotFound
from frontdesk.identity.model import Caller
from frontdesk.schedule import numbers, reading, rights
from frontdesk.schedule.asked import (
    MOST_LISTED,
    MOST_TIMES,
    TIMES,
    Listed,
    PastListed,
    PastWanted,
    Preview,
    Rule,
    Wanted,
    When,
)
from frontdesk.schedule.model import Past, Schedule, State, now_us
from frontdesk.schedule.past.place import Place
from frontdesk.schedule.past.store import PastQuery, PastStore
from frontdesk.schedule.store import LIVING, ScheduleFilter, ScheduleStore
from frontdesk.schedule.triggers.next import preview

NO_SCHEDULE = "Schedule {} not found"


@dataclass(frozen=True, slots=True)
class Looking:
    """What belongs to others is `NotFound`, in the words for what is not there at all."""

    store: ScheduleStore
    past: PastStore

    async def list(self, caller: Caller, wanted: Wanted | None = None) -> Listed:
        """Those that the caller may see, in the order they were made."""
        rights.may_read(caller)
        asked = wanted or Wanted()
        whose = rights.narrowed(caller, asked.agent_id)
        states = (asked.state,) if asked.state else tuple(State) if asked.include_cancelled else LIVING
        after = numbers.within("after", asked.after_id, numbers.MOST, 0)
        limit = numbers.within("limit", asked.limit, MOST_LISTED)
        found = await self.store.list(ScheduleFilter(whose, states, after=after, limit=limit + 1))
        return Listed(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def of_turn(self, caller: Caller, limit: int) -> Listed:
        """Those that an agent may see in a turn for one person."""
        rights.may_read(caller)
        found = await self.store.list(ScheduleFilter(rights.of_turn(caller), LIVING, limit=limit + 1))
        return Listed(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def next_of(self, caller: Caller, agents: Sequence[str]) -> Mapping[str, int]:
        """When each of these agents is prompted next; for whoever may see everybody's."""
        rights.require_admin(caller, "To see when every agent is prompted next")
        return await self.store.next_of(agents)

    async def upcoming(self, caller: Caller, agent_id: str, limit: int) -> Sequence[Schedule]:
        """What an agent is prompted with next, the soonest first; for whoever may see everybody's."""
        rights.require_admin(caller, "To see what an agent is prompted with next")
        return await self.store.upcoming(agent_id, limit)

    async def get(self, caller: Caller, schedule_id: object) -> Schedule:
        rights.may_read(caller)
        return await self.own(caller, schedule_id)

    async def history(self, caller: Caller, wanted: PastWanted | None = None) -> PastListed:
        """What became of the runs that the caller may see, the newest first."""
        rights.may_read(caller)
        asked = wanted or PastWanted()
        limit = numbers.within("limit", asked.limit, MOST_LISTED)
        number = None if asked.schedule_id is None else (await self.own(caller, asked.schedule_id)).id
        whose = rights.narrowed(caller, asked.agent_id)
        standings = (asked.standing,) if asked.standing else ()
        before = Place.read(asked.before) if asked.before else None
        found = await self.past.history(PastQuery(whose, number, standings, before, limit + 1))
        return PastListed(found[:limit], str(Place.of(found[limit - 1])) if len(found) > limit else None)

    async def preview(self, caller: Caller, schedule_id: object, count: object = TIMES) -> Preview:
        """When a schedule is meant to fire next."""
        rights.may_read(caller)
        wanted = numbers.within("count", count, MOST_TIMES)
        found = await self.own(caller, schedule_id)
        most, trigger = found.what.max_repetitions, found.what.trigger
        left = wanted if most is None else max(0, min(wanted, most - found.fired))
        times = preview(trigger, now_us(), left if found.state in LIVING else 0)
        return Preview(Rule.of(trigger, found.intended_us), trigger.zone, times)

    async def preview_rule(self, caller: Caller, said: When, count: object = TIMES) -> Preview:
        """When a rule would fire, without making it."""
        rights.may_read(caller)
        wanted, now = numbers.within("count", count, MOST_TIMES), now_us()
        trigger = reading.read(said, now).trigger
        times = preview(trigger, now, wanted)
        return Preview(Rule.of(trigger, times[0] if times else None), trigger.zone, times)

    async def own(self, caller: Caller, schedule_id: object, gone: str = NO_SCHEDULE) -> Schedule:
        """A schedule that is the caller's to see, whatever is to be done with it."""
        number = numbers.schedule_id(schedule_id)
        found = await self.store.get(number) if number else None
        if found is None or not rights.sees(caller, found.what.agent_id, found.what.user_id):
            raise NotFound(gone.format(str(schedule_id).strip()[:20]))
        return found

    async def own_run(self, caller: Caller, delivery_id: str) -> Past:
        """The same for a run."""
        found = await self.past.get(delivery_id)
        if found is None or not rights.sees(caller, found.agent_id, found.user_id):
            raise NotFound(f"There is no run '{delivery_id[:64]}'; the history lists them")
        return found
