"""What can be done with a schedule and with a run that was given up."""

from frontdesk.surfaces.web.model import Asked, Done
from frontdesk.surfaces.web.pages.schedule.told import sentence


async def pause(asked: Asked) -> Done:
    found = await asked.app.schedules.pause(asked.caller, asked.at["id"])
    return _back(found.id, f"Schedule {found.id} is paused; nothing of it begins until it is resumed")


async def resume(asked: Asked) -> Done:
    added = await asked.app.schedules.resume(asked.caller, asked.at["id"])
    return _back(added.schedule.id, f"Schedule {added.schedule.id} goes on: {sentence(added.schedule)}")


async def run_now(asked: Asked) -> Done:
    found = await asked.app.schedules.looking.get(asked.caller, asked.at["id"])
    run = await asked.app.schedules.run_now(asked.caller, found.id)
    return _back(found.id, f"The next worker that is free runs it: {run}")


async def cancel(asked: Asked) -> Done:
    found = await asked.app.schedules.cancel(asked.caller, asked.at["id"])
    return _back(found.id, f"Schedule {found.id} is cancelled; a run under way still ends")


async def redrive(asked: Asked) -> Done:
    past = await asked.app.schedules.redrive(asked.caller, asked.at["id"])
    return _back(past.schedule_id, f"{past.id} is tried again, from its first attempt")


def _back(schedule_id: int, said: str) -> Done:
    return Done(f"/schedule/{schedule_id}", said)
