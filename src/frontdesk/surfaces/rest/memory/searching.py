"""Search over HTTP: memories, and the whole timeline, by words and by meaning."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from frontdesk.loop.text import one_line
from frontdesk.memory.model import Item, ItemType, Memory
from frontdesk.memory.recall.model import Hit, Near, Way
from frontdesk.memory.recall.model import Query as Wanted
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.examples import shown
from frontdesk.surfaces.rest.memory.queries import MemoryRecallQuery, RecallQuery, TimelineRecallQuery
from frontdesk.surfaces.rest.memory.told import Told
from frontdesk.surfaces.rest.memory.who import ReadsMemories, ReadsTimeline

HIGHLIGHTS, BEFORE, LONG = 3, 40, 160
MatchType = Literal["full_text", "semantic", "hybrid"]
HOW = {"relevance_score": 0.82, "match_type": "hybrid", "highlights": ["Ada likes the window seat"]}
ANSWER = {"total_count": 1, "search_type": "hybrid", "query": "where does Ada sit", "filters": {"limit": 20}}


class Match(Told):
    """How well something fits."""

    relevance_score: float = Field(description="From 0 to 1.")
    match_type: MatchType = Field(description="Whether words speak for it, its meaning, or both.")
    highlights: list[str] = Field(description="Where the words occur in it.")


class MemoryMatch(Match):
    """A memory that fits."""

    memory: Memory


class ItemMatch(Match):
    """An item that fits, and what lies around it."""

    item: Item
    context: Sequence[Near]


class Found(Told):
    """What was asked, and how much was found."""

    total_count: int
    search_type: Way
    query: str
    filters: Mapping[str, Any] = Field(description="What it was narrowed down to.")


class FoundMemories(Found):
    """The memories that fit, the best first."""

    results: list[MemoryMatch]


class FoundItems(Found):
    """What fits, the best first."""

    results: list[ItemMatch]


def add_memory_search(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(
        "/memories/search",
        responses=shown({**ANSWER, "results": [{**HOW, "memory": examples.memory}]}),
        summary="Find memories by words and by meaning",
    )
    async def search_memories(scope: ReadsMemories, query: Annotated[MemoryRecallQuery, Query()]) -> FoundMemories:
        hits = await room.recall.search(scope, _wanted(query, {ItemType.MEMORY}))
        memories = await room.memories.some(scope, [hit.item.id for hit in hits])
        found = [MemoryMatch(**_match(hit), memory=memories[hit.item.id]) for hit in hits if hit.item.id in memories]
        return FoundMemories(**_asked(query), total_count=len(found), results=found)


def add_timeline_search(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(
        "/timeline-items/search",
        responses=shown({**ANSWER, "results": [{**HOW, "item": examples.item, "context": []}]}),
        summary="Find anything by words and by meaning, with what lies around it",
    )
    async def search_items(scope: ReadsTimeline, query: Annotated[TimelineRecallQuery, Query()]) -> FoundItems:
        hits = await room.recall.search(scope, _wanted(query, set(query.include_types or ())))
        around = await room.recall.around(scope, [hit.item.id for hit in hits], query.context_depth)
        found = [ItemMatch(**_match(hit), item=hit.item, context=around.get(hit.item.id, ())) for hit in hits]
        return FoundItems(**_asked(query), total_count=len(found), results=found)


def _wanted(query: RecallQuery, types: set[ItemType]) -> Wanted:
    names = {"q": "text", "search_type": "how", "timezone": "zone", "category_id": "category"}
    said = query.said("include_types", "context_depth")
    given = {names.get(name, name): value for name, value in said.items()}
    return Wanted(**given, types=frozenset(types) or None)


def _asked(query: RecallQuery) -> dict[str, Any]:
    return {"query": query.q, "search_type": query.search_type, "filters": query.said("q", "search_type")}


def _match(hit: Hit) -> dict[str, Any]:
    meant = hit.meaning is not None and hit.meaning > 0
    kind = "hybrid" if meant and hit.words else "semantic" if meant else "full_text"
    return {"relevance_score": hit.score, "match_type": kind, "highlights": highlights(hit.text, hit.words)}


def highlights(text: str, words: Sequence[str]) -> list[str]:
    """Some places in a text, each around a word, as far as one line goes; the first words of it where there is none."""
    lowered = text.casefold()
    places = sorted({place for word in words if (place := lowered.find(word.casefold())) >= 0})
    found: list[str] = []
    end = -1
    for place in places[:HIGHLIGHTS] or [0]:
        if place > end:
            start = max(0, place - BEFORE)
            found.append(one_line(text[start : start + 2 * LONG], LONG))
            end = start + LONG
    return [line for line in found if line]
