"""Reads schedules, runs and previews for a caller; what the caller may not see counts as not found."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.schedules.access import (
    can_see,
    owner_filter,
    owner_filter_for_agent,
    owner_filter_for_turn,
    require_read,
    require_schedules_admin,
)
from frontdesk.schedules.create import parse_rule
from frontdesk.schedules.history_store import HistoryCursor, HistoryQuery, HistoryStore
from frontdesk.schedules.model import SECOND, RunRecord, RunStatus, Schedule, ScheduleState, Trigger, now_us
from frontdesk.schedules.overview_store import (
    EndedRunsPage,
    FiresAroundNow,
    NewestPage,
    OverviewStore,
    RunReference,
    UpcomingCursor,
    UpcomingFire,
    UpcomingPage,
)
from frontdesk.schedules.requests import (
    DEFAULT_PREVIEW,
    MAX_LIMIT,
    MAX_PREVIEW,
    MAX_SCHEDULE_ID,
    MAX_WHOLE_NUMBER,
    ListRuns,
    ListSchedules,
    RuleDescription,
    RulePreview,
    RuleRequest,
    RunPage,
    SchedulePage,
    parse_schedule_id,
    parse_within,
)
from frontdesk.schedules.store import LIVE_STATES, ScheduleFilter, ScheduleStore
from frontdesk.schedules.triggers import next_fire_after, preview_fires

NO_SCHEDULE = "Schedule {} not found"


@dataclass(frozen=True, slots=True)
class ScheduleQueries:
    """Reads for a caller. What the caller may not see is `NotFound`, with the same message as for a missing row."""

    store: ScheduleStore
    past: HistoryStore

    async def list(self, caller: Caller, wanted: ListSchedules | None = None) -> SchedulePage:
        """The schedules that the caller may see, in the order of creation."""
        require_read(caller)
        asked = wanted or ListSchedules()
        whose = owner_filter_for_agent(caller, asked.agent_id)
        states = (asked.state,) if asked.state else tuple(ScheduleState) if asked.include_cancelled else LIVE_STATES
        after = parse_within("after", asked.after_id, MAX_WHOLE_NUMBER, 0)
        limit = parse_within("limit", asked.limit, MAX_LIMIT)
        found = await self.store.list(ScheduleFilter(whose, states, after=after, limit=limit + 1))
        return SchedulePage(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def list_for_turn(self, caller: Caller, limit: int) -> SchedulePage:
        """The schedules that an agent may see in a turn for one person."""
        require_read(caller)
        found = await self.store.list(ScheduleFilter(owner_filter_for_turn(caller), LIVE_STATES, limit=limit + 1))
        return SchedulePage(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def next_fire_of_agents(self, caller: Caller, agents: Sequence[str]) -> Mapping[str, int]:
        """When each of these agents is prompted next; for an admin."""
        require_schedules_admin(caller, "To see when every agent is prompted next")
        return await self.store.next_fire_of_agents(agents)

    async def upcoming(self, caller: Caller, agent_id: str, limit: int) -> Sequence[Schedule]:
        """The next schedules of an agent, the soonest first; for an admin."""
        require_schedules_admin(caller, "To see what an agent is prompted with next")
        return await self.store.upcoming(agent_id, limit)

    async def get(self, caller: Caller, schedule_id: object) -> Schedule:
        require_read(caller)
        return await self.get_visible(caller, schedule_id)

    async def history(self, caller: Caller, wanted: ListRuns | None = None) -> RunPage:
        """The runs that the caller may see, the newest first."""
        require_read(caller)
        asked = wanted or ListRuns()
        limit = parse_within("limit", asked.limit, MAX_LIMIT)
        number = None if asked.schedule_id is None else (await self.get_visible(caller, asked.schedule_id)).id
        whose = owner_filter_for_agent(caller, asked.agent_id)
        standings = (asked.standing,) if asked.standing else ()
        before = HistoryCursor.parse(asked.before) if asked.before else None
        found = await self.past.history(HistoryQuery(whose, number, standings, before, limit + 1))
        return RunPage(found[:limit], str(HistoryCursor.after_run(found[limit - 1])) if len(found) > limit else None)

    async def preview(self, caller: Caller, schedule_id: object, count: object = DEFAULT_PREVIEW) -> RulePreview:
        """The next intended times of a schedule."""
        require_read(caller)
        wanted = parse_within("count", count, MAX_PREVIEW)
        found = await self.get_visible(caller, schedule_id)
        most, trigger = found.what.max_repetitions, found.what.trigger
        left = wanted if most is None else max(0, min(wanted, most - found.fired))
        times = preview_fires(trigger, now_us(), left if found.state in LIVE_STATES else 0)
        return RulePreview(RuleDescription.of(trigger, found.intended_us), trigger.zone, times)

    async def preview_rule(self, caller: Caller, request: RuleRequest, count: object = DEFAULT_PREVIEW) -> RulePreview:
        """The next times of a rule, without making a schedule."""
        require_read(caller)
        wanted, now = parse_within("count", count, MAX_PREVIEW), now_us()
        trigger = parse_rule(request, now).trigger
        times = preview_fires(trigger, now, wanted)
        return RulePreview(RuleDescription.of(trigger, times[0] if times else None), trigger.zone, times)

    async def get_visible(self, caller: Caller, schedule_id: object, gone: str = NO_SCHEDULE) -> Schedule:
        """A schedule that the caller may see."""
        number = parse_schedule_id(schedule_id)
        found = await self.store.get(number) if number else None
        if found is None or not can_see(caller, found.what.agent_id, found.what.user_id):
            raise NotFound(gone.format(str(schedule_id).strip()[:20]))
        return found

    async def get_visible_run(self, caller: Caller, delivery_id: str) -> RunRecord:
        """A run that the caller may see."""
        found = await self.past.get(delivery_id)
        if found is None or not can_see(caller, found.agent_id, found.user_id):
            raise NotFound(f"There is no run '{delivery_id[:64]}'; the history lists them")
        return found


# At most this many schedules and runs around now are read, and at most this many times returned.
MAX_AROUND = 150
MAX_FIRES = 300
MAX_DEAD = 100
MAX_TURNS = 20
# A turn has the database's time, a run the time of the machine that delivers it.
CLOCKS_APART_US = 120 * SECOND


@dataclass(frozen=True, slots=True)
class ScheduleOverview:
    """Lists for pages, limited to what the caller may see."""

    store: OverviewStore
    past: HistoryStore

    async def upcoming(self, caller: Caller, agent_id: str | None, after: str | None, limit: object) -> UpcomingPage:
        """Schedules that will fire, the next one first."""
        require_read(caller)
        most = parse_within("limit", limit, MAX_LIMIT)
        place = UpcomingCursor.parse(after) if after else None
        found = await self.store.upcoming(owner_filter_for_agent(caller, agent_id), place, most + 1)
        last = found[most - 1] if len(found) > most else None
        return UpcomingPage(found[:most], None if last is None else str(UpcomingCursor(last.fire_us or 0, last.id)))

    async def newest(
        self, caller: Caller, agent_id: str | None, state: ScheduleState | None, before: object, limit: object
    ) -> NewestPage:
        """Schedules of one state, or of all, by their numbers."""
        require_read(caller)
        most = parse_within("limit", limit, MAX_LIMIT)
        number = None if before in (None, "") else parse_within("before", before, MAX_SCHEDULE_ID)
        found = await self.store.newest(owner_filter_for_agent(caller, agent_id), state, number, most + 1)
        return NewestPage(found[:most], found[most - 1].id if len(found) > most else None)

    async def ended(
        self, caller: Caller, agent_id: str | None, standing: RunStatus | None, before: str | None, limit: object
    ) -> EndedRunsPage:
        """Runs that are over, the last one first."""
        require_read(caller)
        most = parse_within("limit", limit, MAX_LIMIT)
        standings = (standing,) if standing else ()
        place = HistoryCursor.parse(before) if before else None
        query = HistoryQuery(owner_filter_for_agent(caller, agent_id), None, standings, place, most)
        runs, following = await self.past.ended(query)
        return EndedRunsPage(runs, None if following is None else str(following))

    async def under_way(self, caller: Caller, agent_id: str | None, limit: object) -> Sequence[RunRecord]:
        """Some of the runs that have started or wait for a retry."""
        require_read(caller)
        most = parse_within("limit", limit, MAX_LIMIT)
        return await self.past.under_way(HistoryQuery(owner_filter_for_agent(caller, agent_id), limit=most))

    async def around(self, caller: Caller, agent_id: str | None, now_us: int, span_us: int) -> FiresAroundNow:
        """The fires within `span_us` after now, and the runs that ended within `span_us` before."""
        require_read(caller)
        whose = owner_filter_for_agent(caller, agent_id)
        waiting = await self.store.fires_until(whose, now_us + span_us, MAX_AROUND)
        ended = await self.store.ended_since(whose, now_us - span_us, MAX_AROUND)
        if len(waiting) == MAX_AROUND:
            # If not even the next time of each fits, the later times are not needed.
            return FiresAroundNow([one.fire_us for one in waiting], ended, more=True)
        ahead, more = expand_fires(waiting, now_us + span_us, MAX_FIRES)
        return FiresAroundNow(ahead, ended, more or len(ended) == MAX_AROUND)

    async def dead(self, caller: Caller, agent_id: str | None = None) -> int:
        """How many runs are dead, counted up to `MAX_DEAD`."""
        require_read(caller)
        return await self.store.dead(owner_filter_for_agent(caller, agent_id), MAX_DEAD)

    async def change_mark(self, caller: Caller, agent_id: str | None = None) -> str:
        """A mark that changes after schedules are created, paused, moved, started or ended.

        It may miss changes of schedules that fire only after many others.
        """
        require_schedules_admin(caller, "To look over everybody's schedules")
        return (await self.store.change_mark(owner_filter_for_agent(caller, agent_id), MAX_AROUND)).digest

    async def zones(self, caller: Caller, runs: Sequence[RunRecord]) -> Mapping[int, str]:
        """The zones of the schedules of these runs, by schedule number."""
        require_read(caller)
        return await self.store.zones({run.schedule_id for run in runs})

    async def run_references(self, caller: Caller, ids: Collection[str]) -> Mapping[str, RunReference]:
        """The runs among these ids of turns; the sender of a turn may have given it any id."""
        require_read(caller)
        return await self.store.run_references(owner_filter(caller), ids) if ids else {}

    async def turns_of(self, caller: Caller, run: RunRecord) -> Sequence[str]:
        """The turns of a run, the newest first; there is one for each attempt that reached the agent."""
        require_read(caller)
        return await self.store.turns_of(run, now_us(), CLOCKS_APART_US, MAX_TURNS)


def expand_fires(waiting: Sequence[UpcomingFire], until_us: int, most: int) -> tuple[Sequence[int], bool]:
    """The next times of these schedules, up to `most` of them, and whether there are more."""
    found = [one.fire_us for one in waiting]
    going = [(one.trigger, one.fire_us) for one in waiting]
    while going and len(found) < most:
        # Takes one more time of each in turn, so that no single schedule fills the list.
        following = [(trigger, _next_known_fire(trigger, at)) for trigger, at in going]
        going = [(trigger, at) for trigger, at in following if at is not None and at <= until_us]
        found += [at for _, at in going]
    return sorted(found)[:most], len(found) > most or bool(going)


def _next_known_fire(trigger: Trigger, at: int) -> int | None:
    """The fire after this one; None if the zone of the rule is not known here."""
    try:
        return next_fire_after(trigger, at)
    except Invalid:
        return None
