"""One person: which of their tabs is shown."""

from collections.abc import Awaitable, Callable, Mapping

from frontdesk.errors import NotFound
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.people import handing, memories, tasks, timeline, timing, work
from frontdesk.surfaces.web.pages.people.whose import Whose, whose

TABS: Mapping[str, Callable[[Whose], Awaitable[Shown]]] = {
    "tasks": tasks.look,
    "memories": memories.look,
    "timeline": timeline.look,
    "time": timing.look,
    "work": work.look,
    "everything": handing.look,
}


async def person(asked: Asked) -> Shown:
    look = TABS.get(asked.query.get("tab", "") or "tasks")
    if look is None:
        raise NotFound(f"A person's page has no such part; it has {', '.join(TABS)}")
    return await look(await whose(asked))
