"""What an activity may be, how long it took, and how it stands on the timeline; pure."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.memory import checks
from frontdesk.memory.model import Activity, ActivityStatus, Item, ItemStatus, ItemType
from frontdesk.memory.moments import EARLIEST, LATEST

TITLE, PLACE = 500, 300
LONGEST = 10_000_000
MINUTE = timedelta(minutes=1)
TEN = ("mood_before", "mood_after", "energy_before", "energy_after", "satisfaction_level")
STATUSES = {
    ActivityStatus.ACTIVE: ItemStatus.ACTIVE,
    ActivityStatus.COMPLETED: ItemStatus.COMPLETED,
    ActivityStatus.CANCELLED: ItemStatus.CANCELLED,
}


def begun(values: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What was said of a new one, with when it started: as long before its end as it took, or now."""
    if "started_at" in values:
        return dict(values)
    end, minutes = values.get("ended_at"), _minutes(values.get("duration_minutes"))
    if end is None and minutes is not None and values.get("status") is ActivityStatus.COMPLETED:
        end = now
    if end is None:
        return {**values, "started_at": now}
    if minutes is None and end <= now:
        raise Invalid("When did it start? Give started_at, or duration_minutes, with an ended_at that is past")
    return {**values, "started_at": now if minutes is None else _moved(end, -minutes), "ended_at": end}


def ended(old: Activity, values: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What is to be different, with an end for one that is completed now and of which nobody says when."""
    completes = values.get("status") is ActivityStatus.COMPLETED and old.status is ActivityStatus.ACTIVE
    unsaid = old.ended_at is None and values.keys().isdisjoint(("ended_at", "duration_minutes"))
    has_begun = values.get("started_at", old.started_at) < now
    return {**values, "ended_at": now} if completes and unsaid and has_begun else dict(values)


def timed(activity: Activity, given: Mapping[str, Any]) -> Activity:
    """With an end and a length that agree, from the one of them that was given; taken away, they go together."""
    start, end, minutes = activity.started_at, activity.ended_at, _minutes(activity.duration_minutes)
    if given.get("duration_minutes") and given.get("ended_at"):
        _check_agree(activity)
    elif given.get("duration_minutes") and minutes is not None:
        end = _moved(start, minutes)
    elif "duration_minutes" in given and not given.get("ended_at"):
        end = None
    if end is not None and end <= start:
        raise Invalid("ended_at must be after started_at")
    return replace(activity, ended_at=end, duration_minutes=None if end is None else max(1, _length(start, end)))


def checked(activity: Activity) -> Activity:
    """The activity, if there can be such a one."""
    checks.short(activity, "title", TITLE, least=1)
    for name in ("location", "weather"):
        checks.short(activity, name, PLACE)
    for name in TEN:
        checks.within(activity, name, 1, 10)
    checks.within(activity, "duration_minutes", 1, LONGEST)
    return activity


def item_of(activity: Activity, was: Item | None = None) -> Item:
    """How it stands on the timeline; what others said of that item stays."""
    made = Item(
        id=activity.id,
        type=ItemType.ACTIVITY,
        title=activity.title,
        description=activity.description,
        start_time=activity.started_at,
        end_time=activity.ended_at,
        category_id=activity.category_id,
        tags=activity.tags,
        status=STATUSES[activity.status],
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


def text_of(activity: Activity) -> str:
    """What it is found by."""
    lists = (" ".join(activity.companions), " ".join(activity.tags))
    words = (activity.title, activity.description, activity.notes, activity.insights, activity.gratitude)
    return "\n".join(part for part in (*words, activity.location, *lists) if part)


def _check_agree(activity: Activity) -> None:
    start, end, minutes = activity.started_at, activity.ended_at, activity.duration_minutes
    if end is not None and minutes is not None and abs(end - start - minutes * MINUTE) >= MINUTE:
        raise Invalid(
            f"duration_minutes is {minutes}, but from started_at to ended_at it is {_length(start, end)}; "
            "give the one or the other"
        )


def _length(start: datetime, end: datetime) -> int:
    return round((end - start) / MINUTE)


def _minutes(value: int | None) -> int | None:
    if value is not None and not 1 <= value <= LONGEST:
        raise Invalid(f"duration_minutes must be from 1 to {LONGEST}")
    return value


def _moved(moment: datetime, minutes: int) -> datetime:
    room = LATEST - moment if minutes > 0 else moment - EARLIEST
    if abs(minutes) * MINUTE > room:
        raise Invalid("duration_minutes reaches beyond the years 1 to 9999; give a shorter one")
    return moment + minutes * MINUTE
