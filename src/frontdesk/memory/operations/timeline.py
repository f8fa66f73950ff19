"""Defines the tools for the timeline, for search in all records, and for categories."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from frontdesk.memory.insights import Insights
from frontdesk.memory.model import (
    Category,
    ContextItem,
    ItemHit,
    ItemSearch,
    ItemType,
    MemoryType,
    PersonScope,
    Priority,
    TimelineFilter,
    TimelineItem,
)
from frontdesk.memory.operations.base import (
    ADDS_HINTS,
    CHANGES_HINTS,
    MAX_LINE,
    EmptyRequest,
    IdText,
    JsonMetadata,
    LongText,
    MemoryRequest,
    MemoryTool,
    MemoryToolResult,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    ToolAnswer,
    ZoneName,
    format_count,
    format_page,
    format_tags,
    format_time,
    format_when,
    join_lines,
    join_parts,
    labelled_line,
    person_zone,
)
from frontdesk.memory.service import RecordServices
from frontdesk.text import one_line

ShownItemStatus = Literal["active", "inactive", "completed", "cancelled", "archived"]
COLOUR_PATTERN = r"^#[0-9A-Fa-f]{6}$"


class GetTimelineItems(MemoryRequest):
    """Filters of timeline items."""

    type: ItemType | None = None
    status: ShownItemStatus | None = None
    priority: Priority | None = None
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    search: ShortText | None = None
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    is_highlight: bool | None = None
    memory_type: MemoryType | None = None
    render_on_timeline: bool | None = None
    sort_by: Literal["created_at", "updated_at", "title", "priority", "captured_at", "salience_score"] = "created_at"
    sort_order: SortOrder = "desc"
    limit: int = Field(50, ge=1, le=100)
    offset: int = Field(0, ge=0, le=10_000_000)


class ItemFields(MemoryRequest):
    """The fields of a timeline item."""

    description: LongText | None = None
    start_time: TimeText | None = None
    end_time: TimeText | None = None
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    tags: Tags | None = None
    status: ShownItemStatus | None = None
    priority: Priority | None = None
    metadata: JsonMetadata | None = None


class CreateTimelineItem(ItemFields):
    """A new item. A task, memory or activity is created as such."""

    type: ItemType
    title: str = Field(min_length=1, max_length=500)


class ItemContent(ItemFields):
    """Changes of an item as apps write them; null removes a value."""

    title: str | None = Field(None, min_length=1, max_length=500)
    is_time_consuming: bool | None = None
    render_on_timeline: bool | None = None


class GetTimelineInsights(MemoryRequest):
    """The range of time."""

    date_range: Literal["today", "week", "month", "quarter", "year"] = "week"
    timezone: ZoneName | None = None


class SearchAcrossTimeline(MemoryRequest):
    """A search in all records."""

    query: str = Field(min_length=1, max_length=2000, description="What it is about, in plain words.")
    include_types: list[ItemType] | None = Field(None, max_length=5)
    date_from: TimeText | None = None
    date_to: TimeText | None = None
    context_depth: int = Field(2, ge=1, le=5, description="How much of what lies around each match to show.")
    limit: int = Field(20, ge=1, le=100)


class CategoryFields(MemoryRequest):
    """The fields of a category."""

    color: str | None = Field(None, pattern=COLOUR_PATTERN, description="#RRGGBB")
    description: LongText | None = None
    icon: Annotated[str, Field(max_length=100)] | None = None


class CreateCategory(CategoryFields):
    """A new category."""

    name: str = Field(min_length=1, max_length=50)


class UpdateCategory(CategoryFields):
    """Changes of a category."""

    id: IdText = Field(description="Its id, or its name.")
    name: str | None = Field(None, min_length=1, max_length=50)


class CategoryContent(CategoryFields):
    """Changes of a category as apps write them."""

    name: str | None = Field(None, min_length=1, max_length=50)


class CategoryRequest(MemoryRequest):
    """One category."""

    id: IdText = Field(description="Its id, or its name.")


def format_item_line(item: TimelineItem, zone: ZoneInfo) -> str:
    """An item on one line, with the id that other tools ask for."""
    return f"- {item.title} ({item.type}, id {item.id}): {_format_status(item, zone)}"


def format_item(item: TimelineItem, zone: ZoneInfo) -> str:
    return join_lines(
        format_item_line(item, zone).removeprefix("- "),
        labelled_line("Description", item.description),
        f"Category {item.category_id}" if item.category_id else "",
    )


def format_category_line(category: Category) -> str:
    said = join_parts([f"id {category.id}", category.color, category.icon])
    return f"- {category.name} ({said}){f': {category.description}' if category.description else ''}"


def format_hits(hits: Sequence[ItemHit], near: Mapping[str, Sequence[ContextItem]], zone: ZoneInfo) -> str:
    """The hits, the best first, each with what lies around it."""
    head = f"Found {format_count(len(hits), 'item')}, the best first:"
    return join_lines(head, *(_format_hit(place, hit, near[hit.item.id], zone) for place, hit in enumerate(hits, 1)))


def _format_hit(place: int, hit: ItemHit, near: Sequence[ContextItem], zone: ZoneInfo) -> str:
    begins = one_line(hit.text, MAX_LINE)
    around = ", ".join(f"{one.tie} {one.item.title} ({one.item.type}, id {one.item.id})" for one in near)
    return join_lines(
        f"{place}. {format_item_line(hit.item, zone).removeprefix('- ')}",
        f"   {begins}" if begins != hit.item.title else "",
        f"   fits {100 * hit.score:.0f} of 100: {hit.why}",
        f"   around it: {around}" if around else "",
    )


def _format_status(item: TimelineItem, zone: ZoneInfo) -> str:
    return join_parts(
        [
            item.status,
            "" if item.priority is Priority.MEDIUM else f"{item.priority} priority",
            _format_when(item, zone),
            format_tags(item.tags),
        ]
    )


def _format_when(item: TimelineItem, zone: ZoneInfo) -> str:
    """The time of an item, or when it was created if it has none."""
    if item.start_time is not None:
        return format_when(item.start_time, item.end_time, zone)
    return f"by {format_time(item.end_time, zone)}" if item.end_time else f"made {format_time(item.created_at, zone)}"


LIST_ITEMS = (
    "What stands on the person's timeline: tasks, memories, activities, routines and habits together, the last made "
    'first. Example: {"type": "habit", "status": "active"}.'
)
CREATE_ITEM = (
    "Put something on the person's timeline. A routine or a habit is made this way; a task, memory or activity that is "
    "made here is the same as one made with its own tool, which knows more about it. "
    'Example: {"type": "habit", "title": "Stretch after getting up", "tags": ["health"]}.'
)
GET_INSIGHTS = (
    "What the last day, week, month, quarter or year of the person was like, worked out from what is there: tasks made "
    "and done, where the time went, how it felt, what came up most. "
    'Example: {"date_range": "month"}.'
)
SEARCH_TIMELINE = (
    "Search everything of the person's at once, by words and by meaning: tasks, memories, activities, routines, "
    "habits. Say in plain words what you are looking for. Each match comes with what lies around it in time. "
    'Example: {"query": "the trip to Lisbon", "include_types": ["memory", "task"], "date_from": "2026-01-01"}.'
)
NO_MATCHES = "Nothing was found. Say it in other words, or leave out types and dates."
NO_ITEMS = "Nothing on the timeline is like that. Leave out some of what you asked for."


class ItemAnswer(ToolAnswer):
    """One item."""

    item: TimelineItem


class ItemsAnswer(ToolAnswer):
    """A page of items."""

    items: Sequence[TimelineItem]
    total: int
    offset: int
    has_more: bool


class InsightsAnswer(ToolAnswer):
    """The insights into a range of time."""

    insights: Insights


class TimelineMatch(ToolAnswer):
    """A hit: its score from 0 to 1, why it was found, and what lies around it."""

    item: TimelineItem
    relevance_score: float
    why: str
    context: Sequence[ContextItem]


class TimelineMatchesAnswer(ToolAnswer):
    """The hits, the best first."""

    query: str
    results: Sequence[TimelineMatch]


async def list_items_tool(services: RecordServices, scope: PersonScope, given: GetTimelineItems) -> MemoryToolResult:
    said = given.provided("limit", "offset")
    page = await services.timeline.list(scope, TimelineFilter(**said, limit=given.limit, offset=given.offset))
    zone = await person_zone(services, scope)
    text = format_page(page, partial(format_item_line, zone=zone), "item", none=NO_ITEMS)
    return MemoryToolResult(
        text, ItemsAnswer(items=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    )


async def create_item_tool(services: RecordServices, scope: PersonScope, given: CreateTimelineItem) -> MemoryToolResult:
    item = await services.timeline.create(scope, given.provided())
    return MemoryToolResult(
        join_lines("Created.", format_item(item, await person_zone(services, scope))), ItemAnswer(item=item)
    )


async def insights_tool(services: RecordServices, scope: PersonScope, given: GetTimelineInsights) -> MemoryToolResult:
    found = await services.timeline.insights(scope, given.date_range, given.timezone)
    return MemoryToolResult(join_lines(*found.sentences), InsightsAnswer(insights=found))


async def search_timeline_tool(
    services: RecordServices, scope: PersonScope, given: SearchAcrossTimeline
) -> MemoryToolResult:
    types = frozenset(given.include_types) if given.include_types else None
    query = ItemSearch(
        text=given.query, types=types, limit=given.limit, date_from=given.date_from, date_to=given.date_to
    )
    found = await services.search.search_with_context(scope, query, given.context_depth)
    results = [
        TimelineMatch(item=hit.item, relevance_score=hit.score, why=hit.why, context=found.context[hit.item.id])
        for hit in found.hits
    ]
    text = format_hits(found.hits, found.context, found.zone) if found.hits else NO_MATCHES
    return MemoryToolResult(text, TimelineMatchesAnswer(query=given.query, results=results))


TIMELINE_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool("get_timeline_items", "List the timeline", LIST_ITEMS, GetTimelineItems, ItemsAnswer, list_items_tool),
    MemoryTool(
        "create_timeline_item",
        "Put on the timeline",
        CREATE_ITEM,
        CreateTimelineItem,
        ItemAnswer,
        create_item_tool,
        **ADDS_HINTS,
    ),
    MemoryTool(
        "get_timeline_insights",
        "What a time was like",
        GET_INSIGHTS,
        GetTimelineInsights,
        InsightsAnswer,
        insights_tool,
    ),
    MemoryTool(
        "search_across_timeline",
        "Search everything",
        SEARCH_TIMELINE,
        SearchAcrossTimeline,
        TimelineMatchesAnswer,
        search_timeline_tool,
    ),
)

LIST_CATEGORIES = "The person's categories, which tasks, memories and activities are put under, by name."
GET_CATEGORY = 'One category, by its id or its name in any case. Example: {"id": "work"}.'
CREATE_CATEGORY = (
    "Make a category to put tasks, memories and activities under. "
    'Example: {"name": "Travel", "color": "#1E88E5", "icon": "train"}.'
)
UPDATE_CATEGORY = (
    "Change a category's name, colour, description or icon; what is under it stays there. "
    'Example: {"id": "travel", "name": "Journeys"}.'
)
NO_CATEGORIES = "There are no categories yet; make one with create_category."


class CategoryAnswer(ToolAnswer):
    """One category."""

    category: Category


class CategoriesAnswer(ToolAnswer):
    """All categories."""

    categories: Sequence[Category]


async def list_categories_tool(services: RecordServices, scope: PersonScope, _given: EmptyRequest) -> MemoryToolResult:
    found = await services.categories.list_all(scope)
    head = f"{format_count(len(found), 'category', 'categories')}:"
    text = join_lines(head, *map(format_category_line, found)) if found else NO_CATEGORIES
    return MemoryToolResult(text, CategoriesAnswer(categories=found))


async def get_category_tool(services: RecordServices, scope: PersonScope, request: CategoryRequest) -> MemoryToolResult:
    return _category_result(await services.categories.get(scope, request.id))


async def create_category_tool(services: RecordServices, scope: PersonScope, given: CreateCategory) -> MemoryToolResult:
    return _category_result(await services.categories.create(scope, given.provided()), "Created.")


async def update_category_tool(services: RecordServices, scope: PersonScope, given: UpdateCategory) -> MemoryToolResult:
    return _category_result(await services.categories.update(scope, given.id, given.provided("id")), "Changed.")


def _category_result(category: Category, first: str = "") -> MemoryToolResult:
    return MemoryToolResult(
        join_lines(first, format_category_line(category).removeprefix("- ")), CategoryAnswer(category=category)
    )


CATEGORY_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool(
        "get_categories", "List categories", LIST_CATEGORIES, EmptyRequest, CategoriesAnswer, list_categories_tool
    ),
    MemoryTool(
        "create_category",
        "Make a category",
        CREATE_CATEGORY,
        CreateCategory,
        CategoryAnswer,
        create_category_tool,
        **ADDS_HINTS,
    ),
    MemoryTool("get_category", "Look at a category", GET_CATEGORY, CategoryRequest, CategoryAnswer, get_category_tool),
    MemoryTool(
        "update_category",
        "Change a category",
        UPDATE_CATEGORY,
        UpdateCategory,
        CategoryAnswer,
        update_category_tool,
        **CHANGES_HINTS,
    ),
)
