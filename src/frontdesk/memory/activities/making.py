"""Activities made, changed and deleted: functions over one person's records."""

from dataclasses import replace
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.memory import checks
from frontdesk.memory.activities import rules, store
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import known, new_id
from frontdesk.memory.items import store as items
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity
from frontdesk.memory.moments import Edge
from frontdesk.memory.store import Mine

WHAT = "Activity"
EDGES = {"started_at": Edge.START, "ended_at": Edge.END}
KINDS = {"activity_type": ActivityType, "status": ActivityStatus, "intensity_level": Intensity}
GIVEN = (
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


def create(mine: Mine, fields: Fields, zone: str | None = None) -> Activity:
    """A new one; it is over, unless another status is given."""
    given = {"status": ActivityStatus.COMPLETED, **checks.said(_taken(mine, fields, zone))}
    missing = [name for name in ("title", "activity_type") if name not in given]
    if missing:
        raise Invalid(f"An activity needs {' and '.join(missing)}")
    values = rules.begun(checks.chosen(given, KINDS), mine.now)
    stamp: dict[str, Any] = {"id": new_id(mine.now), "created_at": mine.now, "updated_at": mine.now}
    activity = rules.checked(rules.timed(Activity(**values, **stamp), values))
    store.add(mine, activity)
    return activity


def get(mine: Mine, activity_id: str) -> Activity:
    return there(store.get(mine, known(activity_id, WHAT)), WHAT)


def update(mine: Mine, activity_id: str, fields: Fields, zone: str | None = None) -> Activity:
    """The activity as it is to be. One that is completed ends now, unless it is said when."""
    mine.hold()
    old = get(mine, activity_id)
    values = checks.chosen(checks.emptied(Activity, _taken(mine, fields, zone)), KINDS)
    values = rules.ended(old, values, mine.now)
    new = rules.checked(rules.timed(replace(old, **values, updated_at=mine.now), values))
    store.write(mine, new)
    return new


def delete(mine: Mine, activity_id: str) -> None:
    """For good, with the time that was spent on it."""
    mine.hold()
    items.remove(mine, get(mine, activity_id).id)


def _taken(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    values = taken(mine, fields, zone, EDGES)
    checks.known(values, GIVEN)
    if isinstance(values.get("title"), str):
        values["title"] = values["title"].strip()
    return values
