"""The timeline over HTTP, under /api/timeline-items."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Query

from frontdesk.memory.asked.timeline import CreateTimelineItem, ItemContent
from frontdesk.memory.given import Page
from frontdesk.memory.model import Item, ItemType
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.timeline.model import Insights
from frontdesk.memory.timeline.wanted import TimelineWanted
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import InsightQuery, ItemQuery, Where
from frontdesk.surfaces.rest.memory.told import AnchoredList, Gone, ItemList, OneItem
from frontdesk.surfaces.rest.memory.who import ReadsMemories, ReadsTimeline, WritesTimeline

ALL = "/timeline-items"
ONE = f"{ALL}/{{item_id}}"
ITEM = {"item": examples.item}
ITEMS = {"items": [examples.item], "count": 1, "has_more": False}


def add_timeline(router: APIRouter, room: MemoryRoom) -> None:
    _add_lists(router, room)
    _add_one(router, room)


def _add_lists(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ALL, responses=shown(ITEMS), summary="Everything, of every kind, in one line")
    async def list_items(scope: ReadsTimeline, query: Annotated[ItemQuery, Query()]) -> ItemList:
        return _listed(await room.timeline.list(scope, TimelineWanted(**query.said())))

    @router.post(ALL, status_code=201, responses=shown(ITEM, 201), summary="Put something on the timeline")
    async def create_item(
        scope: WritesTimeline,
        asked: Annotated[CreateTimelineItem, Body(openapi_examples=sent(examples.NEW_ITEM))],
        timezone: Where = None,
    ) -> OneItem:
        return OneItem(item=await room.timeline.create(scope, asked.said(), timezone))

    @router.get(f"{ALL}/highlights", responses=shown(ITEMS), summary="Memories that stand out")
    async def list_highlights(scope: ReadsTimeline, query: Annotated[ItemQuery, Query()]) -> ItemList:
        wanted = replace(TimelineWanted(**query.said()), is_highlight=True)
        return _listed(await room.timeline.list(scope, wanted))

    @router.get(f"{ALL}/memories", responses=shown(ITEMS), summary="The memories of the timeline")
    async def list_memory_items(scope: ReadsTimeline, query: Annotated[ItemQuery, Query()]) -> ItemList:
        wanted = replace(TimelineWanted(**query.said()), type=ItemType.MEMORY)
        return _listed(await room.timeline.list(scope, wanted))

    @router.get(f"{ALL}/insights", summary="What the days up to today say, in numbers and in words")
    async def timeline_insights(scope: ReadsTimeline, query: Annotated[InsightQuery, Query()]) -> Insights:
        return await room.timeline.insights(scope, query.date_range, query.timezone)


def _add_one(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ONE, responses=shown(ITEM), summary="A timeline item")
    async def show_item(scope: ReadsTimeline, item_id: str) -> OneItem:
        return OneItem(item=await room.timeline.get(scope, item_id))

    @router.put(ONE, responses=shown(ITEM), summary="Change a timeline item, and what stands behind it")
    async def update_item(scope: WritesTimeline, item_id: str, asked: ItemContent, timezone: Where = None) -> OneItem:
        return OneItem(item=await room.timeline.update(scope, item_id, asked.changes(), timezone))

    @router.delete(ONE, summary="Delete a timeline item, and what stands behind it")
    async def delete_item(scope: WritesTimeline, item_id: str) -> Gone:
        return Gone(message="Timeline item deleted", id=(await room.timeline.delete(scope, item_id)).id)

    @router.get(f"{ONE}/anchors", summary="The memories that are anchored to an item, and how")
    async def item_anchors(scope: ReadsMemories, item_id: str) -> AnchoredList:
        return AnchoredList(anchors=await room.memories.anchored_to(scope, item_id))


def _listed(page: Page[Item]) -> ItemList:
    return ItemList(items=page.items, count=page.total, has_more=page.has_more)
