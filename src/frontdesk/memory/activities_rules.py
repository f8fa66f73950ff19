"""Decides, without I/O, what an activity may hold and how long it took, and defines its filters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity, ItemStatus, ItemType, TimelineItem
from frontdesk.memory.times import EARLIEST, LATEST
from frontdesk.memory.validation import check_length, check_range


class ActivitySort(StrEnum):
    """The sort orders of activities."""

    STARTED_AT = "started_at"
    SATISFACTION_LEVEL = "satisfaction_level"
    MOOD_AFTER = "mood_after"
    TITLE = "title"
    CREATED_AT = "created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """A filter of activities that started from `started_from` to `started_to`.

    Times are as people write them, in `timezone`.
    """

    activity_type: ActivityType | None = None
    status: ActivityStatus | None = None
    intensity_level: Intensity | None = None
    min_satisfaction: int | None = None
    min_mood_after: int | None = None
    location: str | None = None
    started_from: str | None = None
    started_to: str | None = None
    search: str | None = None
    tags: Sequence[str] = ()
    every_tag: bool = False
    category_id: str | None = None
    sort_by: str = ActivitySort.STARTED_AT
    sort_order: str = "desc"
    limit: int = 50
    offset: int = 0
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityStats:
    """A change is after minus before, for activities with both; `by_type` has the most frequent type first."""

    total: int
    by_type: Mapping[str, int]
    by_status: Mapping[str, int]
    minutes_by_type: Mapping[str, int]
    total_minutes: int
    average_satisfaction: float | None
    average_mood_change: float | None
    average_energy_change: float | None
    this_week: int
    this_month: int


MAX_TITLE, MAX_PLACE = 500, 300
MAX_MINUTES = 10_000_000
MINUTE = timedelta(minutes=1)
ONE_TO_TEN_FIELDS = ("mood_before", "mood_after", "energy_before", "energy_after", "satisfaction_level")
ITEM_STATUSES = {
    ActivityStatus.ACTIVE: ItemStatus.ACTIVE,
    ActivityStatus.COMPLETED: ItemStatus.COMPLETED,
    ActivityStatus.CANCELLED: ItemStatus.CANCELLED,
}


def fill_start(values: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The values of a new activity with its start: its end minus its length, or now."""
    if "started_at" in values:
        return dict(values)
    end, minutes = values.get("ended_at"), _check_minutes(values.get("duration_minutes"))
    if end is None and minutes is not None and values.get("status") is ActivityStatus.COMPLETED:
        end = now
    if end is None:
        return {**values, "started_at": now}
    if minutes is None and end <= now:
        raise Invalid("When did it start? Give started_at, or duration_minutes, with an ended_at that is past")
    return {**values, "started_at": now if minutes is None else _shift_minutes(end, -minutes), "ended_at": end}


def fill_end(old: Activity, values: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The changes with an end, if they complete the activity and no end is given."""
    completes = values.get("status") is ActivityStatus.COMPLETED and old.status is ActivityStatus.ACTIVE
    unsaid = old.ended_at is None and values.keys().isdisjoint(("ended_at", "duration_minutes"))
    has_begun = values.get("started_at", old.started_at) < now
    return {**values, "ended_at": now} if completes and unsaid and has_begun else dict(values)


def fill_duration(activity: Activity, arguments: Mapping[str, Any]) -> Activity:
    """Make end and length agree with the given one of them; removing one removes the other."""
    start, end, minutes = activity.started_at, activity.ended_at, _check_minutes(activity.duration_minutes)
    if arguments.get("duration_minutes") and arguments.get("ended_at"):
        _check_duration_agrees(activity)
    elif arguments.get("duration_minutes") and minutes is not None:
        end = _shift_minutes(start, minutes)
    elif "duration_minutes" in arguments and not arguments.get("ended_at"):
        end = None
    if end is not None and end <= start:
        raise Invalid("ended_at must be after started_at")
    return replace(
        activity, ended_at=end, duration_minutes=None if end is None else max(1, _minutes_between(start, end))
    )


def check_activity(activity: Activity) -> Activity:
    """Return the activity if it is valid."""
    check_length(activity, "title", MAX_TITLE, least=1)
    for name in ("location", "weather"):
        check_length(activity, name, MAX_PLACE)
    for name in ONE_TO_TEN_FIELDS:
        check_range(activity, name, 1, 10)
    check_range(activity, "duration_minutes", 1, MAX_MINUTES)
    return activity


def item_from_activity(activity: Activity, was: TimelineItem | None = None) -> TimelineItem:
    """The timeline item of an activity. Fields that an activity does not have stay as they were."""
    made = TimelineItem(
        id=activity.id,
        type=ItemType.ACTIVITY,
        title=activity.title,
        description=activity.description,
        start_time=activity.started_at,
        end_time=activity.ended_at,
        category_id=activity.category_id,
        tags=activity.tags,
        status=ITEM_STATUSES[activity.status],
        metadata=activity.metadata,
        created_at=activity.created_at,
        updated_at=activity.updated_at,
    )
    if was is None:
        return made
    return replace(
        made,
        priority=was.priority,
        render_on_timeline=was.render_on_timeline,
        is_time_consuming=was.is_time_consuming,
    )


def activity_text(activity: Activity) -> str:
    """The text under which an activity is indexed."""
    lists = (" ".join(activity.companions), " ".join(activity.tags))
    words = (activity.title, activity.description, activity.notes, activity.insights, activity.gratitude)
    return "\n".join(part for part in (*words, activity.location, *lists) if part)


def _check_duration_agrees(activity: Activity) -> None:
    start, end, minutes = activity.started_at, activity.ended_at, activity.duration_minutes
    if end is not None and minutes is not None and abs(end - start - minutes * MINUTE) >= MINUTE:
        raise Invalid(
            f"duration_minutes is {minutes}, but from started_at to ended_at it is {_minutes_between(start, end)}; "
            "give the one or the other"
        )


def _minutes_between(start: datetime, end: datetime) -> int:
    return round((end - start) / MINUTE)


def _check_minutes(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= MAX_MINUTES:
        raise Invalid(f"duration_minutes must be from 1 to {MAX_MINUTES}")
    return value


def _shift_minutes(moment: datetime, minutes: int) -> datetime:
    span_left = LATEST - moment if minutes > 0 else moment - EARLIEST
    if abs(minutes) * MINUTE > span_left:
        raise Invalid("duration_minutes reaches beyond the years 1 to 9999; give a shorter one")
    return moment + minutes * MINUTE
