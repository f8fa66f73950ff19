"""The tools for the timeline: everything of a person's, of every type, in one line."""

from collections.abc import Sequence
from functools import partial

from frontdesk.memory.asked import timeline as asked
from frontdesk.memory.model import Item
from frontdesk.memory.recall.model import Near, Query
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.timeline.model import Insights
from frontdesk.memory.timeline.wanted import TimelineWanted
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.timeline import found_told, item_line, item_told
from frontdesk.memory.tooling.telling.words import lines, listed
from frontdesk.memory.tooling.tool import MAKES, Answer, MemoryTool, Told

LIST = (
    "What stands on the person's timeline: tasks, memories, activities, routines and habits together, the last made "
    'first. Example: {"type": "habit", "status": "active"}.'
)
CREATE = (
    "Put something on the person's timeline. A routine or a habit is made this way; a task, memory or activity that is "
    "made here is the same as one made with its own tool, which knows more about it. "
    'Example: {"type": "habit", "title": "Stretch after getting up", "tags": ["health"]}.'
)
INSIGHTS = (
    "What the last day, week, month, quarter or year of the person was like, worked out from what is there: tasks made "
    "and done, where the time went, how it felt, what came up most. "
    'Example: {"date_range": "month"}.'
)
ACROSS = (
    "Search everything of the person's at once, by words and by meaning: tasks, memories, activities, routines, "
    "habits. Say in plain words what you are looking for. Each match comes with what lies around it in time. "
    'Example: {"query": "the trip to Lisbon", "include_types": ["memory", "task"], "date_from": "2026-01-01"}.'
)
NOTHING = "Nothing was found. Say it in other words, or leave out types and dates."
NONE = "Nothing on the timeline is like that. Leave out some of what you asked for."


class ItemAnswer(Answer):
    """One item."""

    item: Item


class ItemsAnswer(Answer):
    """Some items, and how many there are in all."""

    items: Sequence[Item]
    total: int
    offset: int
    has_more: bool


class InsightsAnswer(Answer):
    """What a stretch of time was like."""

    insights: Insights


class Match(Answer):
    """An item that was found: how well it fits, from 0 to 1, and why, and what lies around it."""

    item: Item
    relevance_score: float
    why: str
    context: Sequence[Near]


class MatchesAnswer(Answer):
    """What was found, the best first."""

    query: str
    results: Sequence[Match]


async def show(room: MemoryRoom, scope: Scope, given: asked.GetTimelineItems) -> Told:
    said = given.said("limit", "offset")
    page = await room.timeline.list(scope, TimelineWanted(**said, limit=given.limit, offset=given.offset))
    zone = await clock(room, scope)
    text = listed(page, partial(item_line, zone=zone), "item", none=NONE)
    return Told(text, ItemsAnswer(items=page.items, total=page.total, offset=page.offset, has_more=page.has_more))


async def create(room: MemoryRoom, scope: Scope, given: asked.CreateTimelineItem) -> Told:
    item = await room.timeline.create(scope, given.said())
    return Told(lines("Created.", item_told(item, await clock(room, scope))), ItemAnswer(item=item))


async def insights(room: MemoryRoom, scope: Scope, given: asked.Insights) -> Told:
    found = await room.timeline.insights(scope, given.date_range, given.timezone)
    return Told(lines(*found.sentences), InsightsAnswer(insights=found))


async def across(room: MemoryRoom, scope: Scope, given: asked.SearchAcross) -> Told:
    types = frozenset(given.include_types) if given.include_types else None
    query = Query(text=given.query, types=types, limit=given.limit, date_from=given.date_from, date_to=given.date_to)
    hits = await room.recall.search(scope, query)
    near = await room.recall.around(scope, [hit.item.id for hit in hits], given.context_depth)
    results = [Match(item=hit.item, relevance_score=hit.score, why=hit.why, context=near[hit.item.id]) for hit in hits]
    text = found_told(hits, near, await clock(room, scope)) if hits else NOTHING
    return Told(text, MatchesAnswer(query=given.query, results=results))


TIMELINE: tuple[MemoryTool, ...] = (
    MemoryTool("get_timeline_items", "List the timeline", LIST, asked.GetTimelineItems, ItemsAnswer, show),
    MemoryTool(
        "create_timeline_item", "Put on the timeline", CREATE, asked.CreateTimelineItem, ItemAnswer, create, **MAKES
    ),
    MemoryTool("get_timeline_insights", "What a time was like", INSIGHTS, asked.Insights, InsightsAnswer, insights),
    MemoryTool("search_across_timeline", "Search everything", ACROSS, asked.SearchAcross, MatchesAnswer, across),
)
