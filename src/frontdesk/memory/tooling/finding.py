"""Memories by what they are about: the best by words and meaning, of which those stay that are as was asked."""

from frontdesk.memory.asked.memories import SearchMemories
from frontdesk.memory.given import Page
from frontdesk.memory.memories.wanted import MemoryWanted
from frontdesk.memory.model import ItemStatus, ItemType, Memory
from frontdesk.memory.recall.model import MOST, Query
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom

# What search can ask for by itself, so that the best are looked for among what fits.
ALIKE = {
    "tags",
    "memory_type",
    "is_highlight",
    "place_name",
    "min_salience",
    "min_emotion_valence",
    "max_emotion_valence",
}


async def found(room: MemoryRoom, scope: Scope, given: SearchMemories, text: str) -> Page[Memory]:
    """The best first, unless another order was asked for; a page of them."""
    said = given.said("search", "limit", "offset")
    hits = await room.recall.search(scope, _query(given, text))
    ids = [hit.item.id for hit in hits]
    fitting = await room.memories.list(scope, MemoryWanted(**said, among=ids, limit=MOST))
    places = {item_id: place for place, item_id in enumerate(ids)}
    memories = fitting.items if given.sort_by else sorted(fitting.items, key=lambda memory: places[memory.id])
    return Page(memories[given.offset : given.offset + given.limit], fitting.total, given.offset)


def _query(given: SearchMemories, text: str) -> Query:
    said = given.said()
    return Query(
        text=text,
        types=frozenset({ItemType.MEMORY}),
        limit=MOST,
        category=given.category_id,
        statuses=frozenset({ItemStatus(given.status)}) if given.status else None,
        **{name: said[name] for name in ALIKE if name in said},
    )
