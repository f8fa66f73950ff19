"""Offers the timeline: items of every type, each changed through its task, memory or activity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.identity import rights
from frontdesk.memory.activities import create_activity, delete_activity, get_activity, update_activity
from frontdesk.memory.insights import InsightRange, Insights, compute_insights, insight_period
from frontdesk.memory.items_store import delete_item, insert_item, item_text, save_item
from frontdesk.memory.memories import create_memory, delete_memory, get_memory, update_memory
from frontdesk.memory.model import (
    Activity,
    ActivityType,
    ItemStatus,
    ItemType,
    Memory,
    PersonScope,
    Priority,
    Task,
    TimelineFilter,
    TimelineItem,
    TimelinePosition,
    TimelineSort,
)
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService, create_task, delete_task, get_task, update_task
from frontdesk.memory.timeline_store import (
    fetch_timeline_item,
    list_newest_items,
    list_timeline,
    read_insight_facts,
    save_item_fields,
)
from frontdesk.memory.times import DayEdge, find_zone, today_in
from frontdesk.memory.validation import (
    Fields,
    RecordPage,
    check_field_names,
    check_length,
    new_id,
    nulls_to_empty,
    parse_choice,
    parse_choices,
    parse_fields,
    parse_id,
    require_found,
    without_nulls,
)

ItemRecord = Task | Memory | Activity
SHARED_FIELDS = {name: name for name in ("title", "category", "category_id", "tags", "metadata", "status")}


@dataclass(frozen=True, slots=True)
class ItemKind:
    """The functions that read and change the record of an item of one type, and the rights that changes need.

    `names` maps an item's fields to the record's fields, `statuses` its statuses; `item_only_fields` has the fields
    that only the item has. `defaults` has values for required fields that an item does not have.
    """

    right: str
    get: Callable[[PersonTransaction, str], ItemRecord]
    create: Callable[[PersonTransaction, Fields, str | None], ItemRecord]
    update: Callable[[PersonTransaction, str, Fields, str | None], ItemRecord]
    delete: Callable[[PersonTransaction, str], Sequence[Task] | None]
    names: Mapping[str, str]
    statuses: Mapping[str, str]
    item_only_fields: frozenset[str]
    defaults: Mapping[str, Any]


ITEM_KINDS: Mapping[ItemType, ItemKind] = {
    ItemType.TASK: ItemKind(
        rights.TASKS_WRITE,
        get_task,
        create_task,
        update_task,
        delete_task,
        {**SHARED_FIELDS, "description": "description", "end_time": "due_date", "priority": "priority"},
        {"active": "pending", "inactive": "on_hold", "completed": "completed", "cancelled": "cancelled"},
        frozenset({"start_time", "is_time_consuming", "render_on_timeline"}),
        {},
    ),
    ItemType.MEMORY: ItemKind(
        rights.MEMORIES_WRITE,
        get_memory,
        create_memory,
        update_memory,
        delete_memory,
        {**SHARED_FIELDS, "description": "note", "start_time": "happened_start", "end_time": "happened_end"},
        {"active": "active", "archived": "archived"},
        frozenset({"priority", "render_on_timeline"}),
        {},
    ),
    ItemType.ACTIVITY: ItemKind(
        rights.ACTIVITIES_WRITE,
        get_activity,
        create_activity,
        update_activity,
        delete_activity,
        {**SHARED_FIELDS, "description": "description", "start_time": "started_at", "end_time": "ended_at"},
        {"active": "active", "completed": "completed", "cancelled": "cancelled"},
        frozenset({"priority", "is_time_consuming", "render_on_timeline"}),
        {"activity_type": ActivityType.OTHER, "status": "active"},
    ),
}


def split_fields(kind: ItemKind, of: ItemType, fields: Fields) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of the record itself, under its own names, and the fields of the item alone."""
    strange = sorted(set(fields) - set(kind.names) - kind.item_only_fields)
    if strange:
        raise Invalid(f"{', '.join(strange)} cannot be set on an item of the type {of}")
    own = {kind.names[name]: value for name, value in fields.items() if name in kind.names}
    if own.get("status") is not None:
        own["status"] = _own_status(kind, of, own["status"])
    return own, {name: value for name, value in fields.items() if name in kind.item_only_fields}


def _own_status(kind: ItemKind, of: ItemType, status: str) -> str:
    if status not in kind.statuses:
        raise Invalid(f"An item of the type {of} cannot be {status}; it can be {' or '.join(kind.statuses)}")
    return kind.statuses[status]


ITEM_NAME = "Timeline item"
MAX_TITLE = 500
TIME_FIELDS = {"start_time": DayEdge.START, "end_time": DayEdge.END}
CHOICE_FIELDS = {"status": ItemStatus, "priority": Priority}
SETTABLE_FIELDS = (
    "title",
    "description",
    "start_time",
    "end_time",
    "is_time_consuming",
    "render_on_timeline",
    "category_id",
    "tags",
    "status",
    "priority",
    "metadata",
)
ItemKinds = Mapping[ItemType, ItemKind]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item, with its record before and after the change; `deleted_tasks` are the tasks deleted with it."""

    item: TimelineItem
    before: ItemRecord | None = None
    after: ItemRecord | None = None
    deleted_tasks: Sequence[Task] = ()


def create_timeline_item(
    transaction: PersonTransaction, kinds: ItemKinds, fields: Fields, zone: str | None = None
) -> TimelineItem:
    """Create an item: a routine or a habit alone, any other type with its task, memory or activity."""
    transaction.lock_person()
    said = without_nulls(fields)
    of = parse_choice(ItemType, "type", said.pop("type", ""))
    kind = kinds.get(of)
    if kind is None:
        return _insert_plain_item(transaction, of, said, zone)
    own, beside = split_fields(kind, of, said)
    made = kind.create(transaction, {**kind.defaults, **own}, zone)
    return _check_item(_save_item_fields(transaction, made.id, beside, zone))


def get_timeline_item(transaction: PersonTransaction, item_id: str) -> TimelineItem:
    return require_found(fetch_timeline_item(transaction, parse_id(item_id, ITEM_NAME)), ITEM_NAME)


def update_timeline_item(
    transaction: PersonTransaction,
    kinds: ItemKinds,
    item_id: str,
    fields: Fields,
    zone: str | None,
    require: Callable[[str], None],
) -> ItemChange:
    """`require` raises an error if the caller may not change such items; it is called once the type is known."""
    transaction.lock_person()
    old = get_timeline_item(transaction, item_id)
    given = dict(fields)
    if given.pop("type", old.type) != old.type:
        raise Invalid(f"This is of the type {old.type}, and stays so; make another item")
    kind = kinds.get(old.type)
    if kind is None:
        return ItemChange(_update_plain_item(transaction, old, given, zone))
    require(kind.right)
    if given.get("status") == old.status:
        del given["status"]
    own, beside = split_fields(kind, old.type, given)
    before = kind.get(transaction, old.id)
    after = kind.update(transaction, old.id, own, zone) if own else before
    item = _save_item_fields(transaction, old.id, beside, zone)
    return ItemChange(item if given.keys().isdisjoint(TIME_FIELDS) else _check_item(item), before, after)


def delete_timeline_item(
    transaction: PersonTransaction, kinds: ItemKinds, item_id: str, require: Callable[[str], None]
) -> ItemChange:
    """Delete an item through its record: a memory is kept, but no longer shown. Returns the item as it was."""
    transaction.lock_person()
    old = get_timeline_item(transaction, item_id)
    kind = kinds.get(old.type)
    if kind is None:
        delete_item(transaction, old.id)
        return ItemChange(old)
    require(kind.right)
    return ItemChange(old, deleted_tasks=kind.delete(transaction, old.id) or ())


def _insert_plain_item(transaction: PersonTransaction, of: ItemType, said: Fields, zone: str | None) -> TimelineItem:
    values = {"title": "", **parse_choices(_parse_item(transaction, said, zone), CHOICE_FIELDS)}
    stamp: dict[str, Any] = {
        "id": new_id(transaction.now),
        "created_at": transaction.now,
        "updated_at": transaction.now,
    }
    item = _check_item(TimelineItem(type=of, **values, **stamp))
    insert_item(transaction, item, item_text(item))
    return item


def _update_plain_item(
    transaction: PersonTransaction, old: TimelineItem, fields: Fields, zone: str | None
) -> TimelineItem:
    new = _check_item(replace(old, **_parse_change(_parse_item(transaction, fields, zone)), updated_at=transaction.now))
    save_item(transaction, new, item_text(new))
    return new


def _save_item_fields(transaction: PersonTransaction, item_id: str, beside: Fields, zone: str | None) -> TimelineItem:
    """Save the fields that only the item has."""
    if beside:
        save_item_fields(transaction, item_id, _parse_change(_parse_item(transaction, beside, zone)))
    return get_timeline_item(transaction, item_id)


def _parse_item(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    values = parse_fields(transaction, fields, zone, TIME_FIELDS)
    check_field_names(values, SETTABLE_FIELDS)
    if values.get("status") == ItemStatus.DELETED:
        raise Invalid("An item is deleted by deleting it, not by its status")
    return values


def _parse_change(values: dict[str, Any]) -> dict[str, Any]:
    return parse_choices(nulls_to_empty(TimelineItem, values), CHOICE_FIELDS)


def _check_item(item: TimelineItem) -> TimelineItem:
    if not item.title.strip():
        raise Invalid("An item needs a title")
    check_length(item, "title", MAX_TITLE)
    if item.start_time is not None and item.end_time is not None and item.end_time <= item.start_time:
        raise Invalid("end_time must be after start_time")
    return item


class TimelineService:
    """Items of every type. `tasks` gets every change of a task; `kinds` has the record type of each item type.

    Deleted items are never shown; a superseded or expired memory is returned only by its id.
    """

    def __init__(self, records: PersonDatabase, tasks: TaskService, kinds: ItemKinds = ITEM_KINDS) -> None:
        self._records = records
        self._tasks = tasks
        self._kinds = kinds

    async def list(self, scope: PersonScope, filters: TimelineFilter) -> RecordPage[TimelineItem]:
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(list_timeline, filters=filters))

    async def newest(
        self, scope: PersonScope, limit: int = 50, before: TimelinePosition | None = None, kind: ItemType | None = None
    ) -> Sequence[TimelineItem]:
        """The newest items, or those created before a position; its time does not grow with the number of items."""
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(list_newest_items, limit=limit, before=before, kind=kind))

    async def get(self, scope: PersonScope, item_id: str) -> TimelineItem:
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(get_timeline_item, item_id=item_id))

    async def create(self, scope: PersonScope, fields: Fields, zone: str | None = None) -> TimelineItem:
        """`fields` are those of a `TimelineItem`; if the type needs one, a task, memory or activity is created too."""
        scope.require(rights.TIMELINE_WRITE)
        return await self._records.change(
            scope, partial(create_timeline_item, kinds=self._kinds, fields=fields, zone=zone)
        )

    async def update(self, scope: PersonScope, item_id: str, fields: Fields, zone: str | None = None) -> TimelineItem:
        """Change an item; this also needs the right to change its record."""
        scope.require(rights.TIMELINE_WRITE)
        what = {"kinds": self._kinds, "item_id": item_id, "fields": fields, "zone": zone, "require": scope.require}
        done = await self._records.change(scope, partial(update_timeline_item, **what))
        if isinstance(done.before, Task) and isinstance(done.after, Task):
            await self._tasks.notify_changed(scope, done.before, done.after)
        return done.item

    async def delete(self, scope: PersonScope, item_id: str) -> TimelineItem:
        """Delete an item; this also needs the right to delete its record. Returns the item as it was."""
        scope.require(rights.TIMELINE_WRITE)
        work = partial(delete_timeline_item, kinds=self._kinds, item_id=item_id, require=scope.require)
        done = await self._records.change(scope, work, small=False)
        await self._tasks.notify_deleted(scope, done.deleted_tasks)
        return done.item

    async def highlights(self, scope: PersonScope, limit: int = 20, offset: int = 0) -> RecordPage[TimelineItem]:
        """Memories marked as highlights, the last captured first."""
        scope.require(rights.TIMELINE_READ)
        wanted = TimelineFilter(is_highlight=True, sort_by=TimelineSort.CAPTURED_AT, limit=limit, offset=offset)
        return await self._records.read(scope, partial(list_timeline, filters=wanted))

    async def insights(
        self, scope: PersonScope, date_range: str = InsightRange.WEEK, zone: str | None = None
    ) -> Insights:
        """Insights of the days up to today, in the person's time zone."""
        scope.require(rights.TIMELINE_READ)
        wanted = parse_choice(InsightRange, "date_range", date_range)
        return await self._records.read(scope, partial(_read_insights, date_range=wanted, zone=zone))


def _read_insights(transaction: PersonTransaction, date_range: InsightRange, zone: str | None) -> Insights:
    where = find_zone(zone, transaction.zone_name)
    return compute_insights(
        date_range, read_insight_facts(transaction, insight_period(date_range, today_in(transaction.now, where), where))
    )
