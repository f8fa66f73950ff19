"""Stores activities; filters and counts them."""

import json
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, case, func, insert, select, update

from frontdesk.db.schema import activities, timeline_items
from frontdesk.memory.activities_rules import (
    ActivityFilter,
    ActivitySort,
    ActivityStats,
    activity_text,
    item_from_activity,
)
from frontdesk.memory.items_store import fetch_item, has_tags, insert_item, save_item, split_tags
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity
from frontdesk.memory.store import (
    PersonTransaction,
    contains_text,
    contains_words,
    fetch_page,
    most_first,
    not_after,
    order_rows,
)
from frontdesk.memory.times import DayEdge, find_zone, parse_time, span_of_days, today_in
from frontdesk.memory.validation import RecordPage, check_page, find_category_id, parse_choice

ACTIVITY_FIELDS = tuple(field.name for field in fields(Activity))
ACTIVITY_COLUMNS = tuple(name for name in ACTIVITY_FIELDS if name in activities.c)
ITEM_COLUMNS = tuple(timeline_items.c[name] for name in ACTIVITY_FIELDS if name not in activities.c)
ACTIVITIES_WITH_ITEMS = activities.join(
    timeline_items, and_(timeline_items.c.user_id == activities.c.user_id, timeline_items.c.id == activities.c.id)
)
ACTIVITY_ROWS = select(activities, *ITEM_COLUMNS).select_from(ACTIVITIES_WITH_ITEMS)
SEARCHED_COLUMNS = (
    timeline_items.c.title,
    timeline_items.c.description,
    timeline_items.c.tags,
    activities.c.notes,
    activities.c.insights,
    activities.c.gratitude,
    func.coalesce(activities.c.location, ""),
    activities.c.companions,
)
SORT_COLUMNS: dict[ActivitySort, ColumnElement[Any]] = {
    ActivitySort.STARTED_AT: activities.c.started_at,
    ActivitySort.SATISFACTION_LEVEL: activities.c.satisfaction_level,
    ActivitySort.MOOD_AFTER: activities.c.mood_after,
    ActivitySort.TITLE: func.lower(timeline_items.c.title),
    ActivitySort.CREATED_AT: timeline_items.c.created_at,
}
NULLABLE_SORTS = (ActivitySort.SATISFACTION_LEVEL, ActivitySort.MOOD_AFTER)


def insert_activity(transaction: PersonTransaction, activity: Activity) -> None:
    insert_item(transaction, item_from_activity(activity), activity_text(activity))
    transaction.connection.execute(insert(activities).values(user_id=transaction.user_id, **_activity_row(activity)))


def save_activity(transaction: PersonTransaction, activity: Activity) -> None:
    was = fetch_item(transaction, activity.id)
    save_item(transaction, item_from_activity(activity, was), activity_text(activity))
    transaction.connection.execute(
        update(activities).where(_is_activity(transaction, activity.id)).values(**_activity_row(activity))
    )


def fetch_activity(transaction: PersonTransaction, activity_id: str) -> Activity | None:
    row = (
        transaction.connection.execute(ACTIVITY_ROWS.where(_is_activity(transaction, activity_id)))
        .mappings()
        .one_or_none()
    )
    return activity_from_row(row) if row else None


def list_activities(transaction: PersonTransaction, filters: ActivityFilter) -> RecordPage[Activity]:
    """A page of the activities that pass a filter, in its order."""
    check_page(filters.limit, filters.offset)
    rows = ACTIVITY_ROWS.where(activities.c.user_id == transaction.user_id, *_filter_conditions(transaction, filters))
    by = parse_choice(ActivitySort, "sort_by", filters.sort_by)
    rows = order_rows(rows, SORT_COLUMNS[by], activities.c.id, filters.sort_order, nullable=by in NULLABLE_SORTS)
    found, total = fetch_page(transaction, rows, filters.limit, filters.offset)
    return RecordPage([activity_from_row(row) for row in found], total, filters.offset)


def activity_from_row(row: RowMapping) -> Activity:
    """Build an activity from a row with the columns of both tables."""
    values = {name: row[name] for name in ACTIVITY_FIELDS}
    values |= {
        "activity_type": ActivityType(row["activity_type"]),
        "status": ActivityStatus(row["status"]),
        "intensity_level": Intensity(row["intensity_level"]),
        "companions": tuple(json.loads(row["companions"])),
        "tags": split_tags(row["tags"]),
        "metadata": json.loads(row["metadata"]),
    }
    return Activity(**values)


def _filter_conditions(transaction: PersonTransaction, filters: ActivityFilter) -> list[ColumnElement[bool]]:
    found = _start_conditions(transaction, filters)
    for name in ("activity_type", "status", "intensity_level"):
        value = getattr(filters, name)
        if value is not None:
            found.append(activities.c[name] == value)
    if filters.min_satisfaction is not None:
        found.append(activities.c.satisfaction_level >= filters.min_satisfaction)
    if filters.min_mood_after is not None:
        found.append(activities.c.mood_after >= filters.min_mood_after)
    if filters.location:
        found.append(contains_text(func.coalesce(activities.c.location, ""), filters.location.strip()))
    if filters.search:
        found += contains_words(SEARCHED_COLUMNS, filters.search)
    if filters.tags:
        found.append(has_tags(filters.tags, every=filters.every_tag))
    if filters.category_id:
        found.append(timeline_items.c.category_id == find_category_id(transaction, filters.category_id))
    return found


def _start_conditions(transaction: PersonTransaction, filters: ActivityFilter) -> list[ColumnElement[bool]]:
    zone = find_zone(filters.timezone, transaction.zone_name)
    found: list[ColumnElement[bool]] = []
    if filters.started_from:
        found.append(activities.c.started_at >= parse_time(filters.started_from, zone, "from"))
    if filters.started_to:
        found.append(not_after(activities.c.started_at, parse_time(filters.started_to, zone, "to", DayEdge.END)))
    return found


def _is_activity(transaction: PersonTransaction, activity_id: str) -> ColumnElement[bool]:
    return and_(activities.c.user_id == transaction.user_id, activities.c.id == activity_id)


def _activity_row(activity: Activity) -> dict[str, Any]:
    values = {**asdict(activity), "companions": json.dumps(activity.companions, ensure_ascii=False)}
    return {name: values[name] for name in ACTIVITY_COLUMNS}


TOTAL_MINUTES = func.coalesce(func.sum(activities.c.duration_minutes), 0)


def activity_stats(transaction: PersonTransaction, zone: str | None = None) -> ActivityStats:
    """Statistics. This week begins on Monday in the person's time zone."""
    sums = select(
        func.count().label("total"),
        TOTAL_MINUTES.label("minutes"),
        func.avg(activities.c.satisfaction_level).label("satisfaction"),
        func.avg(activities.c.mood_after - activities.c.mood_before).label("mood"),
        func.avg(activities.c.energy_after - activities.c.energy_before).label("energy"),
        *_recent_counts(transaction, zone),
    )
    row = transaction.connection.execute(sums.where(activities.c.user_id == transaction.user_id)).one()
    return ActivityStats(
        total=row.total,
        by_type=_count_by(transaction, activities.c.activity_type, func.count()),
        by_status=_count_by(transaction, activities.c.status, func.count()),
        minutes_by_type=_count_by(transaction, activities.c.activity_type, TOTAL_MINUTES),
        total_minutes=row.minutes,
        average_satisfaction=_round_average(row.satisfaction),
        average_mood_change=_round_average(row.mood),
        average_energy_change=_round_average(row.energy),
        this_week=row.this_week or 0,
        this_month=row.this_month or 0,
    )


def _recent_counts(transaction: PersonTransaction, zone: str | None) -> list[ColumnElement[Any]]:
    where = find_zone(zone, transaction.zone_name)
    day = today_in(transaction.now, where)
    firsts = {"this_week": day - timedelta(days=day.weekday()), "this_month": day.replace(day=1)}
    since = {name: span_of_days(first, where).start for name, first in firsts.items()}
    return [func.sum(case((activities.c.started_at >= start, 1), else_=0)).label(name) for name, start in since.items()]


def _count_by(transaction: PersonTransaction, column: ColumnElement[Any], number: ColumnElement[Any]) -> dict[str, int]:
    grouped = (
        select(column, number).where(activities.c.user_id == transaction.user_id).group_by(column).order_by(column)
    )
    return most_first((value, times) for value, times in transaction.connection.execute(grouped))


def _round_average(value: Any) -> float | None:  # noqa: ANN401 - PostgreSQL's averages are decimals, SQLite's floats
    return None if value is None else round(float(value), 2)
