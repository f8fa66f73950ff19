"""The tools that change schedules: cancel, pause, resume, update, run now."""

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.schedule import numbers
from frontdesk.surfaces.mcp.schedule.asked import Update, Which
from frontdesk.surfaces.mcp.schedule.told import Cancelled, Made, Running, Stands
from frontdesk.surfaces.mcp.tool import Result


async def cancel(app: App, caller: Caller, given: Which) -> Result:
    number = (await app.schedules.cancel(caller, given.schedule_id)).id
    return Cancelled(cancelled_id=number, message=f"Schedule {number} cancelled").result()


async def pause(app: App, caller: Caller, given: Which) -> Result:
    schedule = await app.schedules.pause(caller, given.schedule_id)
    return Stands.of(schedule, f"Schedule {schedule.id} paused").result()


async def resume(app: App, caller: Caller, given: Which) -> Result:
    added = await app.schedules.resume(caller, given.schedule_id)
    return Made.of(added, f"Schedule {added.schedule.id} resumed").result()


async def update(app: App, caller: Caller, given: Update) -> Result:
    added = await app.schedules.update(caller, given.schedule_id, given.change)
    return Made.of(added, f"Schedule {added.schedule.id} updated").result()


async def run_now(app: App, caller: Caller, given: Which) -> Result:
    delivery_id, number = await app.schedules.run_now(caller, given.schedule_id), numbers.schedule_id(given.schedule_id)
    message = f"Schedule {number} runs now; promptyoself_history tells what came of it"
    return Running(id=number, delivery_id=delivery_id, message=message).result()
