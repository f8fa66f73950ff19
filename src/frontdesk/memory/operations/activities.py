"""Defines the tools for activities."""

from collections.abc import Sequence
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from frontdesk.memory.activities_rules import ActivityFilter, ActivityStats
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity, PersonScope
from frontdesk.memory.operations.base import (
    ADDS_HINTS,
    CHANGES_HINTS,
    EmptyRequest,
    IdText,
    JsonMetadata,
    LongText,
    MemoryRequest,
    MemoryTool,
    MemoryToolResult,
    Minutes,
    OneToTen,
    PagedRequest,
    RecordIdRequest,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    ToolAnswer,
    format_count,
    format_counts,
    format_minutes,
    format_page,
    format_span,
    format_tags,
    format_when,
    join_lines,
    join_parts,
    labelled_text,
    person_zone,
)
from frontdesk.memory.service import RecordServices

MAX_TITLE = 500


class ActivityFields(MemoryRequest):
    """The fields of an activity; moods, energies and satisfaction go from 1 to 10."""

    description: LongText | None = None
    ended_at: TimeText | None = None
    mood_after: OneToTen | None = None
    energy_after: OneToTen | None = None
    satisfaction_level: OneToTen | None = None
    intensity_level: Intensity | None = None
    notes: LongText | None = None
    insights: LongText | None = None
    gratitude: LongText | None = None
    status: ActivityStatus | None = None
    tags: Tags | None = None


class ActivityDetailFields(ActivityFields):
    """The same, with how it began, where, and with whom."""

    started_at: TimeText | None = None
    duration_minutes: Minutes | None = None
    mood_before: OneToTen | None = None
    energy_before: OneToTen | None = None
    location: ShortText | None = None
    weather: ShortText | None = None
    companions: Tags | None = None
    category_id: ShortText | None = Field(None, description="A category's id or name.")


class CreateActivity(ActivityDetailFields):
    """A new activity."""

    title: str = Field(min_length=1, max_length=MAX_TITLE)
    activity_type: ActivityType
    status: ActivityStatus | None = Field(None, description="completed, unless said otherwise.")


class UpdateActivity(ActivityFields):
    """Changes of an activity."""

    id: IdText
    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    activity_type: ActivityType | None = None


class NewActivityContent(CreateActivity):
    """A new activity as apps write it."""

    metadata: JsonMetadata | None = None


class ActivityContent(ActivityDetailFields):
    """Changes of an activity as apps write them; null removes a value."""

    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    activity_type: ActivityType | None = None
    metadata: JsonMetadata | None = None


class SearchActivities(PagedRequest):
    """Filters of activities."""

    activity_type: ActivityType | None = None
    status: ActivityStatus | None = None
    intensity_level: Intensity | None = None
    min_satisfaction: OneToTen | None = None
    min_mood_after: OneToTen | None = None
    location: ShortText | None = None
    from_: TimeText | None = Field(None, alias="from", description="Begun on or after this.")
    to: TimeText | None = Field(None, description="Begun on or before this.")
    search: ShortText | None = None
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    sort_by: Literal["started_at", "satisfaction_level", "mood_after", "title", "created_at"] = "started_at"
    sort_order: SortOrder = "desc"


def format_activity_line(activity: Activity, zone: ZoneInfo) -> str:
    """An activity on one line, with the id that other tools ask for."""
    return f"- {activity.title} (id {activity.id}): {_format_status(activity, zone)}"


def format_activity(activity: Activity, zone: ZoneInfo) -> str:
    """An activity with everything that is known of it."""
    return join_lines(
        format_activity_line(activity, zone).removeprefix("- "),
        labelled_text("Description", activity.description),
        _format_feelings(activity),
        _format_setting(activity),
        labelled_text("Notes", activity.notes),
        labelled_text("Insights", activity.insights),
        labelled_text("Gratitude", activity.gratitude),
        f"Category {activity.category_id}" if activity.category_id else "",
    )


def format_activity_stats(found: ActivityStats) -> str:
    averages = (
        ("satisfaction", found.average_satisfaction, "{:g} of 10"),
        ("mood", found.average_mood_change, "{:+g}"),
        ("energy", found.average_energy_change, "{:+g}"),
    )
    said = join_parts(f"{name} {form.format(value)}" for name, value, form in averages if value is not None)
    return join_lines(
        f"{format_count(found.total, 'activity', 'activities')}, {format_minutes(found.total_minutes)} in all; "
        f"{found.this_week:,} this week, {found.this_month:,} this month",
        format_counts("By type", found.by_type),
        format_counts("Minutes by type", found.minutes_by_type),
        format_counts("By status", found.by_status),
        f"On average: {said}" if said else "",
    )


def _format_status(activity: Activity, zone: ZoneInfo) -> str:
    return join_parts(
        [
            activity.activity_type,
            activity.status,
            _format_when(activity, zone),
            format_minutes(activity.duration_minutes) if activity.duration_minutes else "",
            f"{activity.intensity_level} intensity",
            f"satisfaction {activity.satisfaction_level} of 10" if activity.satisfaction_level else "",
            format_tags(activity.tags),
        ]
    )


def _format_when(activity: Activity, zone: ZoneInfo) -> str:
    if activity.status is ActivityStatus.ACTIVE:
        return format_span(activity.started_at, activity.ended_at, zone)
    return format_when(activity.started_at, activity.ended_at, zone)


def _format_feelings(activity: Activity) -> str:
    said = join_parts(
        [
            _format_change("mood", activity.mood_before, activity.mood_after),
            _format_change("energy", activity.energy_before, activity.energy_after),
        ]
    )
    return f"Felt: {said} (of 10)" if said else ""


def _format_change(what: str, before: int | None, after: int | None) -> str:
    if before is not None and after is not None:
        return f"{what} {before} before, {after} after"
    if before is None and after is None:
        return ""
    return f"{what} {before} before" if before is not None else f"{what} {after} after"


def _format_setting(activity: Activity) -> str:
    said = join_parts(
        [
            f"at {activity.location}" if activity.location else "",
            f"weather {activity.weather}" if activity.weather else "",
            f"with {', '.join(activity.companions)}" if activity.companions else "",
        ]
    )
    return said[:1].upper() + said[1:]


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


class ActivityAnswer(ToolAnswer):
    """One activity."""

    activity: Activity


class ActivitiesAnswer(ToolAnswer):
    """A page of activities."""

    activities: Sequence[Activity]
    total: int
    offset: int
    has_more: bool


class ActivityStatsAnswer(ToolAnswer):
    """Statistics of activities."""

    stats: ActivityStats


async def create_activity_tool(services: RecordServices, scope: PersonScope, given: CreateActivity) -> MemoryToolResult:
    return await _activity_result(
        services, scope, await services.activities.create(scope, given.provided()), "Written down."
    )


async def search_activities_tool(
    services: RecordServices, scope: PersonScope, given: SearchActivities
) -> MemoryToolResult:
    said = given.provided("from_", "to", "limit", "offset")
    wanted = ActivityFilter(
        **said, started_from=given.from_, started_to=given.to, limit=given.limit, offset=given.offset
    )
    page = await services.activities.list(scope, wanted)
    zone = await person_zone(services, scope)
    text = format_page(page, partial(format_activity_line, zone=zone), "activity", "activities", none=NO_ACTIVITIES)
    answer = ActivitiesAnswer(activities=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return MemoryToolResult(text, answer)


async def get_activity_tool(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> MemoryToolResult:
    return await _activity_result(services, scope, await services.activities.get(scope, request.id))


async def update_activity_tool(services: RecordServices, scope: PersonScope, given: UpdateActivity) -> MemoryToolResult:
    return await _activity_result(
        services, scope, await services.activities.update(scope, given.id, given.provided("id")), "Changed."
    )


async def activity_stats_tool(services: RecordServices, scope: PersonScope, _given: EmptyRequest) -> MemoryToolResult:
    found = await services.activities.stats(scope)
    return MemoryToolResult(format_activity_stats(found), ActivityStatsAnswer(stats=found))


async def _activity_result(
    services: RecordServices, scope: PersonScope, activity: Activity, first: str = ""
) -> MemoryToolResult:
    text = join_lines(first, format_activity(activity, await person_zone(services, scope)))
    return MemoryToolResult(text, ActivityAnswer(activity=activity))


ACTIVITY_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool(
        "create_activity",
        "Write down an activity",
        CREATE_ACTIVITY,
        CreateActivity,
        ActivityAnswer,
        create_activity_tool,
        **ADDS_HINTS,
    ),
    MemoryTool(
        "search_activities",
        "Find activities",
        SEARCH_ACTIVITIES,
        SearchActivities,
        ActivitiesAnswer,
        search_activities_tool,
    ),
    MemoryTool("get_activity", "Look at an activity", GET_ACTIVITY, RecordIdRequest, ActivityAnswer, get_activity_tool),
    MemoryTool(
        "update_activity",
        "Change an activity",
        UPDATE_ACTIVITY,
        UpdateActivity,
        ActivityAnswer,
        update_activity_tool,
        **CHANGES_HINTS,
    ),
    MemoryTool(
        "get_activity_stats",
        "Activities in figures",
        GET_ACTIVITY_STATS,
        EmptyRequest,
        ActivityStatsAnswer,
        activity_stats_tool,
    ),
)
