"""Activities in the database."""

import json
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, func, insert, select, update

from frontdesk.db.schema import activities as table
from frontdesk.db.schema import timeline_items
from frontdesk.memory import checks
from frontdesk.memory.activities import rules
from frontdesk.memory.activities.wanted import ActivitySort, ActivityWanted
from frontdesk.memory.given import Page, category_id
from frontdesk.memory.items import store as items
from frontdesk.memory.matching.store import contains, has_words, ordered, page, up_to
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity
from frontdesk.memory.moments import Edge, moment, zone_of
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(Activity))
OWN = tuple(name for name in NAMES if name in table.c)
SHARED = tuple(timeline_items.c[name] for name in NAMES if name not in table.c)
JOINED = table.join(
    timeline_items, and_(timeline_items.c.user_id == table.c.user_id, timeline_items.c.id == table.c.id)
)
ROWS = select(table, *SHARED).select_from(JOINED)
SEARCHED = (
    timeline_items.c.title,
    timeline_items.c.description,
    timeline_items.c.tags,
    table.c.notes,
    table.c.insights,
    table.c.gratitude,
    func.coalesce(table.c.location, ""),
    table.c.companions,
)
ORDERS: dict[ActivitySort, ColumnElement[Any]] = {
    ActivitySort.STARTED_AT: table.c.started_at,
    ActivitySort.SATISFACTION_LEVEL: table.c.satisfaction_level,
    ActivitySort.MOOD_AFTER: table.c.mood_after,
    ActivitySort.TITLE: func.lower(timeline_items.c.title),
    ActivitySort.CREATED_AT: timeline_items.c.created_at,
}
OPTIONAL = (ActivitySort.SATISFACTION_LEVEL, ActivitySort.MOOD_AFTER)


def add(mine: Mine, activity: Activity) -> None:
    items.add(mine, rules.item_of(activity), rules.text_of(activity))
    mine.connection.execute(insert(table).values(user_id=mine.user_id, **_row(activity)))


def write(mine: Mine, activity: Activity) -> None:
    was = items.get(mine, activity.id)
    items.write(mine, rules.item_of(activity, was), rules.text_of(activity))
    mine.connection.execute(update(table).where(_is_mine(mine, activity.id)).values(**_row(activity)))


def get(mine: Mine, activity_id: str) -> Activity | None:
    row = mine.connection.execute(ROWS.where(_is_mine(mine, activity_id))).mappings().one_or_none()
    return activity_of(row) if row else None


def find(mine: Mine, wanted: ActivityWanted) -> Page[Activity]:
    """Those that are wanted, in order, a page of them."""
    checks.one_page(wanted.limit, wanted.offset)
    rows = ROWS.where(table.c.user_id == mine.user_id, *_conditions(mine, wanted))
    by = checks.choice(ActivitySort, "sort_by", wanted.sort_by)
    rows = ordered(rows, ORDERS[by], table.c.id, wanted.sort_order, nullable=by in OPTIONAL)
    found, total = page(mine, rows, wanted.limit, wanted.offset)
    return Page([activity_of(row) for row in found], total, wanted.offset)


def activity_of(row: RowMapping) -> Activity:
    """From a row that has the columns of both tables."""
    values = {name: row[name] for name in NAMES}
    values |= {
        "activity_type": ActivityType(row["activity_type"]),
        "status": ActivityStatus(row["status"]),
        "intensity_level": Intensity(row["intensity_level"]),
        "companions": tuple(json.loads(row["companions"])),
        "tags": items.split(row["tags"]),
        "metadata": json.loads(row["metadata"]),
    }
    return Activity(**values)


def _conditions(mine: Mine, wanted: ActivityWanted) -> list[ColumnElement[bool]]:
    found = _begun(mine, wanted)
    for name in ("activity_type", "status", "intensity_level"):
        value = getattr(wanted, name)
        if value is not None:
            found.append(table.c[name] == value)
    if wanted.min_satisfaction is not None:
        found.append(table.c.satisfaction_level >= wanted.min_satisfaction)
    if wanted.min_mood_after is not None:
        found.append(table.c.mood_after >= wanted.min_mood_after)
    if wanted.location:
        found.append(contains(func.coalesce(table.c.location, ""), wanted.location.strip()))
    if wanted.search:
        found += has_words(SEARCHED, wanted.search)
    if wanted.tags:
        found.append(items.has_tags(wanted.tags, every=wanted.every_tag))
    if wanted.category_id:
        found.append(timeline_items.c.category_id == category_id(mine, wanted.category_id))
    return found


def _begun(mine: Mine, wanted: ActivityWanted) -> list[ColumnElement[bool]]:
    zone = zone_of(wanted.timezone, mine.zone_name)
    found: list[ColumnElement[bool]] = []
    if wanted.started_from:
        found.append(table.c.started_at >= moment(wanted.started_from, zone, "from"))
    if wanted.started_to:
        found.append(up_to(table.c.started_at, moment(wanted.started_to, zone, "to", Edge.END)))
    return found


def _is_mine(mine: Mine, activity_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.id == activity_id)


def _row(activity: Activity) -> dict[str, Any]:
    values = {**asdict(activity), "companions": json.dumps(activity.companions, ensure_ascii=False)}
    return {name: values[name] for name in OWN}
