"""Looks over all schedules and runs that the caller may see, a page at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.schedule import numbers, rights
from frontdesk.schedule.asked import MOST_LISTED
from frontdesk.schedule.model import SECOND, Past, Standing, State, Trigger, now_us
from frontdesk.schedule.overview.model import Around, Coming, Ended, Newest, Sent, Turn, Waiting
from frontdesk.schedule.overview.store import OverviewStore
from frontdesk.schedule.past.place import Place
from frontdesk.schedule.past.store import PastQuery, PastStore
from frontdesk.schedule.triggers.next import next_after

# Of one agent or of all: so many schedules and runs around now are looked at, and so many times told.
MOST_AROUND = 150
MOST_FIRES = 300
MOST_DEAD = 100
MOST_TURNS = 20
# A turn's time is the database's, a run's that of the machine which delivers it.
CLOCKS_APART_US = 120 * SECOND


@dataclass(frozen=True, slots=True)
class Overview:
    """What belongs to others is left out."""

    store: OverviewStore
    past: PastStore

    async def coming(self, caller: Caller, agent_id: str | None, after: str | None, limit: object) -> Coming:
        """Those that will fire, the next one first."""
        rights.may_read(caller)
        most = numbers.within("limit", limit, MOST_LISTED)
        place = Turn.read(after) if after else None
        found = await self.store.coming(rights.narrowed(caller, agent_id), place, most + 1)
        last = found[most - 1] if len(found) > most else None
        return Coming(found[:most], None if last is None else str(Turn(last.fire_us or 0, last.id)))

    async def newest(
        self, caller: Caller, agent_id: str | None, state: State | None, before: object, limit: object
    ) -> Newest:
        """Those of one state, or all, by their numbers."""
        rights.may_read(caller)
        most = numbers.within("limit", limit, MOST_LISTED)
        number = None if before in (None, "") else numbers.within("before", before, numbers.LAST_ID)
        found = await self.store.newest(rights.narrowed(caller, agent_id), state, number, most + 1)
        return Newest(found[:most], found[most - 1].id if len(found) > most else None)

    async def ended(
        self, caller: Caller, agent_id: str | None, standing: Standing | None, before: str | None, limit: object
    ) -> Ended:
        """Runs that are over, the last one first."""
        rights.may_read(caller)
        most = numbers.within("limit", limit, MOST_LISTED)
        standings = (standing,) if standing else ()
        place = Place.read(before) if before else None
        query = PastQuery(rights.narrowed(caller, agent_id), None, standings, place, most)
        runs, following = await self.past.ended(query)
        return Ended(runs, None if following is None else str(following))

    async def under_way(self, caller: Caller, agent_id: str | None, limit: object) -> Sequence[Past]:
        """Some of the runs that have begun or wait for another try."""
        rights.may_read(caller)
        most = numbers.within("limit", limit, MOST_LISTED)
        return await self.past.under_way(PastQuery(rights.narrowed(caller, agent_id), limit=most))

    async def around(self, caller: Caller, agent_id: str | None, now_us: int, span_us: int) -> Around:
        """When something fires in the next span of time, and what ended in the last."""
        rights.may_read(caller)
        whose = rights.narrowed(caller, agent_id)
        waiting = await self.store.ahead(whose, now_us + span_us, MOST_AROUND)
        ended = await self.store.behind(whose, now_us - span_us, MOST_AROUND)
        if len(waiting) == MOST_AROUND:
            # Where not even the next time of each is told, those after it need not be found.
            return Around([one.fire_us for one in waiting], ended, more=True)
        ahead, more = fires(waiting, now_us + span_us, MOST_FIRES)
        return Around(ahead, ended, more or len(ended) == MOST_AROUND)

    async def dead(self, caller: Caller, agent_id: str | None = None) -> int:
        """How many runs were given up, up to `MOST_DEAD`."""
        rights.may_read(caller)
        return await self.store.dead(rights.narrowed(caller, agent_id), MOST_DEAD)

    async def mark(self, caller: Caller, agent_id: str | None = None) -> str:
        """A word that is another one once something was made, paused, moved, begun or has ended.

        What fires only after many others may change without it.
        """
        rights.require_admin(caller, "To look over everybody's schedules")
        return (await self.store.newer(rights.narrowed(caller, agent_id), MOST_AROUND)).mark

    async def zones(self, caller: Caller, runs: Sequence[Past]) -> Mapping[int, str]:
        """The zones of the schedules that these runs are of, by their numbers."""
        rights.may_read(caller)
        return await self.store.zones({run.schedule_id for run in runs})

    async def sent(self, caller: Caller, ids: Collection[str]) -> Mapping[str, Sent]:
        """Of these names of turns those that are runs' own: whoever sends a turn may name it as they like."""
        rights.may_read(caller)
        return await self.store.sent(rights.whose(caller), ids) if ids else {}

    async def turns_of(self, caller: Caller, run: Past) -> Sequence[str]:
        """The turns that a run made, the newest first; one for each attempt that reached the agent."""
        rights.may_read(caller)
        return await self.store.turns_of(run, now_us(), CLOCKS_APART_US, MOST_TURNS)


def fires(waiting: Sequence[Waiting], until_us: int, most: int) -> tuple[Sequence[int], bool]:
    """The next time of each and the ones after it, and whether there are more of them than are told."""
    found = [one.fire_us for one in waiting]
    going = [(one.trigger, one.fire_us) for one in waiting]
    while going and len(found) < most:
        # All of them by one time further, so that none fills the strip alone.
        following = [(trigger, _following(trigger, at)) for trigger, at in going]
        going = [(trigger, at) for trigger, at in following if at is not None and at <= until_us]
        found += [at for _, at in going]
    return sorted(found)[:most], len(found) > most or bool(going)


def _following(trigger: Trigger, at: int) -> int | None:
    """The time after this one; of a rule in a zone that is not known here nobody can tell it."""
    try:
        return next_after(trigger, at)
    except Invalid:
        return None
