"""The tools that make schedules: once, by cron, at an interval, or any of these."""

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import Asked
from frontdesk.surfaces.mcp.schedule.asked import AtTime, ByCron, Every, Register, Upcoming, number
from frontdesk.surfaces.mcp.schedule.told import Made
from frontdesk.surfaces.mcp.schedule.told import Upcoming as Told
from frontdesk.surfaces.mcp.tool import Result

TIMES = 5
MOST_TIMES = 100


async def make(app: App, caller: Caller, given: AtTime | ByCron | Every | Register) -> Result:
    added = await app.schedules.add(caller, given.asked)
    return Made.of(added, f"Prompt scheduled with ID {added.schedule.id}").result()


async def preview(app: App, caller: Caller, given: Upcoming) -> Result:
    wanted = numbers.within("count", number(given.count), TIMES, MOST_TIMES)
    if given.schedule_id is not None:
        if given.asked != Asked():
            raise Invalid("Give a schedule_id, or a rule to try, and not both")
        found = await app.schedules.preview(caller, given.schedule_id, wanted)
    else:
        found = await app.schedules.preview_rule(caller, given.asked, wanted)
    return Told.model_validate(Told.fields_of(found)).result()
