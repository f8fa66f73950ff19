"""Answers the HTTP API for memories, activities, categories, the timeline, and search in all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from frontdesk.memory.activities_rules import ActivityFilter, ActivityStats
from frontdesk.memory.insights import Insights
from frontdesk.memory.memories_rules import MemoryFilter, MemoryStats
from frontdesk.memory.model import (
    ContextItem,
    ItemHit,
    ItemSearch,
    ItemType,
    Memory,
    PersonScope,
    SearchMode,
    TimelineFilter,
    TimelineItem,
)
from frontdesk.memory.operations.base import ZoneQuery
from frontdesk.memory.operations.timeline_requests import (
    ActivityContent,
    ActivityIdRequest,
    ActivityQuery,
    AnchorContent,
    CategoryContent,
    CategoryIdRequest,
    CreateTimelineItem,
    InsightQuery,
    ItemContent,
    ItemIdRequest,
    ItemQuery,
    ItemSearchQuery,
    MemoryContent,
    MemoryIdRequest,
    MemoryQuery,
    MemorySearchQuery,
    NewActivityContent,
    RemoveAnchorRequest,
    TimelineSearchQuery,
)
from frontdesk.memory.rest.responses import (
    ActivityListResponse,
    ActivityResponse,
    AnchoredListResponse,
    AnchorListResponse,
    AnchorResponse,
    CategoryResponse,
    DeletedResponse,
    DoneResponse,
    ItemListResponse,
    ItemResponse,
    MemoryApiModel,
    counted_answer,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.validation import RecordPage
from frontdesk.operations import EmptyQuery, RestAnswer, RestInput
from frontdesk.text import one_line

# What came with a request that has a path and nothing else.
PathInput = RestInput[EmptyQuery, None]


async def list_memories(services: RecordServices, scope: PersonScope, query: MemoryQuery) -> RestAnswer:
    page = await services.memories.list(scope, MemoryFilter(**query.provided()))
    return counted_answer(page.items, page.total)


async def create_memory(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, MemoryContent]
) -> Memory:
    return await services.memories.create(scope, request.body.provided(), request.query.timezone)


async def memory_stats(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, None]
) -> MemoryStats:
    return await services.memories.stats(scope, request.query.timezone)


async def show_memory(services: RecordServices, scope: PersonScope, request: PathInput) -> Memory:
    return await services.memories.get(scope, request.path["memory_id"])


async def update_memory(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, MemoryContent]
) -> Memory:
    return await services.memories.update(
        scope, request.path["memory_id"], request.body.changes(), request.query.timezone
    )


async def delete_memory(services: RecordServices, scope: PersonScope, request: PathInput) -> DoneResponse:
    await services.memories.delete(scope, request.path["memory_id"])
    return DoneResponse(message="Memory deleted")


async def list_anchors(services: RecordServices, scope: PersonScope, request: MemoryIdRequest) -> AnchorListResponse:
    return AnchorListResponse(anchors=await services.memories.anchors(scope, request.memory_id))


async def add_anchor(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, AnchorContent]
) -> AnchorResponse:
    memory_id, fields = request.path["memory_id"], request.body.provided()
    return AnchorResponse(anchor=await services.memories.anchor(scope, memory_id, fields, request.query.timezone))


async def remove_anchor(services: RecordServices, scope: PersonScope, request: RemoveAnchorRequest) -> DoneResponse:
    await services.memories.unanchor(scope, request.memory_id, request.item_id, request.relation)
    return DoneResponse(message="Anchor deleted")


async def list_activities(
    services: RecordServices, scope: PersonScope, request: RestInput[ActivityQuery, None]
) -> ActivityListResponse:
    page = await services.activities.list(scope, ActivityFilter(**request.query.filter_fields()))
    return ActivityListResponse(activities=page.items, count=page.total)


async def create_activity(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, NewActivityContent]
) -> ActivityResponse:
    activity = await services.activities.create(scope, request.body.provided(), request.query.timezone)
    return ActivityResponse(activity=activity)


async def activity_stats(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, None]
) -> ActivityStats:
    return await services.activities.stats(scope, request.query.timezone)


async def show_activity(services: RecordServices, scope: PersonScope, request: PathInput) -> ActivityResponse:
    return ActivityResponse(activity=await services.activities.get(scope, request.path["activity_id"]))


async def update_activity(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, ActivityContent]
) -> ActivityResponse:
    activity_id, changes = request.path["activity_id"], request.body.changes()
    return ActivityResponse(
        activity=await services.activities.update(scope, activity_id, changes, request.query.timezone)
    )


async def delete_activity(services: RecordServices, scope: PersonScope, request: ActivityIdRequest) -> DoneResponse:
    await services.activities.delete(scope, request.activity_id)
    return DoneResponse(message="Activity deleted")


async def show_category(services: RecordServices, scope: PersonScope, request: PathInput) -> CategoryResponse:
    return CategoryResponse(category=await services.categories.get(scope, request.path["category_id"]))


async def update_category(
    services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, CategoryContent]
) -> CategoryResponse:
    category = await services.categories.update(scope, request.path["category_id"], request.body.changes())
    return CategoryResponse(category=category)


async def delete_category(services: RecordServices, scope: PersonScope, request: CategoryIdRequest) -> DoneResponse:
    await services.categories.delete(scope, request.category_id)
    return DoneResponse(message="Category deleted")


async def list_items(
    services: RecordServices, scope: PersonScope, request: RestInput[ItemQuery, None]
) -> ItemListResponse:
    return _item_list(await services.timeline.list(scope, TimelineFilter(**request.query.provided())))


async def list_highlights(services: RecordServices, scope: PersonScope, query: ItemQuery) -> ItemListResponse:
    filters = replace(TimelineFilter(**query.provided()), is_highlight=True)
    return _item_list(await services.timeline.list(scope, filters))


async def list_memory_items(services: RecordServices, scope: PersonScope, query: ItemQuery) -> ItemListResponse:
    filters = replace(TimelineFilter(**query.provided()), type=ItemType.MEMORY)
    return _item_list(await services.timeline.list(scope, filters))


def _item_list(page: RecordPage[TimelineItem]) -> ItemListResponse:
    return ItemListResponse(items=page.items, count=page.total, has_more=page.has_more)


async def create_item(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, CreateTimelineItem]
) -> ItemResponse:
    return ItemResponse(item=await services.timeline.create(scope, request.body.provided(), request.query.timezone))


async def timeline_insights(
    services: RecordServices, scope: PersonScope, request: RestInput[InsightQuery, None]
) -> Insights:
    return await services.timeline.insights(scope, request.query.date_range, request.query.timezone)


async def show_item(services: RecordServices, scope: PersonScope, request: ItemIdRequest) -> ItemResponse:
    return ItemResponse(item=await services.timeline.get(scope, request.item_id))


async def update_item(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, ItemContent]
) -> ItemResponse:
    item_id, changes = request.path["item_id"], request.body.changes()
    return ItemResponse(item=await services.timeline.update(scope, item_id, changes, request.query.timezone))


async def delete_item(services: RecordServices, scope: PersonScope, request: ItemIdRequest) -> DeletedResponse:
    item = await services.timeline.delete(scope, request.item_id)
    return DeletedResponse(message="Timeline item deleted", id=item.id)


async def item_anchors(services: RecordServices, scope: PersonScope, request: ItemIdRequest) -> AnchoredListResponse:
    return AnchoredListResponse(anchors=await services.memories.anchored_to(scope, request.item_id))


MAX_HIGHLIGHTS, CHARACTERS_BEFORE, HIGHLIGHT_CHARACTERS = 3, 40, 160
MatchType = Literal["full_text", "semantic", "hybrid"]
MATCH_EXAMPLE = {"relevance_score": 0.82, "match_type": "hybrid", "highlights": ["Ada likes the window seat"]}
SEARCH_EXAMPLE = {"total_count": 1, "search_type": "hybrid", "query": "where does Ada sit", "filters": {"limit": 20}}


class SearchMatch(MemoryApiModel):
    """How well a record matches."""

    relevance_score: float = Field(description="From 0 to 1.")
    match_type: MatchType = Field(description="Whether words speak for it, its meaning, or both.")
    highlights: list[str] = Field(description="Where the words occur in it.")


class MemoryMatch(SearchMatch):
    """A memory that matches."""

    memory: Memory


class ItemMatch(SearchMatch):
    """An item that matches, and the items around it."""

    item: TimelineItem
    context: Sequence[ContextItem]


class SearchResponse(MemoryApiModel):
    """The query, and how many results there are."""

    total_count: int
    search_type: SearchMode
    query: str
    filters: Mapping[str, Any] = Field(description="What it was narrowed down to.")


class MemorySearchResponse(SearchResponse):
    """The matching memories, the best first."""

    results: list[MemoryMatch]


class TimelineSearchResponse(SearchResponse):
    """The matching items, the best first."""

    results: list[ItemMatch]


async def search_memories(
    services: RecordServices, scope: PersonScope, request: RestInput[MemorySearchQuery, None]
) -> MemorySearchResponse:
    query = request.query
    hits = await services.search.search_memories(scope, _item_search(query, {ItemType.MEMORY}))
    matches = [MemoryMatch(**_match_fields(hit), memory=memory) for hit, memory in hits]
    return MemorySearchResponse(**_repeat_query(query), total_count=len(matches), results=matches)


async def search_items(
    services: RecordServices, scope: PersonScope, request: RestInput[TimelineSearchQuery, None]
) -> TimelineSearchResponse:
    query = request.query
    search = _item_search(query, set(query.include_types or ()))
    answer = await services.search.search_with_context(scope, search, query.context_depth)
    matches = [
        ItemMatch(**_match_fields(hit), item=hit.item, context=answer.context[hit.item.id]) for hit in answer.hits
    ]
    return TimelineSearchResponse(**_repeat_query(query), total_count=len(matches), results=matches)


def _item_search(query: ItemSearchQuery, types: set[ItemType]) -> ItemSearch:
    names = {"q": "text", "search_type": "mode", "timezone": "zone", "category_id": "category"}
    fields = query.provided("include_types", "context_depth")
    filters = {names.get(name, name): value for name, value in fields.items()}
    return ItemSearch(**filters, types=frozenset(types) or None)


def _repeat_query(query: ItemSearchQuery) -> dict[str, Any]:
    return {"query": query.q, "search_type": query.search_type, "filters": query.provided("q", "search_type")}


def _match_fields(hit: ItemHit) -> dict[str, Any]:
    by_meaning = hit.meaning is not None and hit.meaning > 0
    kind = "hybrid" if by_meaning and hit.words else "semantic" if by_meaning else "full_text"
    return {"relevance_score": hit.score, "match_type": kind, "highlights": find_highlights(hit.text, hit.words)}


def find_highlights(text: str, words: Sequence[str]) -> list[str]:
    """Some lines of a text around the words, or its beginning if no word occurs."""
    lowered = text.casefold()
    places = sorted({place for word in words if (place := lowered.find(word.casefold())) >= 0})
    lines: list[str] = []
    end = -1
    for place in places[:MAX_HIGHLIGHTS] or [0]:
        if place > end:
            start = max(0, place - CHARACTERS_BEFORE)
            lines.append(one_line(text[start : start + 2 * HIGHLIGHT_CHARACTERS], HIGHLIGHT_CHARACTERS))
            end = start + HIGHLIGHT_CHARACTERS
    return [line for line in lines if line]
