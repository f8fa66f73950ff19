"""What a person wants remembered: searched as `frontdesk memory search` does, or the last noted first."""

from collections.abc import Mapping

from frontdesk.memory.model import ItemType
from frontdesk.memory.recall.model import Query
from frontdesk.memory.recall.service import QUERY_CHARACTERS
from frontdesk.surfaces.web.model import Shown
from frontdesk.surfaces.web.pages.people.address import after, place_of
from frontdesk.surfaces.web.pages.people.whose import Whose

SHOWN = 25
MEMORIES = frozenset({ItemType.MEMORY})


async def look(whose: Whose) -> Shown:
    memory_id, words = whose.said("memory"), whose.said("q")[:QUERY_CHARACTERS]
    if memory_id:
        memory = await whose.room.memories.get(whose.scope, memory_id)
        return whose.shown("memory", "memories", {"memory": memory})
    return await (_search(whose, words) if words else _all(whose))


async def _search(whose: Whose, words: str) -> Shown:
    everything = whose.said("everything") == "1"
    query = Query(text=words, types=None if everything else MEMORIES, limit=SHOWN)
    hits = await whose.room.recall.search(whose.scope, query)
    return _shown(whose, {"words": words, "everything": everything, "hits": hits, "found": (), "older": ""})


async def _all(whose: Whose) -> Shown:
    items = await whose.room.timeline.newest(whose.scope, SHOWN + 1, place_of(whose.said("before")), ItemType.MEMORY)
    by_id = await whose.room.memories.some(whose.scope, [item.id for item in items[:SHOWN]])
    context = {
        "words": "",
        "everything": False,
        "hits": (),
        "found": [by_id[item.id] for item in items[:SHOWN] if item.id in by_id],
        "older": after(items[SHOWN - 1]) if len(items) > SHOWN else "",
    }
    return _shown(whose, context)


def _shown(whose: Whose, context: Mapping[str, object]) -> Shown:
    return whose.shown("memories_found" if whose.asked.part else "memories", "memories", context)
