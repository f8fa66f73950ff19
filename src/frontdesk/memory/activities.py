"""Offers activities: create, change, delete, count."""

from dataclasses import replace
from functools import partial
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.identity import rights
from frontdesk.memory.activities_rules import (
    ActivityFilter,
    ActivityStats,
    check_activity,
    fill_duration,
    fill_end,
    fill_start,
)
from frontdesk.memory.activities_store import (
    activity_stats,
    fetch_activity,
    insert_activity,
    list_activities,
    save_activity,
)
from frontdesk.memory.items_store import delete_item
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity, PersonScope
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.times import DayEdge
from frontdesk.memory.validation import (
    Fields,
    RecordPage,
    check_field_names,
    new_id,
    nulls_to_empty,
    parse_choices,
    parse_fields,
    parse_id,
    require_found,
    without_nulls,
)

ACTIVITY_NAME = "Activity"
TIME_FIELDS = {"started_at": DayEdge.START, "ended_at": DayEdge.END}
CHOICE_FIELDS = {"activity_type": ActivityType, "status": ActivityStatus, "intensity_level": Intensity}
SETTABLE_FIELDS = (
    "title",
    "activity_type",
    "description",
    "status",
    "started_at",
    "ended_at",
    "duration_minutes",
    "mood_before",
    "mood_after",
    "energy_before",
    "energy_after",
    "satisfaction_level",
    "intensity_level",
    "location",
    "weather",
    "companions",
    "notes",
    "insights",
    "gratitude",
    "category_id",
    "tags",
    "metadata",
)


def create_activity(transaction: PersonTransaction, fields: Fields, zone: str | None = None) -> Activity:
    """Create an activity; it is completed unless `fields` has another status."""
    given = {"status": ActivityStatus.COMPLETED, **without_nulls(_parse_activity(transaction, fields, zone))}
    missing = [name for name in ("title", "activity_type") if name not in given]
    if missing:
        raise Invalid(f"An activity needs {' and '.join(missing)}")
    values = fill_start(parse_choices(given, CHOICE_FIELDS), transaction.now)
    stamp: dict[str, Any] = {
        "id": new_id(transaction.now),
        "created_at": transaction.now,
        "updated_at": transaction.now,
    }
    activity = check_activity(fill_duration(Activity(**values, **stamp), values))
    insert_activity(transaction, activity)
    return activity


def get_activity(transaction: PersonTransaction, activity_id: str) -> Activity:
    return require_found(fetch_activity(transaction, parse_id(activity_id, ACTIVITY_NAME)), ACTIVITY_NAME)


def update_activity(
    transaction: PersonTransaction, activity_id: str, fields: Fields, zone: str | None = None
) -> Activity:
    """Change an activity. Completing it ends it now, unless an end is given."""
    transaction.lock_person()
    old = get_activity(transaction, activity_id)
    values = parse_choices(nulls_to_empty(Activity, _parse_activity(transaction, fields, zone)), CHOICE_FIELDS)
    values = fill_end(old, values, transaction.now)
    new = check_activity(fill_duration(replace(old, **values, updated_at=transaction.now), values))
    save_activity(transaction, new)
    return new


def delete_activity(transaction: PersonTransaction, activity_id: str) -> None:
    """Delete an activity and the time spent on it."""
    transaction.lock_person()
    delete_item(transaction, get_activity(transaction, activity_id).id)


def _parse_activity(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    values = parse_fields(transaction, fields, zone, TIME_FIELDS)
    check_field_names(values, SETTABLE_FIELDS)
    if isinstance(values.get("title"), str):
        values["title"] = values["title"].strip()
    return values


class ActivityService:
    """Activities of a person: what they did, and how it felt."""

    def __init__(self, records: PersonDatabase) -> None:
        self._records = records

    async def create(self, scope: PersonScope, fields: Fields, zone: str | None = None) -> Activity:
        """`fields` are those of an `Activity`; the missing one of start, end and length is computed."""
        scope.require(rights.ACTIVITIES_WRITE)
        return await self._records.change(scope, partial(create_activity, fields=fields, zone=zone))

    async def get(self, scope: PersonScope, activity_id: str) -> Activity:
        scope.require(rights.ACTIVITIES_READ)
        return await self._records.read(scope, partial(get_activity, activity_id=activity_id))

    async def list(self, scope: PersonScope, filters: ActivityFilter) -> RecordPage[Activity]:
        scope.require(rights.ACTIVITIES_READ)
        return await self._records.read(scope, partial(list_activities, filters=filters))

    async def update(self, scope: PersonScope, activity_id: str, fields: Fields, zone: str | None = None) -> Activity:
        scope.require(rights.ACTIVITIES_WRITE)
        work = partial(update_activity, activity_id=activity_id, fields=fields, zone=zone)
        return await self._records.change(scope, work)

    async def delete(self, scope: PersonScope, activity_id: str) -> None:
        """Delete an activity and the time spent on it."""
        scope.require(rights.ACTIVITIES_WRITE)
        await self._records.change(scope, partial(delete_activity, activity_id=activity_id))

    async def stats(self, scope: PersonScope, zone: str | None = None) -> ActivityStats:
        scope.require(rights.ACTIVITIES_READ)
        return await self._records.read(scope, partial(activity_stats, zone=zone))
