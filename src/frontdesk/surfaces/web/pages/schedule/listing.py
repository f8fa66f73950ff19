"""`/schedule`: the time line, and below it schedules by when they come, or runs that are over."""

from typing import Any

from frontdesk.schedule import numbers
from frontdesk.schedule.model import Schedule, Standing, State, us
from frontdesk.schedule.overview.service import MOST_DEAD
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.schedule import strip
from frontdesk.surfaces.web.pages.schedule.agents import Roster, roster
from frontdesk.surfaces.web.pages.schedule.told import Row, RunRow

LISTED = 20
UNDER_WAY = 10
RUNS = "runs"
ANY = "any"
STATES = [
    ("", "Active, the next first"),
    *((one.value, one.value.capitalize()) for one in (State.PAUSED, State.CANCELLED, State.ENDED)),
    (ANY, "All, the newest first"),
]
STANDINGS = [
    ("", "All that are over"),
    *(
        (one.value, one.value.capitalize())
        for one in (Standing.DELIVERED, Standing.DEAD, Standing.SKIPPED, Standing.CANCELLED)
    ),
]


async def listing(asked: Asked) -> Shown:
    agent = asked.query.get("agent") or None
    agents = await roster(asked)
    runs = asked.query.get("show") == RUNS
    context = {
        **await _strip(asked, agent),
        **(await _runs(asked, agent, agents) if runs else await _schedules(asked, agent, agents)),
        "show_runs": runs,
        "agent": agent or "",
        "agents": agents.choices(agent, "All agents"),
        "host_wrong": agents.wrong,
        "dead": await asked.app.schedules.overview.dead(asked.caller, agent),
        "most_dead": MOST_DEAD,
        "mark": await asked.app.schedules.overview.mark(asked.caller),
    }
    return Shown("schedule/list.html", "Schedule", context)


async def _strip(asked: Asked, agent: str | None) -> dict[str, Any]:
    span, name, length = strip.span_of(asked.query.get("span"))
    now = us(asked.now)
    around = await asked.app.schedules.overview.around(asked.caller, agent, now, length)
    return {"strip": strip.draw(around, now, name, length), "span": span, "spans": strip.SPANS}


async def _schedules(asked: Asked, agent: str | None, agents: Roster) -> dict[str, Any]:
    state, place = asked.query.get("state", ""), asked.query.get("after")
    schedules, following = await _chosen(asked, agent, state, place)
    return {
        "rows": [Row.of(one, agents) for one in schedules],
        "state": state,
        "states": STATES,
        "started": place,
        "following": following,
    }


async def _chosen(
    asked: Asked, agent: str | None, state: str, place: str | None
) -> tuple[list[Schedule], str | int | None]:
    overview = asked.app.schedules.overview
    if state in ("", State.ACTIVE):
        coming = await overview.coming(asked.caller, agent, place, LISTED)
        return list(coming.schedules), coming.next
    kind = None if state == ANY else numbers.one_of(State, "state", state)
    newest = await overview.newest(asked.caller, agent, kind, place, LISTED)
    return list(newest.schedules), newest.next


async def _runs(asked: Asked, agent: str | None, agents: Roster) -> dict[str, Any]:
    overview, state, place = asked.app.schedules.overview, asked.query.get("state", ""), asked.query.get("after")
    standing = numbers.one_of(Standing, "state", state) if state else None
    ended = await overview.ended(asked.caller, agent, standing, place, LISTED)
    begun = await overview.under_way(asked.caller, agent, UNDER_WAY)
    return {
        "runs": [RunRow.of(one, agents) for one in ended.runs],
        "begun": [RunRow.of(one, agents) for one in begun],
        "state": state,
        "states": STANDINGS,
        "started": place,
        "following": ended.next,
    }
