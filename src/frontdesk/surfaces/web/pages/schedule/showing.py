"""`/schedule/{id}` and `/schedule/runs/{id}`: one schedule with its runs, and one run with all its attempts."""

from frontdesk.errors import Invalid
from frontdesk.schedule.asked import PastWanted
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.schedule.agents import only
from frontdesk.surfaces.web.pages.schedule.choosing import mark_of_one
from frontdesk.surfaces.web.pages.schedule.clocks import Hour, hour, maybe
from frontdesk.surfaces.web.pages.schedule.live import RUNS
from frontdesk.surfaces.web.pages.schedule.told import Row, RunRow, host_of, times_of

TIMES = 5


async def schedule(asked: Asked) -> Shown:
    looking, place = asked.app.schedules.looking, asked.query.get("before")
    found = await looking.get(asked.caller, asked.at["id"])
    past = await looking.history(asked.caller, PastWanted(found.id, before=place or None, limit=RUNS))
    times, unknown = await _times(asked, found.id)
    what = found.what
    agents = await only(asked, what.agent_id)
    zone = what.trigger.zone
    context = {
        "one": Row.of(found, agents),
        "what": what,
        "webhook": host_of(what.forward.webhook),
        "start": maybe(what.trigger.start_us, zone),
        "end": maybe(what.trigger.end_us, zone),
        "created": hour(found.created_us),
        "updated": hour(found.updated_us),
        "times": times,
        "unknown": unknown,
        "runs": [RunRow.of(one, agents, zone) for one in past.runs],
        "started": place,
        "following": past.next,
        "mark": mark_of_one(found, past.runs),
        "host_wrong": agents.wrong,
    }
    return Shown("schedule/one.html", f"Schedule {found.id}", context)


async def run(asked: Asked) -> Shown:
    schedules = asked.app.schedules
    found = await schedules.looking.own_run(asked.caller, asked.at["id"])
    zones = await schedules.overview.zones(asked.caller, [found])
    context = {
        "run": RunRow.of(found, await only(asked, found.agent_id), zones.get(found.schedule_id, "UTC")),
        "turns": await schedules.overview.turns_of(asked.caller, found),
    }
    return Shown("schedule/run.html", f"Run {found.id}", context)


async def _times(asked: Asked, number: int) -> tuple[list[Hour], str]:
    """The next times, or why they cannot be told: its zone may not be known here."""
    try:
        return times_of(await asked.app.schedules.looking.preview(asked.caller, number, TIMES)), ""
    except Invalid as error:
        return [], error.in_full
