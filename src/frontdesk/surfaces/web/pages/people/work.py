"""What a person's agents are to do, and what came of it."""

from frontdesk.memory import checks
from frontdesk.memory.model import AiStatus
from frontdesk.memory.queue.guard import is_cleared
from frontdesk.memory.queue.states import OPEN
from frontdesk.memory.queue.wanted import AiWanted
from frontdesk.surfaces.web.model import Shown
from frontdesk.surfaces.web.pages.people.address import offset_of
from frontdesk.surfaces.web.pages.people.whose import Whose

SHOWN = 25
STATES = [("", "any state"), *((one.value, one.replace("_", " ")) for one in AiStatus)]
GATES = {"is_cleared": is_cleared, "unfinished": OPEN}


async def look(whose: Whose) -> Shown:
    work_id = whose.said("work")
    if not work_id:
        return await _all(whose)
    work = await whose.room.queue.get(whose.scope, work_id)
    return whose.shown("piece", "work", {"work": work, **GATES})


async def _all(whose: Whose) -> Shown:
    state, offset = whose.said("state"), offset_of(whose.said("offset"))
    wanted = AiWanted(status=checks.choice(AiStatus, "state", state) if state else None, limit=SHOWN, offset=offset)
    page = await whose.room.queue.list(whose.scope, wanted)
    context = {
        "page": page,
        "state": state,
        "states": STATES,
        "newer": max(0, offset - SHOWN) if offset else None,
        "older": offset + SHOWN if page.has_more else None,
        **GATES,
    }
    return whose.shown("work", "work", context)
