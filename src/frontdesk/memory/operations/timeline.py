"""Declares the operations on the timeline and on categories, and search in all records."""

from collections.abc import Sequence
from functools import partial

from frontdesk.identity.rights import CATEGORIES_READ, CATEGORIES_WRITE, TIMELINE_READ, TIMELINE_WRITE
from frontdesk.memory.insights import Insights
from frontdesk.memory.model import Category, ContextItem, ItemSearch, PersonScope, TimelineFilter, TimelineItem
from frontdesk.memory.operations.base import (
    EmptyRequest,
    ToolAnswer,
    ZoneQuery,
    for_person,
    format_count,
    format_page,
    join_lines,
    memory_agent_tool,
    memory_route,
    memory_tool,
    person_zone,
)
from frontdesk.memory.operations.timeline_requests import (
    CategoryContent,
    CategoryIdRequest,
    CategoryRequest,
    CreateCategory,
    CreateTimelineItem,
    GetTimelineInsights,
    GetTimelineItems,
    InsightQuery,
    ItemContent,
    ItemIdRequest,
    ItemQuery,
    SearchAcrossTimeline,
    TimelineSearchQuery,
    UpdateCategory,
)
from frontdesk.memory.operations.timeline_text import (
    format_category_line,
    format_hits,
    format_item,
    format_item_line,
)
from frontdesk.memory.rest import timeline as rest
from frontdesk.memory.rest.responses import (
    EXAMPLE_CATEGORY,
    EXAMPLE_ITEM,
    NEW_CATEGORY,
    NEW_ITEM,
    CategoryListResponse,
    CategoryResponse,
    DeletedResponse,
    DoneResponse,
    ItemListResponse,
    ItemResponse,
)
from frontdesk.memory.service import RecordServices
from frontdesk.operations import Answer, Effect, Operation, Requires

TIMELINE_PATH = "/timeline-items"
ITEM_PATH = f"{TIMELINE_PATH}/{{item_id}}"
CATEGORIES_PATH = "/categories"
CATEGORY_PATH = f"{CATEGORIES_PATH}/{{category_id}}"
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


async def get_timeline_items(services: RecordServices, scope: PersonScope, request: GetTimelineItems) -> Answer:
    fields = request.provided("limit", "offset")
    page = await services.timeline.list(scope, TimelineFilter(**fields, limit=request.limit, offset=request.offset))
    zone = await person_zone(services, scope)
    text = format_page(page, partial(format_item_line, zone=zone), "item", none=NO_ITEMS)
    return Answer(text, ItemsAnswer(items=page.items, total=page.total, offset=page.offset, has_more=page.has_more))


async def create_timeline_item(services: RecordServices, scope: PersonScope, request: CreateTimelineItem) -> Answer:
    item = await services.timeline.create(scope, request.provided())
    text = join_lines("Created.", format_item(item, await person_zone(services, scope)))
    return Answer(text, ItemResponse(item=item))


async def get_timeline_insights(services: RecordServices, scope: PersonScope, request: GetTimelineInsights) -> Answer:
    insights = await services.timeline.insights(scope, request.date_range, request.timezone)
    return Answer(join_lines(*insights.sentences), InsightsAnswer(insights=insights))


async def search_across_timeline(services: RecordServices, scope: PersonScope, request: SearchAcrossTimeline) -> Answer:
    types = frozenset(request.include_types) if request.include_types else None
    query = ItemSearch(
        text=request.query, types=types, limit=request.limit, date_from=request.date_from, date_to=request.date_to
    )
    found = await services.search.search_with_context(scope, query, request.context_depth)
    results = [
        TimelineMatch(item=hit.item, relevance_score=hit.score, why=hit.why, context=found.context[hit.item.id])
        for hit in found.hits
    ]
    text = format_hits(found.hits, found.context, found.zone) if found.hits else NO_MATCHES
    return Answer(text, TimelineMatchesAnswer(query=request.query, results=results))


ITEM_EXAMPLE = {"item": EXAMPLE_ITEM}
ITEMS_EXAMPLE = {"items": [EXAMPLE_ITEM], "count": 1, "has_more": False}

TIMELINE_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="get_timeline_items",
        summary="Everything, of every kind, in one line",
        request=GetTimelineItems,
        run=for_person(get_timeline_items),
        scopes=(TIMELINE_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("List the timeline", LIST_ITEMS, ItemsAnswer),
        agents=memory_agent_tool("get_timeline_items", LIST_ITEMS),
        rest=memory_route(
            "GET",
            TIMELINE_PATH,
            name="list_items",
            query=ItemQuery,
            run=rest.list_items,
            response=ItemListResponse,
            example=ITEMS_EXAMPLE,
        ),
    ),
    Operation(
        name="create_timeline_item",
        summary="Put something on the timeline",
        request=CreateTimelineItem,
        run=for_person(create_timeline_item),
        scopes=(TIMELINE_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Put on the timeline", CREATE_ITEM, ItemResponse),
        agents=memory_agent_tool("create_timeline_item", CREATE_ITEM),
        rest=memory_route(
            "POST",
            TIMELINE_PATH,
            name="create_item",
            query=ZoneQuery,
            body=CreateTimelineItem,
            body_example=NEW_ITEM,
            run=rest.create_item,
            response=ItemResponse,
            status=201,
            example=ITEM_EXAMPLE,
        ),
    ),
    Operation(
        name="get_timeline_insights",
        summary="What the days up to today say, in numbers and in words",
        request=GetTimelineInsights,
        run=for_person(get_timeline_insights),
        scopes=(TIMELINE_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("What a time was like", GET_INSIGHTS, InsightsAnswer),
        agents=memory_agent_tool("get_timeline_insights", GET_INSIGHTS),
        rest=memory_route(
            "GET",
            f"{TIMELINE_PATH}/insights",
            name="timeline_insights",
            query=InsightQuery,
            run=rest.timeline_insights,
            response=Insights,
        ),
    ),
    Operation(
        name="search_across_timeline",
        summary="Find anything by words and by meaning, with what lies around it",
        request=SearchAcrossTimeline,
        run=for_person(search_across_timeline),
        scopes=(TIMELINE_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Search everything", SEARCH_TIMELINE, TimelineMatchesAnswer),
        agents=memory_agent_tool("search_across_timeline", SEARCH_TIMELINE),
        rest=memory_route(
            "GET",
            f"{TIMELINE_PATH}/search",
            name="search_items",
            query=TimelineSearchQuery,
            run=rest.search_items,
            response=rest.TimelineSearchResponse,
            example={
                **rest.SEARCH_EXAMPLE,
                "results": [{**rest.MATCH_EXAMPLE, "item": EXAMPLE_ITEM, "context": []}],
            },
        ),
    ),
    Operation(
        name="list_highlights",
        summary="Memories that stand out",
        request=ItemQuery,
        run=for_person(rest.list_highlights),
        scopes=(TIMELINE_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", f"{TIMELINE_PATH}/highlights", response=ItemListResponse, example=ITEMS_EXAMPLE),
    ),
    Operation(
        name="list_memory_items",
        summary="The memories of the timeline",
        request=ItemQuery,
        run=for_person(rest.list_memory_items),
        scopes=(TIMELINE_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", f"{TIMELINE_PATH}/memories", response=ItemListResponse, example=ITEMS_EXAMPLE),
    ),
    Operation(
        name="show_item",
        summary="A timeline item",
        request=ItemIdRequest,
        run=for_person(rest.show_item),
        scopes=(TIMELINE_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", ITEM_PATH, response=ItemResponse, example=ITEM_EXAMPLE),
    ),
    Operation(
        name="update_item",
        summary="Change a timeline item, and what stands behind it",
        request=ItemContent,
        run=for_person(rest.update_item),
        scopes=(TIMELINE_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "PUT",
            ITEM_PATH,
            query=ZoneQuery,
            body=ItemContent,
            run=rest.update_item,
            response=ItemResponse,
            example=ITEM_EXAMPLE,
        ),
    ),
    Operation(
        name="delete_item",
        summary="Delete a timeline item, and what stands behind it",
        request=ItemIdRequest,
        run=for_person(rest.delete_item),
        scopes=(TIMELINE_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", ITEM_PATH, response=DeletedResponse),
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


async def get_categories(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> Answer:
    categories = await services.categories.list_all(scope)
    head = f"{format_count(len(categories), 'category', 'categories')}:"
    text = join_lines(head, *map(format_category_line, categories)) if categories else NO_CATEGORIES
    return Answer(text, CategoryListResponse(categories=categories))


async def get_category(services: RecordServices, scope: PersonScope, request: CategoryRequest) -> Answer:
    return _category_answer(await services.categories.get(scope, request.id))


async def create_category(services: RecordServices, scope: PersonScope, request: CreateCategory) -> Answer:
    return _category_answer(await services.categories.create(scope, request.provided()), "Created.")


async def update_category(services: RecordServices, scope: PersonScope, request: UpdateCategory) -> Answer:
    category = await services.categories.update(scope, request.id, request.provided("id"))
    return _category_answer(category, "Changed.")


def _category_answer(category: Category, first: str = "") -> Answer:
    text = join_lines(first, format_category_line(category).removeprefix("- "))
    return Answer(text, CategoryResponse(category=category))


CATEGORY_EXAMPLE = {"category": EXAMPLE_CATEGORY}

# Agents are not offered these: every tool costs a model attention, and categories can also be created and found by
# their names.
CATEGORY_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="get_categories",
        summary="Categories by name",
        request=EmptyRequest,
        run=for_person(get_categories),
        scopes=(CATEGORIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("List categories", LIST_CATEGORIES, CategoryListResponse, outside_contract=True),
        rest=memory_route(
            "GET",
            CATEGORIES_PATH,
            name="list_categories",
            response=CategoryListResponse,
            example={"categories": [EXAMPLE_CATEGORY]},
        ),
    ),
    Operation(
        name="create_category",
        summary="Make a category",
        request=CreateCategory,
        run=for_person(create_category),
        scopes=(CATEGORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Make a category", CREATE_CATEGORY, CategoryResponse, outside_contract=True),
        rest=memory_route(
            "POST",
            CATEGORIES_PATH,
            body_example=NEW_CATEGORY,
            response=CategoryResponse,
            status=201,
            example=CATEGORY_EXAMPLE,
        ),
    ),
    Operation(
        name="get_category",
        summary="A category, by its id or its name",
        request=CategoryRequest,
        run=for_person(get_category),
        scopes=(CATEGORIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Look at a category", GET_CATEGORY, CategoryResponse, outside_contract=True),
        rest=memory_route(
            "GET",
            CATEGORY_PATH,
            name="show_category",
            run=rest.show_category,
            response=CategoryResponse,
            example=CATEGORY_EXAMPLE,
        ),
    ),
    Operation(
        name="update_category",
        summary="Change a category",
        request=UpdateCategory,
        run=for_person(update_category),
        scopes=(CATEGORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        mcp=memory_tool("Change a category", UPDATE_CATEGORY, CategoryResponse, outside_contract=True),
        rest=memory_route(
            "PUT",
            CATEGORY_PATH,
            body=CategoryContent,
            run=rest.update_category,
            response=CategoryResponse,
            example=CATEGORY_EXAMPLE,
        ),
    ),
    Operation(
        name="delete_category",
        summary="Delete a category; what was under it stays, under none",
        request=CategoryIdRequest,
        run=for_person(rest.delete_category),
        scopes=(CATEGORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", CATEGORY_PATH, response=DoneResponse),
    ),
)
