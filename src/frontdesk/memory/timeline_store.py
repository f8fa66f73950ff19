"""Reads the timeline of items of every type, and the facts that insights are computed from."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update

from frontdesk.db.schema import activities, categories, memories, tasks, time_entries, timeline_items
from frontdesk.memory.insights import FeelingFact, InsightFacts, InsightPeriod, ItemFact, TaskFact, TrackedTime
from frontdesk.memory.items_store import has_tags, is_item, item_from_row, split_tags
from frontdesk.memory.memories_store import is_current_memory
from frontdesk.memory.model import (
    ItemStatus,
    ItemType,
    MemoryStatus,
    Priority,
    TaskStatus,
    TimelineFilter,
    TimelineItem,
    TimelinePosition,
    TimelineSort,
)
from frontdesk.memory.store import PersonTransaction, contains_words, fetch_page, not_after, order_rows
from frontdesk.memory.times import DayEdge, TimeSpan, find_zone, parse_time
from frontdesk.memory.validation import RecordPage, check_page, find_category_id, parse_choice

# A memory's description is its note, which is stored only with the memory.
DESCRIPTION = case((timeline_items.c.type == ItemType.MEMORY, memories.c.note), else_=timeline_items.c.description)
ITEMS_WITH_MEMORIES = timeline_items.outerjoin(
    memories, and_(memories.c.user_id == timeline_items.c.user_id, memories.c.id == timeline_items.c.id)
)
TIMELINE_ROWS = select(
    *(column for column in timeline_items.c if column.name != "description"), DESCRIPTION.label("description")
).select_from(ITEMS_WITH_MEMORIES)
SEARCHED_COLUMNS = (
    timeline_items.c.title,
    DESCRIPTION,
    timeline_items.c.tags,
    func.coalesce(memories.c.place_name, ""),
)
BEGIN_TIME = func.coalesce(timeline_items.c.start_time, timeline_items.c.end_time, timeline_items.c.created_at)
END_TIME = func.coalesce(timeline_items.c.end_time, timeline_items.c.start_time, timeline_items.c.created_at)
SORT_COLUMNS: dict[TimelineSort, ColumnElement[Any]] = {
    TimelineSort.CREATED_AT: timeline_items.c.created_at,
    TimelineSort.UPDATED_AT: timeline_items.c.updated_at,
    TimelineSort.TITLE: func.lower(timeline_items.c.title),
    TimelineSort.PRIORITY: case({name: rank for rank, name in enumerate(Priority)}, value=timeline_items.c.priority),
    TimelineSort.CAPTURED_AT: memories.c.captured_at,
    TimelineSort.SALIENCE_SCORE: memories.c.salience_score,
    TimelineSort.START_TIME: timeline_items.c.start_time,
}
NULLABLE_SORTS = (TimelineSort.CAPTURED_AT, TimelineSort.SALIENCE_SCORE, TimelineSort.START_TIME)


def fetch_timeline_item(transaction: PersonTransaction, item_id: str) -> TimelineItem | None:
    """An item by its id, also a superseded or expired memory, but no deleted item."""
    shown = (is_item(transaction, item_id), timeline_items.c.status != ItemStatus.DELETED)
    row = transaction.connection.execute(TIMELINE_ROWS.where(*shown)).mappings().one_or_none()
    return item_from_row(row) if row else None


def list_timeline(transaction: PersonTransaction, filters: TimelineFilter) -> RecordPage[TimelineItem]:
    """A page of the items that pass a filter, in its order."""
    check_page(filters.limit, filters.offset)
    rows = TIMELINE_ROWS.where(*_shown_conditions(transaction), *_filter_conditions(transaction, filters))
    by = parse_choice(TimelineSort, "sort_by", filters.sort_by)
    rows = order_rows(rows, SORT_COLUMNS[by], timeline_items.c.id, filters.sort_order, nullable=by in NULLABLE_SORTS)
    found, total = fetch_page(transaction, rows, filters.limit, filters.offset)
    return RecordPage([item_from_row(row) for row in found], total, filters.offset)


def list_newest_items(
    transaction: PersonTransaction, limit: int, before: TimelinePosition | None, kind: ItemType | None
) -> Sequence[TimelineItem]:
    """The newest items, from the position on; the total is not counted."""
    check_page(limit, 0)
    rows = TIMELINE_ROWS.where(*_shown_conditions(transaction))
    if kind is not None:
        rows = rows.where(timeline_items.c.type == kind)
    if before is not None:
        earlier = or_(timeline_items.c.created_at < before.at, timeline_items.c.id < before.id)
        rows = rows.where(timeline_items.c.created_at <= before.at, earlier)
    rows = order_rows(rows, timeline_items.c.created_at, timeline_items.c.id, "desc").limit(limit)
    return [item_from_row(row) for row in transaction.connection.execute(rows).mappings()]


def save_item_fields(transaction: PersonTransaction, item_id: str, values: Mapping[str, Any]) -> None:
    """Save the fields that only the item has."""
    transaction.connection.execute(
        update(timeline_items).where(is_item(transaction, item_id)).values(**values, updated_at=transaction.now)
    )


def _shown_conditions(transaction: PersonTransaction) -> list[ColumnElement[bool]]:
    """Conditions: neither deleted, superseded nor expired."""
    return [
        timeline_items.c.user_id == transaction.user_id,
        timeline_items.c.status != ItemStatus.DELETED,
        or_(memories.c.id.is_(None), is_current_memory(transaction)),
    ]


def _filter_conditions(transaction: PersonTransaction, filters: TimelineFilter) -> list[ColumnElement[bool]]:
    found = _time_conditions(transaction, filters)
    for name in ("type", "status", "priority", "render_on_timeline"):
        value = getattr(filters, name)
        if value is not None:
            found.append(timeline_items.c[name] == value)
    if filters.memory_type is not None:
        found.append(memories.c.memory_type == filters.memory_type)
    if filters.is_highlight is not None:
        found.append(func.coalesce(memories.c.is_highlight, False) == filters.is_highlight)
    if filters.category_id:
        found.append(timeline_items.c.category_id == find_category_id(transaction, filters.category_id))
    if filters.search:
        found += contains_words(SEARCHED_COLUMNS, filters.search)
    if filters.tags:
        found.append(has_tags(filters.tags, every=filters.every_tag))
    return found


def _time_conditions(transaction: PersonTransaction, filters: TimelineFilter) -> list[ColumnElement[bool]]:
    zone = find_zone(filters.timezone, transaction.zone_name)
    found: list[ColumnElement[bool]] = []
    if filters.date_from:
        found.append(parse_time(filters.date_from, zone, "date_from") <= END_TIME)
    if filters.date_to:
        found.append(not_after(BEGIN_TIME, parse_time(filters.date_to, zone, "date_to", DayEdge.END)))
    return found


# A memory's time is its capture, an activity's time is its start, any other item's time is its creation.
FACT_TIME = func.coalesce(memories.c.captured_at, activities.c.started_at, timeline_items.c.created_at)
ITEMS_WITH_DETAILS = timeline_items.outerjoin(
    memories, and_(memories.c.user_id == timeline_items.c.user_id, memories.c.id == timeline_items.c.id)
).outerjoin(activities, and_(activities.c.user_id == timeline_items.c.user_id, activities.c.id == timeline_items.c.id))


def read_insight_facts(transaction: PersonTransaction, stretch: InsightPeriod) -> InsightFacts:
    return InsightFacts(
        period=stretch,
        now=transaction.now,
        items=_item_facts(transaction, stretch.span),
        tasks=_task_facts(transaction, TimeSpan(stretch.before.start, stretch.span.end)),
        tracked=_tracked_time(transaction, stretch.span),
        feelings=[*_activity_feelings(transaction, stretch.span), *_memory_feelings(transaction, stretch.span)],
    )


def _item_facts(transaction: PersonTransaction, span: TimeSpan) -> Sequence[ItemFact]:
    shown = (
        timeline_items.c.user_id == transaction.user_id,
        timeline_items.c.status != ItemStatus.DELETED,
        memories.c.superseded_by.is_(None),
    )
    query = (
        select(timeline_items.c.type, FACT_TIME.label("at"), timeline_items.c.tags)
        .select_from(ITEMS_WITH_DETAILS)
        .where(*shown, _is_within(FACT_TIME, span))
    )
    return [ItemFact(ItemType(row.type), row.at, split_tags(row.tags)) for row in transaction.connection.execute(query)]


def _task_facts(transaction: PersonTransaction, span: TimeSpan) -> Sequence[TaskFact]:
    moments = (timeline_items.c.created_at, tasks.c.due_date, tasks.c.completion_date)
    together = and_(timeline_items.c.user_id == tasks.c.user_id, timeline_items.c.id == tasks.c.id)
    touched = or_(*(_is_within(moment, span) for moment in moments))
    query = select(tasks.c.status, *moments).where(tasks.c.user_id == transaction.user_id, together, touched)
    return [
        TaskFact(TaskStatus(row.status), row.created_at, row.due_date, row.completion_date)
        for row in transaction.connection.execute(query)
    ]


def _tracked_time(transaction: PersonTransaction, span: TimeSpan) -> Sequence[TrackedTime]:
    named = and_(categories.c.user_id == time_entries.c.user_id, categories.c.id == time_entries.c.category_id)
    overlaps = (
        time_entries.c.start_at < span.end,
        or_(time_entries.c.end_at.is_(None), time_entries.c.end_at > span.start),
    )
    query = (
        select(time_entries.c.start_at, time_entries.c.end_at, categories.c.name)
        .select_from(time_entries.outerjoin(categories, named))
        .where(time_entries.c.user_id == transaction.user_id, *overlaps)
    )
    return [TrackedTime(row.start_at, row.end_at, row.name) for row in transaction.connection.execute(query)]


def _activity_feelings(transaction: PersonTransaction, span: TimeSpan) -> Sequence[FeelingFact]:
    moods = (activities.c.mood_after - activities.c.mood_before).label("mood")
    energies = (activities.c.energy_after - activities.c.energy_before).label("energy")
    begun = (activities.c.user_id == transaction.user_id, _is_within(activities.c.started_at, span))
    rows = transaction.connection.execute(select(moods, energies, activities.c.location).where(*begun))
    return [FeelingFact(mood_change=row.mood, energy_change=row.energy, place=row.location) for row in rows]


def _memory_feelings(transaction: PersonTransaction, span: TimeSpan) -> Sequence[FeelingFact]:
    shown = (memories.c.status != MemoryStatus.DELETED, memories.c.superseded_by.is_(None))
    captured = (memories.c.user_id == transaction.user_id, _is_within(memories.c.captured_at, span))
    rows = transaction.connection.execute(
        select(memories.c.emotion_valence, memories.c.place_name).where(*captured, *shown)
    )
    return [FeelingFact(valence=row.emotion_valence, place=row.place_name) for row in rows]


def _is_within(moment: ColumnElement[Any], span: TimeSpan) -> ColumnElement[bool]:
    return and_(moment >= span.start, moment < span.end)
