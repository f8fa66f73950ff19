"""Everything of a person's in one line, the last made first."""

from frontdesk.memory import checks
from frontdesk.memory.model import ItemType
from frontdesk.surfaces.web.model import Shown
from frontdesk.surfaces.web.pages.people.address import after, place_of
from frontdesk.surfaces.web.pages.people.whose import Whose

SHOWN = 30
KINDS = [("", "everything"), *((one.value, one.value) for one in ItemType)]


async def look(whose: Whose) -> Shown:
    said = whose.said("kind")
    kind = checks.choice(ItemType, "kind", said) if said else None
    items = await whose.room.timeline.newest(whose.scope, SHOWN + 1, place_of(whose.said("before")), kind)
    context = {
        "items": items[:SHOWN],
        "kind": said,
        "kinds": KINDS,
        "before": whose.said("before"),
        "older": after(items[SHOWN - 1]) if len(items) > SHOWN else "",
    }
    return whose.shown("timeline", "timeline", context)
