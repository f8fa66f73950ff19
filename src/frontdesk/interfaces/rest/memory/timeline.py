"""Serves memories, activities, categories, the timeline, and search in all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from frontdesk.interfaces.rest.memory.requests import (
    ActivityQuery,
    InsightQuery,
    ItemQuery,
    ItemSearchQuery,
    MemoryQuery,
    MemorySearchQuery,
    ReadsActivities,
    ReadsCategories,
    ReadsMemories,
    ReadsTimeline,
    TimelineSearchQuery,
    WritesActivities,
    WritesCategories,
    WritesMemories,
    WritesTimeline,
    ZoneParameter,
)
from frontdesk.interfaces.rest.memory.responses import (
    EXAMPLE_ACTIVITY,
    EXAMPLE_ANCHOR,
    EXAMPLE_CATEGORY,
    EXAMPLE_ITEM,
    EXAMPLE_MEMORY,
    NEW_ACTIVITY,
    NEW_ANCHOR,
    NEW_CATEGORY,
    NEW_ITEM,
    NEW_MEMORY,
    ActivityListResponse,
    ActivityResponse,
    AnchoredListResponse,
    AnchorListResponse,
    AnchorResponse,
    CategoryListResponse,
    CategoryResponse,
    DeletedResponse,
    DoneResponse,
    ItemListResponse,
    ItemResponse,
    MemoryApiModel,
    example_body,
    example_response,
    set_total_count,
)
from frontdesk.memory.activities_rules import ActivityFilter, ActivityStats
from frontdesk.memory.insights import Insights
from frontdesk.memory.memories_rules import MemoryFilter, MemoryStats
from frontdesk.memory.model import (
    AnchorRelation,
    ContextItem,
    ItemHit,
    ItemSearch,
    ItemType,
    Memory,
    SearchMode,
    TimelineFilter,
    TimelineItem,
)
from frontdesk.memory.operations.activities import ActivityContent, NewActivityContent
from frontdesk.memory.operations.memories import AnchorContent, MemoryContent
from frontdesk.memory.operations.timeline import CategoryContent, CreateCategory, CreateTimelineItem, ItemContent
from frontdesk.memory.service import RecordServices
from frontdesk.memory.validation import RecordPage
from frontdesk.text import one_line

MEMORY_PATH = "/memories/{memory_id}"
ANCHORS_PATH = f"{MEMORY_PATH}/anchors"
MemoryBody = Annotated[MemoryContent, Body(openapi_examples=example_body(NEW_MEMORY))]


def add_memory_item_routes(router: APIRouter, services: RecordServices) -> None:
    _add_memory_lists(router, services)
    _add_one_memory(router, services)
    _add_memory_anchors(router, services)


def _add_memory_lists(router: APIRouter, services: RecordServices) -> None:
    @router.get("/memories", responses=example_response([EXAMPLE_MEMORY], counted=True), summary="Memories")
    async def list_memories(
        scope: ReadsMemories, query: Annotated[MemoryQuery, Query()], answer: Response
    ) -> list[Memory]:
        found = await services.memories.list(scope, MemoryFilter(**query.provided()))
        return [*set_total_count(found, answer)]

    @router.post(
        "/memories", status_code=201, responses=example_response(EXAMPLE_MEMORY, 201), summary="Remember something"
    )
    async def create_memory(scope: WritesMemories, request: MemoryBody, timezone: ZoneParameter = None) -> Memory:
        return await services.memories.create(scope, request.provided(), timezone)

    @router.get("/memories/stats", summary="What is remembered, in numbers")
    async def memory_stats(scope: ReadsMemories, timezone: ZoneParameter = None) -> MemoryStats:
        return await services.memories.stats(scope, timezone)


def _add_one_memory(router: APIRouter, services: RecordServices) -> None:
    @router.get(MEMORY_PATH, responses=example_response(EXAMPLE_MEMORY), summary="A memory")
    async def show_memory(scope: ReadsMemories, memory_id: str) -> Memory:
        return await services.memories.get(scope, memory_id)

    @router.put(MEMORY_PATH, responses=example_response(EXAMPLE_MEMORY), summary="Change a memory")
    async def update_memory(
        scope: WritesMemories, memory_id: str, request: MemoryBody, timezone: ZoneParameter = None
    ) -> Memory:
        return await services.memories.update(scope, memory_id, request.changes(), timezone)

    @router.delete(
        MEMORY_PATH,
        responses=example_response({"message": "Memory deleted"}),
        summary="Delete a memory; it is kept, and found again with status=deleted",
    )
    async def delete_memory(scope: WritesMemories, memory_id: str) -> DoneResponse:
        await services.memories.delete(scope, memory_id)
        return DoneResponse(message="Memory deleted")


def _add_memory_anchors(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        ANCHORS_PATH, responses=example_response({"anchors": [EXAMPLE_ANCHOR]}), summary="What a memory is anchored to"
    )
    async def list_anchors(scope: ReadsMemories, memory_id: str) -> AnchorListResponse:
        return AnchorListResponse(anchors=await services.memories.anchors(scope, memory_id))

    @router.post(
        ANCHORS_PATH,
        status_code=201,
        responses=example_response({"anchor": EXAMPLE_ANCHOR}, 201),
        summary="Anchor a memory to a task, an activity or another item",
    )
    async def add_anchor(
        scope: WritesMemories,
        memory_id: str,
        asked: Annotated[AnchorContent, Body(openapi_examples=example_body(NEW_ANCHOR))],
        timezone: ZoneParameter = None,
    ) -> AnchorResponse:
        return AnchorResponse(anchor=await services.memories.anchor(scope, memory_id, asked.provided(), timezone))

    @router.delete(
        f"{ANCHORS_PATH}/{{item_id}}", summary="Take a memory's anchors to an item away, or the one of a relation"
    )
    async def remove_anchor(
        scope: WritesMemories, memory_id: str, item_id: str, relation: AnchorRelation | None = None
    ) -> DoneResponse:
        await services.memories.unanchor(scope, memory_id, item_id, relation)
        return DoneResponse(message="Anchor deleted")


ACTIVITY_PATH = "/activities/{activity_id}"
ACTIVITY_EXAMPLE = {"activity": EXAMPLE_ACTIVITY}


def add_activity_routes(router: APIRouter, services: RecordServices) -> None:
    _add_activity_lists(router, services)
    _add_one_activity(router, services)


def _add_activity_lists(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        "/activities", responses=example_response({"activities": [EXAMPLE_ACTIVITY], "count": 1}), summary="Activities"
    )
    async def list_activities(scope: ReadsActivities, query: Annotated[ActivityQuery, Query()]) -> ActivityListResponse:
        found = await services.activities.list(scope, ActivityFilter(**query.filter_fields()))
        return ActivityListResponse(activities=found.items, count=found.total)

    @router.post(
        "/activities",
        status_code=201,
        responses=example_response(ACTIVITY_EXAMPLE, 201),
        summary="Write down an activity",
    )
    async def create_activity(
        scope: WritesActivities,
        asked: Annotated[NewActivityContent, Body(openapi_examples=example_body(NEW_ACTIVITY))],
        timezone: ZoneParameter = None,
    ) -> ActivityResponse:
        return ActivityResponse(activity=await services.activities.create(scope, asked.provided(), timezone))

    @router.get("/activities/stats", summary="What was done and how it felt, in numbers")
    async def activity_stats(scope: ReadsActivities, timezone: ZoneParameter = None) -> ActivityStats:
        return await services.activities.stats(scope, timezone)


def _add_one_activity(router: APIRouter, services: RecordServices) -> None:
    @router.get(ACTIVITY_PATH, responses=example_response(ACTIVITY_EXAMPLE), summary="An activity")
    async def show_activity(scope: ReadsActivities, activity_id: str) -> ActivityResponse:
        return ActivityResponse(activity=await services.activities.get(scope, activity_id))

    @router.put(ACTIVITY_PATH, responses=example_response(ACTIVITY_EXAMPLE), summary="Change an activity")
    async def update_activity(
        scope: WritesActivities, activity_id: str, asked: ActivityContent, timezone: ZoneParameter = None
    ) -> ActivityResponse:
        return ActivityResponse(
            activity=await services.activities.update(scope, activity_id, asked.changes(), timezone)
        )

    @router.delete(ACTIVITY_PATH, summary="Delete an activity, with the time spent on it")
    async def delete_activity(scope: WritesActivities, activity_id: str) -> DoneResponse:
        await services.activities.delete(scope, activity_id)
        return DoneResponse(message="Activity deleted")


CATEGORY_PATH = "/categories/{category_id}"
CATEGORY_EXAMPLE = {"category": EXAMPLE_CATEGORY}


def add_category_routes(router: APIRouter, services: RecordServices) -> None:
    """Add the routes for categories, which are found by id or name."""

    @router.get(
        "/categories", responses=example_response({"categories": [EXAMPLE_CATEGORY]}), summary="Categories by name"
    )
    async def list_categories(scope: ReadsCategories) -> CategoryListResponse:
        return CategoryListResponse(categories=await services.categories.list_all(scope))

    @router.post(
        "/categories", status_code=201, responses=example_response(CATEGORY_EXAMPLE, 201), summary="Make a category"
    )
    async def create_category(
        scope: WritesCategories,
        asked: Annotated[CreateCategory, Body(openapi_examples=example_body(NEW_CATEGORY))],
    ) -> CategoryResponse:
        return CategoryResponse(category=await services.categories.create(scope, asked.provided()))

    @router.get(
        CATEGORY_PATH, responses=example_response(CATEGORY_EXAMPLE), summary="A category, by its id or its name"
    )
    async def show_category(scope: ReadsCategories, category_id: str) -> CategoryResponse:
        return CategoryResponse(category=await services.categories.get(scope, category_id))

    @router.put(CATEGORY_PATH, responses=example_response(CATEGORY_EXAMPLE), summary="Change a category")
    async def update_category(scope: WritesCategories, category_id: str, asked: CategoryContent) -> CategoryResponse:
        return CategoryResponse(category=await services.categories.update(scope, category_id, asked.changes()))

    @router.delete(CATEGORY_PATH, summary="Delete a category; what was under it stays, under none")
    async def delete_category(scope: WritesCategories, category_id: str) -> DoneResponse:
        await services.categories.delete(scope, category_id)
        return DoneResponse(message="Category deleted")


TIMELINE_PATH = "/timeline-items"
TIMELINE_ITEM_PATH = f"{TIMELINE_PATH}/{{item_id}}"
ITEM_EXAMPLE = {"item": EXAMPLE_ITEM}
ITEMS_EXAMPLE = {"items": [EXAMPLE_ITEM], "count": 1, "has_more": False}


def add_timeline_routes(router: APIRouter, services: RecordServices) -> None:
    _add_timeline_lists(router, services)
    _add_one_item(router, services)


def _add_timeline_lists(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        TIMELINE_PATH, responses=example_response(ITEMS_EXAMPLE), summary="Everything, of every kind, in one line"
    )
    async def list_items(scope: ReadsTimeline, query: Annotated[ItemQuery, Query()]) -> ItemListResponse:
        return _item_list(await services.timeline.list(scope, TimelineFilter(**query.provided())))

    @router.post(
        TIMELINE_PATH,
        status_code=201,
        responses=example_response(ITEM_EXAMPLE, 201),
        summary="Put something on the timeline",
    )
    async def create_item(
        scope: WritesTimeline,
        asked: Annotated[CreateTimelineItem, Body(openapi_examples=example_body(NEW_ITEM))],
        timezone: ZoneParameter = None,
    ) -> ItemResponse:
        return ItemResponse(item=await services.timeline.create(scope, asked.provided(), timezone))

    @router.get(
        f"{TIMELINE_PATH}/highlights", responses=example_response(ITEMS_EXAMPLE), summary="Memories that stand out"
    )
    async def list_highlights(scope: ReadsTimeline, query: Annotated[ItemQuery, Query()]) -> ItemListResponse:
        wanted = replace(TimelineFilter(**query.provided()), is_highlight=True)
        return _item_list(await services.timeline.list(scope, wanted))

    @router.get(
        f"{TIMELINE_PATH}/memories", responses=example_response(ITEMS_EXAMPLE), summary="The memories of the timeline"
    )
    async def list_memory_items(scope: ReadsTimeline, query: Annotated[ItemQuery, Query()]) -> ItemListResponse:
        wanted = replace(TimelineFilter(**query.provided()), type=ItemType.MEMORY)
        return _item_list(await services.timeline.list(scope, wanted))

    @router.get(f"{TIMELINE_PATH}/insights", summary="What the days up to today say, in numbers and in words")
    async def timeline_insights(scope: ReadsTimeline, query: Annotated[InsightQuery, Query()]) -> Insights:
        return await services.timeline.insights(scope, query.date_range, query.timezone)


def _add_one_item(router: APIRouter, services: RecordServices) -> None:
    @router.get(TIMELINE_ITEM_PATH, responses=example_response(ITEM_EXAMPLE), summary="A timeline item")
    async def show_item(scope: ReadsTimeline, item_id: str) -> ItemResponse:
        return ItemResponse(item=await services.timeline.get(scope, item_id))

    @router.put(
        TIMELINE_ITEM_PATH,
        responses=example_response(ITEM_EXAMPLE),
        summary="Change a timeline item, and what stands behind it",
    )
    async def update_item(
        scope: WritesTimeline, item_id: str, asked: ItemContent, timezone: ZoneParameter = None
    ) -> ItemResponse:
        return ItemResponse(item=await services.timeline.update(scope, item_id, asked.changes(), timezone))

    @router.delete(TIMELINE_ITEM_PATH, summary="Delete a timeline item, and what stands behind it")
    async def delete_item(scope: WritesTimeline, item_id: str) -> DeletedResponse:
        return DeletedResponse(message="Timeline item deleted", id=(await services.timeline.delete(scope, item_id)).id)

    @router.get(f"{TIMELINE_ITEM_PATH}/anchors", summary="The memories that are anchored to an item, and how")
    async def item_anchors(scope: ReadsMemories, item_id: str) -> AnchoredListResponse:
        return AnchoredListResponse(anchors=await services.memories.anchored_to(scope, item_id))


def _item_list(page: RecordPage[TimelineItem]) -> ItemListResponse:
    return ItemListResponse(items=page.items, count=page.total, has_more=page.has_more)


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


def add_memory_search_route(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        "/memories/search",
        responses=example_response({**SEARCH_EXAMPLE, "results": [{**MATCH_EXAMPLE, "memory": EXAMPLE_MEMORY}]}),
        summary="Find memories by words and by meaning",
    )
    async def search_memories(
        scope: ReadsMemories, query: Annotated[MemorySearchQuery, Query()]
    ) -> MemorySearchResponse:
        hits = await services.search.search_memories(scope, _item_search(query, {ItemType.MEMORY}))
        found = [MemoryMatch(**_match_fields(hit), memory=memory) for hit, memory in hits]
        return MemorySearchResponse(**_repeat_query(query), total_count=len(found), results=found)


def add_timeline_search_route(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        "/timeline-items/search",
        responses=example_response(
            {**SEARCH_EXAMPLE, "results": [{**MATCH_EXAMPLE, "item": EXAMPLE_ITEM, "context": []}]}
        ),
        summary="Find anything by words and by meaning, with what lies around it",
    )
    async def search_items(
        scope: ReadsTimeline, query: Annotated[TimelineSearchQuery, Query()]
    ) -> TimelineSearchResponse:
        types = set(query.include_types or ())
        answer = await services.search.search_with_context(scope, _item_search(query, types), query.context_depth)
        found = [
            ItemMatch(**_match_fields(hit), item=hit.item, context=answer.context[hit.item.id]) for hit in answer.hits
        ]
        return TimelineSearchResponse(**_repeat_query(query), total_count=len(found), results=found)


def _item_search(query: ItemSearchQuery, types: set[ItemType]) -> ItemSearch:
    names = {"q": "text", "search_type": "mode", "timezone": "zone", "category_id": "category"}
    said = query.provided("include_types", "context_depth")
    given = {names.get(name, name): value for name, value in said.items()}
    return ItemSearch(**given, types=frozenset(types) or None)


def _repeat_query(query: ItemSearchQuery) -> dict[str, Any]:
    return {"query": query.q, "search_type": query.search_type, "filters": query.provided("q", "search_type")}


def _match_fields(hit: ItemHit) -> dict[str, Any]:
    meant = hit.meaning is not None and hit.meaning > 0
    kind = "hybrid" if meant and hit.words else "semantic" if meant else "full_text"
    return {"relevance_score": hit.score, "match_type": kind, "highlights": find_highlights(hit.text, hit.words)}


def find_highlights(text: str, words: Sequence[str]) -> list[str]:
    """Some lines of a text around the words, or its beginning if no word occurs."""
    lowered = text.casefold()
    places = sorted({place for word in words if (place := lowered.find(word.casefold())) >= 0})
    found: list[str] = []
    end = -1
    for place in places[:MAX_HIGHLIGHTS] or [0]:
        if place > end:
            start = max(0, place - CHARACTERS_BEFORE)
            found.append(one_line(text[start : start + 2 * HIGHLIGHT_CHARACTERS], HIGHLIGHT_CHARACTERS))
            end = start + HIGHLIGHT_CHARACTERS
    return [line for line in found if line]
