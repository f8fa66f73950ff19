"""Declares the operations on activities."""

from collections.abc import Sequence
from functools import partial

from frontdesk.identity.rights import ACTIVITIES_READ, ACTIVITIES_WRITE
from frontdesk.memory.activities_rules import ActivityFilter, ActivityStats
from frontdesk.memory.model import Activity, PersonScope
from frontdesk.memory.operations.base import (
    EmptyRequest,
    RecordIdRequest,
    ToolAnswer,
    ZoneQuery,
    for_person,
    format_page,
    join_lines,
    memory_agent_tool,
    memory_route,
    memory_tool,
    person_zone,
)
from frontdesk.memory.operations.timeline_requests import (
    ActivityContent,
    ActivityIdRequest,
    ActivityQuery,
    CreateActivity,
    NewActivityContent,
    SearchActivities,
    UpdateActivity,
)
from frontdesk.memory.operations.timeline_text import format_activity, format_activity_line, format_activity_stats
from frontdesk.memory.rest import timeline as rest
from frontdesk.memory.rest.responses import (
    EXAMPLE_ACTIVITY,
    NEW_ACTIVITY,
    ActivityListResponse,
    ActivityResponse,
    DoneResponse,
)
from frontdesk.memory.service import RecordServices
from frontdesk.operations import Answer, Effect, Operation, Requires

ACTIVITIES_PATH = "/activities"
ACTIVITY_PATH = f"{ACTIVITIES_PATH}/{{activity_id}}"
CREATE_ACTIVITY = (
    "Write down something that the person did or does, and how it felt: a run, a walk, an evening with friends. Title "
    "and type are needed. Moods, energies and satisfaction go from 1 to 10. Of start, end and duration_minutes, two "
    'are enough. Example: {"title": "Run along the river", "activity_type": "exercise", '
    '"started_at": "2026-11-20T07:00", "duration_minutes": 35, "mood_before": 5, "mood_after": 8, '
    '"satisfaction_level": 9, "intensity_level": "moderate"}. With status active it is still going on.'
)
SEARCH_ACTIVITIES = (
    "Find activities: by words in them, type, when they began, where, how hard or how satisfying they were. All that "
    'is given must hold; nothing given lists all. Example: {"activity_type": "exercise", "from": "2026-11-01", '
    '"min_satisfaction": 7}.'
)
GET_ACTIVITY = "One activity by its id, with all that was written down of it."
UPDATE_ACTIVITY = (
    "Change an activity, or end one that is going on. What you leave out stays as it is. "
    'Example: {"id": "0199…", "status": "completed", "ended_at": "2026-11-20T08:10", "mood_after": 8}.'
)
GET_ACTIVITY_STATS = (
    "The person's activities in figures: how many and how long by type, how satisfying, what they do to the mood."
)
NO_ACTIVITIES = (
    "No activity is like that. Leave out some of what you asked for, or write one down with create_activity."
)


class ActivitiesAnswer(ToolAnswer):
    """A page of activities."""

    activities: Sequence[Activity]
    total: int
    offset: int
    has_more: bool


class ActivityStatsAnswer(ToolAnswer):
    """Statistics of activities."""

    stats: ActivityStats


async def create_activity(services: RecordServices, scope: PersonScope, request: CreateActivity) -> Answer:
    activity = await services.activities.create(scope, request.provided())
    return await _activity_answer(services, scope, activity, "Written down.")


async def search_activities(services: RecordServices, scope: PersonScope, request: SearchActivities) -> Answer:
    fields = request.provided("from_", "to", "limit", "offset")
    filters = ActivityFilter(
        **fields, started_from=request.from_, started_to=request.to, limit=request.limit, offset=request.offset
    )
    page = await services.activities.list(scope, filters)
    zone = await person_zone(services, scope)
    text = format_page(page, partial(format_activity_line, zone=zone), "activity", "activities", none=NO_ACTIVITIES)
    data = ActivitiesAnswer(activities=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Answer(text, data)


async def get_activity(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> Answer:
    return await _activity_answer(services, scope, await services.activities.get(scope, request.id))


async def update_activity(services: RecordServices, scope: PersonScope, request: UpdateActivity) -> Answer:
    activity = await services.activities.update(scope, request.id, request.provided("id"))
    return await _activity_answer(services, scope, activity, "Changed.")


async def get_activity_stats(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> Answer:
    stats = await services.activities.stats(scope)
    return Answer(format_activity_stats(stats), ActivityStatsAnswer(stats=stats))


async def _activity_answer(services: RecordServices, scope: PersonScope, activity: Activity, first: str = "") -> Answer:
    text = join_lines(first, format_activity(activity, await person_zone(services, scope)))
    return Answer(text, ActivityResponse(activity=activity))


ACTIVITY_EXAMPLE = {"activity": EXAMPLE_ACTIVITY}

ACTIVITY_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="create_activity",
        summary="Write down an activity",
        request=CreateActivity,
        run=for_person(create_activity),
        scopes=(ACTIVITIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Write down an activity", CREATE_ACTIVITY, ActivityResponse),
        agents=memory_agent_tool("create_activity", CREATE_ACTIVITY),
        rest=memory_route(
            "POST",
            ACTIVITIES_PATH,
            query=ZoneQuery,
            body=NewActivityContent,
            body_example=NEW_ACTIVITY,
            run=rest.create_activity,
            response=ActivityResponse,
            status=201,
            example=ACTIVITY_EXAMPLE,
        ),
    ),
    Operation(
        name="search_activities",
        summary="Activities",
        request=SearchActivities,
        run=for_person(search_activities),
        scopes=(ACTIVITIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Find activities", SEARCH_ACTIVITIES, ActivitiesAnswer),
        agents=memory_agent_tool("search_activities", SEARCH_ACTIVITIES),
        rest=memory_route(
            "GET",
            ACTIVITIES_PATH,
            name="list_activities",
            query=ActivityQuery,
            run=rest.list_activities,
            response=ActivityListResponse,
            example={"activities": [EXAMPLE_ACTIVITY], "count": 1},
        ),
    ),
    Operation(
        name="get_activity",
        summary="An activity",
        request=RecordIdRequest,
        run=for_person(get_activity),
        scopes=(ACTIVITIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Look at an activity", GET_ACTIVITY, ActivityResponse),
        agents=memory_agent_tool("get_activity", GET_ACTIVITY),
        rest=memory_route(
            "GET",
            ACTIVITY_PATH,
            name="show_activity",
            run=rest.show_activity,
            response=ActivityResponse,
            example=ACTIVITY_EXAMPLE,
        ),
    ),
    Operation(
        name="update_activity",
        summary="Change an activity",
        request=UpdateActivity,
        run=for_person(update_activity),
        scopes=(ACTIVITIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        mcp=memory_tool("Change an activity", UPDATE_ACTIVITY, ActivityResponse),
        agents=memory_agent_tool("update_activity", UPDATE_ACTIVITY),
        rest=memory_route(
            "PUT",
            ACTIVITY_PATH,
            query=ZoneQuery,
            body=ActivityContent,
            run=rest.update_activity,
            response=ActivityResponse,
            example=ACTIVITY_EXAMPLE,
        ),
    ),
    Operation(
        name="delete_activity",
        summary="Delete an activity, with the time spent on it",
        request=ActivityIdRequest,
        run=for_person(rest.delete_activity),
        scopes=(ACTIVITIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", ACTIVITY_PATH, response=DoneResponse),
    ),
    Operation(
        name="get_activity_stats",
        summary="What was done and how it felt, in numbers",
        request=EmptyRequest,
        run=for_person(get_activity_stats),
        scopes=(ACTIVITIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Activities in figures", GET_ACTIVITY_STATS, ActivityStatsAnswer),
        agents=memory_agent_tool("get_activity_stats", GET_ACTIVITY_STATS),
        rest=memory_route(
            "GET",
            f"{ACTIVITIES_PATH}/stats",
            name="activity_stats",
            query=ZoneQuery,
            run=rest.activity_stats,
            response=ActivityStats,
        ),
    ),
)
