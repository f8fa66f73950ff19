"""What can be done for a person: a task completed or opened again, a timer stopped, an agent's work approved."""

from frontdesk.memory.model import TaskStatus
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Done
from frontdesk.surfaces.web.pages.people.acting import named
from frontdesk.surfaces.web.pages.people.address import back

TITLE = 80


async def complete(asked: Asked) -> Done:
    return await _set(asked, TaskStatus.COMPLETED, "Completed")


async def reopen(asked: Asked) -> Done:
    return await _set(asked, TaskStatus.PENDING, "Open again")


async def stop(asked: Asked) -> Done:
    user, scope = named(asked)
    entry = await asked.app.memory.timing.stop(scope, asked.form.get("item", ""))
    said = "No timer runs" if entry is None else f"Stopped: {short(entry.item_title, TITLE)}"
    return Done(back(user, asked.form.get("back", ""), tab="time"), said)


async def approve(asked: Asked) -> Done:
    user, scope = named(asked)
    work = await asked.app.memory.queue.approve(scope, asked.form.get("work", ""))
    said = f"Approved: {short(work.agent_name, TITLE)} may execute {short(work.objective, TITLE)}"
    return Done(back(user, asked.form.get("back", ""), tab="work"), said)


async def _set(asked: Asked, status: TaskStatus, word: str) -> Done:
    user, scope = named(asked)
    task = await asked.app.memory.tasks.set_status(scope, asked.form.get("task", ""), status)
    return Done(back(user, asked.form.get("back", "")), f"{word}: {short(task.title, TITLE)}")
