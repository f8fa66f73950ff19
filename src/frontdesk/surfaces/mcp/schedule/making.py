"""The tools that make schedules: once, by cron, at an interval, or any of these."""

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.schedule.asked import TIMES, When
from frontdesk.surfaces.mcp.schedule.asked import AtTime, ByCron, Every, Register, Upcoming, number
from frontdesk.surfaces.mcp.schedule.told import Made
from frontdesk.surfaces.mcp.schedule.told import Upcoming as Told
from frontdesk.surfaces.mcp.tool import Result


async def make(app: App, caller: Caller, given: AtTime | ByCron | Every | Register) -> Result:
    added = await app.schedules.add(caller, given.asked)
    return Made.of(added, f"Prompt scheduled with ID {added.schedule.id}").result()


async def preview(app: App, caller: Caller, given: Upcoming) -> Result:
    count, said = number(given.count, TIMES), When(**given.moments)
    if given.schedule_id is None:
        found = await app.schedules.looking.preview_rule(caller, said, count)
    elif said.says_nothing:
        found = await app.schedules.looking.preview(caller, given.schedule_id, count)
    else:
        raise Invalid("Give a schedule_id, or a rule to try, and not both")
    return Told.model_validate(Told.fields_of(found)).result()
