"""`/schedule`: the time line, and below it schedules by when they come, or runs that are over."""

from typing import Any

from frontdesk.schedule.model import Standing, State, us
from frontdesk.schedule.overview.service import MOST_DEAD
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.schedule import strip
from frontdesk.surfaces.web.pages.schedule.agents import Roster, roster
from frontdesk.surfaces.web.pages.schedule.choosing import ANY, RUNS, Chosen, agent_of, choose, mark_of
from frontdesk.surfaces.web.pages.schedule.told import Row, RunRow

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
    agent, agents, chosen = agent_of(asked), await roster(asked), await choose(asked)
    runs = asked.query.get("show") == RUNS
    context = {
        **await _strip(asked, agent),
        **(await _runs(asked, chosen, agents) if runs else {"rows": [Row.of(one, agents) for one in chosen.schedules]}),
        "show_runs": runs,
        "agent": agent or "",
        "agents": agents.choices(agent, "All agents"),
        "state": asked.query.get("state", ""),
        "states": STANDINGS if runs else STATES,
        "started": asked.query.get("after"),
        "following": chosen.following,
        "host_wrong": agents.wrong,
        "dead": await asked.app.schedules.overview.dead(asked.caller, agent),
        "most_dead": MOST_DEAD,
        "mark": await mark_of(asked, chosen),
    }
    return Shown("schedule/list.html", "Schedule", context)


async def _strip(asked: Asked, agent: str | None) -> dict[str, Any]:
    span, name, length = strip.span_of(asked.query.get("span"))
    now = us(asked.now)
    around = await asked.app.schedules.overview.around(asked.caller, agent, now, length)
    return {"strip": strip.draw(around, now, name, length), "span": span, "spans": strip.SPANS}


async def _runs(asked: Asked, chosen: Chosen, agents: Roster) -> dict[str, Any]:
    zones = await asked.app.schedules.overview.zones(asked.caller, [*chosen.ended, *chosen.begun])
    return {
        name: [RunRow.of(one, agents, zones.get(one.schedule_id, "UTC")) for one in runs]
        for name, runs in (("runs", chosen.ended), ("begun", chosen.begun))
    }
