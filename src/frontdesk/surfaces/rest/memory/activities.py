"""Activities over HTTP, under /api/activities."""

from typing import Annotated

from fastapi import APIRouter, Body, Query

from frontdesk.memory.activities.wanted import ActivityStats, ActivityWanted
from frontdesk.memory.asked.activities import ActivityContent, NewActivityContent
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import ActivityQuery, Where
from frontdesk.surfaces.rest.memory.told import ActivityList, Message, OneActivity
from frontdesk.surfaces.rest.memory.who import ReadsActivities, WritesActivities

ONE = "/activities/{activity_id}"
ACTIVITY = {"activity": examples.activity}


def add_activities(router: APIRouter, room: MemoryRoom) -> None:
    _add_lists(router, room)
    _add_one(router, room)


def _add_lists(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/activities", responses=shown({"activities": [examples.activity], "count": 1}), summary="Activities")
    async def list_activities(scope: ReadsActivities, query: Annotated[ActivityQuery, Query()]) -> ActivityList:
        found = await room.activities.list(scope, ActivityWanted(**query.wanted()))
        return ActivityList(activities=found.items, count=found.total)

    @router.post("/activities", status_code=201, responses=shown(ACTIVITY, 201), summary="Write down an activity")
    async def create_activity(
        scope: WritesActivities,
        asked: Annotated[NewActivityContent, Body(openapi_examples=sent(examples.NEW_ACTIVITY))],
        timezone: Where = None,
    ) -> OneActivity:
        return OneActivity(activity=await room.activities.create(scope, asked.said(), timezone))

    @router.get("/activities/stats", summary="What was done and how it felt, in numbers")
    async def activity_stats(scope: ReadsActivities, timezone: Where = None) -> ActivityStats:
        return await room.activities.stats(scope, timezone)


def _add_one(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ONE, responses=shown(ACTIVITY), summary="An activity")
    async def show_activity(scope: ReadsActivities, activity_id: str) -> OneActivity:
        return OneActivity(activity=await room.activities.get(scope, activity_id))

    @router.put(ONE, responses=shown(ACTIVITY), summary="Change an activity")
    async def update_activity(
        scope: WritesActivities, activity_id: str, asked: ActivityContent, timezone: Where = None
    ) -> OneActivity:
        return OneActivity(activity=await room.activities.update(scope, activity_id, asked.changes(), timezone))

    @router.delete(ONE, summary="Delete an activity, with the time spent on it")
    async def delete_activity(scope: WritesActivities, activity_id: str) -> Message:
        await room.activities.delete(scope, activity_id)
        return Message(message="Activity deleted")
