"""Offers time tracking: timers, entries made by hand, and summaries of days."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.memory.items_store import fetch_item, list_categories
from frontdesk.memory.model import EntrySource, ItemType, PersonScope, TimeEntry, TimelineItem
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.time_tracking_store import (
    delete_entry,
    fetch_entry,
    fetch_running_entry,
    insert_entry,
    list_overlapping,
    save_entry,
    update_task_totals,
)
from frontdesk.memory.times import (
    EARLIEST,
    LATEST,
    DayEdge,
    TimeSpan,
    find_zone,
    parse_day,
    parse_end,
    parse_time,
    span_of_days,
    today_in,
)
from frontdesk.memory.validation import (
    Fields,
    check_field_names,
    new_id,
    nulls_to_empty,
    parse_fields,
    parse_id,
    require_found,
    without_nulls,
)
from frontdesk.text import one_line, storable


class TimerRunning(Conflict):
    """Another timer is running, and a person has one at a time; `running` is its entry."""

    def __init__(self, running: TimeEntry) -> None:
        super().__init__(
            f"The timer of '{one_line(running.item_title, 80)}' ({running.timeline_item_id}) is running; stop it "
            "first, or switch over to this one"
        )
        self.running = running


@dataclass(frozen=True, slots=True)
class StartedTimer:
    """The running entry, whether it was created by this call, and the entry that was stopped for it."""

    entry: TimeEntry
    created: bool
    stopped: TimeEntry | None = None


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Time spent on an item or in a category; time without a category has no id."""

    id: str | None
    name: str
    minutes: int
    entries: int


@dataclass(frozen=True, slots=True)
class DaySpending:
    """The time of one day. Entries are cut at its start and end; a running entry counts until now."""

    day: date
    zone: str
    span: TimeSpan
    total_minutes: int
    by_item: Sequence[TimeSpent]
    by_category: Sequence[TimeSpent]
    entries: Sequence[TimeEntry]


INSTANT = timedelta(microseconds=1)
MAX_LENGTH = timedelta(days=366)
UNCATEGORIZED = "uncategorized"
NamedKey = tuple[str | None, str]


def count_minutes(start: datetime, end: datetime) -> int:
    """Whole minutes, rounded, at least one."""
    return max(1, int((end - start) / timedelta(minutes=1) + 0.5))


def with_end(entry: TimeEntry, end: datetime) -> TimeEntry:
    return replace(entry, end_at=end, duration_minutes=count_minutes(entry.start_at, end))


def stop_entry(entry: TimeEntry, now: datetime) -> TimeEntry:
    """The entry stopped now. If it began on a clock that is ahead, it still ends after its start."""
    return replace(with_end(entry, max(now, entry.start_at + INSTANT)), updated_at=now)


def stop_entry_at(entry: TimeEntry, end: datetime, now: datetime) -> TimeEntry:
    """The entry stopped at that end."""
    if not entry.start_at < end <= now:
        raise Invalid(
            f"The timer can have been stopped after {entry.start_at.isoformat()}, when it began, and up to now; "
            f"{end.isoformat()} is not between them"
        )
    return replace(with_end(entry, end), updated_at=now)


def check_entry(entry: TimeEntry, now: datetime) -> TimeEntry:
    """The entry with its minutes; raises `Invalid` if it ends before its start or exceeds the limits."""
    end = entry.end_at or now
    if end <= entry.start_at:
        raise Invalid(f"A time entry ends after it begins; this would end at {end.isoformat()}")
    if end - entry.start_at > MAX_LENGTH:
        raise Invalid(f"A time entry is {MAX_LENGTH.days} days long at most; split it")
    return entry if entry.end_at is None else with_end(entry, entry.end_at)


def day_spending(
    entries: Sequence[TimeEntry], day: date, zone: str, span: TimeSpan, now: datetime, categories: Mapping[str, str]
) -> DaySpending:
    """Sum the entries in the span by item and by category; `categories` has names by id."""
    found = [cut for entry in entries if (cut := clip_entry(entry, span, now)) is not None]
    return DaySpending(
        day,
        zone,
        span,
        sum(entry.duration_minutes or 0 for entry in found),
        _sum_time(found, lambda entry: (entry.timeline_item_id, entry.item_title)),
        _sum_time(found, lambda entry: (entry.category_id, categories.get(entry.category_id or "", UNCATEGORIZED))),
        found,
    )


def clip_entry(entry: TimeEntry, span: TimeSpan, now: datetime) -> TimeEntry | None:
    """The part of an entry that lies in the span; an entry that is still running there has no end."""
    start, end = max(entry.start_at, span.start), min(entry.end_at or now, span.end)
    if end <= start:
        return None
    runs_on = entry.end_at is None and end < span.end
    return replace(entry, start_at=start, end_at=None if runs_on else end, duration_minutes=count_minutes(start, end))


def _sum_time(entries: Sequence[TimeEntry], named: Callable[[TimeEntry], NamedKey]) -> Sequence[TimeSpent]:
    """Sum the time by key, the most first, each with its latest name."""
    found: dict[str | None, TimeSpent] = {}
    for entry in entries:
        key, name = named(entry)
        before = found.get(key, TimeSpent(key, name, 0, 0))
        found[key] = TimeSpent(key, name, before.minutes + (entry.duration_minutes or 0), before.entries + 1)
    return sorted(found.values(), key=lambda one: (-one.minutes, one.name, one.id or ""))


ENTRY_NAME = "Time entry"
SETTABLE_FIELDS = ("start_at", "end_at", "note")
TIME_FIELDS = {"start_at": DayEdge.START, "end_at": DayEdge.END}


def get_item_of_kind(transaction: PersonTransaction, item_id: str, kind: ItemType | None) -> TimelineItem:
    """One of the person's items; an item of another kind is `NotFound` if a kind is given."""
    what = (kind or "item").capitalize()
    found = require_found(fetch_item(transaction, parse_id(item_id, what)), what)
    if kind is not None and found.type is not kind:
        raise NotFound(f"{what} not found")
    return found


def start_timer(
    transaction: PersonTransaction, item_id: str, note: str | None, *, auto_switch: bool, kind: ItemType | None
) -> StartedTimer:
    transaction.lock_person()
    item = _require_trackable(get_item_of_kind(transaction, item_id, kind))
    running = fetch_running_entry(transaction)
    if running is not None and running.timeline_item_id == item.id:
        return StartedTimer(running, created=False)
    if running is not None and not auto_switch:
        raise TimerRunning(running)
    before = None if running is None else _save_and_recount(transaction, stop_entry(running, transaction.now))
    begun = transaction.now if before is None or before.end_at is None else before.end_at
    entry = _new_entry(transaction, item, begun, note=storable(note or ""))
    insert_entry(transaction, entry)
    return StartedTimer(entry, created=True, stopped=before)


def stop_timer(
    transaction: PersonTransaction, item_id: str, end_at: str | None, zone: str | None, kind: ItemType | None
) -> TimeEntry | None:
    transaction.lock_person()
    item = get_item_of_kind(transaction, item_id, kind)
    running = fetch_running_entry(transaction)
    if running is None:
        return None
    if running.timeline_item_id != item.id:
        raise NotFound(f"No timer of this runs, but that of '{one_line(running.item_title, 80)}'; stop that one")
    if end_at is None:
        return _save_and_recount(transaction, stop_entry(running, transaction.now))
    end = parse_time(end_at, find_zone(zone, transaction.zone_name), "end_at", DayEdge.END)
    return _save_and_recount(transaction, stop_entry_at(running, end, transaction.now))


def add_entry(
    transaction: PersonTransaction, item_id: str, fields: Fields, zone: str | None, kind: ItemType | None
) -> TimeEntry:
    """Add time that was spent without a timer."""
    transaction.lock_person()
    item = _require_trackable(get_item_of_kind(transaction, item_id, kind))
    said = _parse_entry(transaction, without_nulls(fields), zone)
    if "start_at" not in said or "end_at" not in said:
        raise Invalid("start_at and end_at are both needed; for what goes on now, start the timer")
    entry = check_entry(_new_entry(transaction, item, source=EntrySource.MANUAL, **said), transaction.now)
    insert_entry(transaction, entry)
    update_task_totals(transaction, item.id)
    return entry


def change_entry(transaction: PersonTransaction, entry_id: str, fields: Fields, zone: str | None) -> TimeEntry:
    """Change the given fields; an end stops a running timer."""
    transaction.lock_person()
    before = _find_entry(transaction, entry_id)
    said = _parse_entry(transaction, nulls_to_empty(TimeEntry, fields), zone)
    if before.end_at is not None and said.get("end_at", before.end_at) is None:
        raise Invalid("An entry that has ended cannot go on; start the timer again")
    after = replace(before, **said, updated_at=transaction.now)
    return _save_and_recount(
        transaction, after if TIME_FIELDS.keys().isdisjoint(said) else check_entry(after, transaction.now)
    )


def remove_entry(transaction: PersonTransaction, entry_id: str) -> TimeEntry:
    transaction.lock_person()
    gone = _find_entry(transaction, entry_id)
    delete_entry(transaction, gone.id)
    update_task_totals(transaction, gone.timeline_item_id)
    return gone


def _find_entry(transaction: PersonTransaction, entry_id: str) -> TimeEntry:
    return require_found(fetch_entry(transaction, parse_id(entry_id, ENTRY_NAME)), ENTRY_NAME)


def _require_trackable(item: TimelineItem) -> TimelineItem:
    if item.type is ItemType.MEMORY:
        raise Invalid("Time cannot be spent on a memory; track it on a task or an activity")
    return item


def _parse_entry(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    check_field_names(fields, SETTABLE_FIELDS)
    return parse_fields(transaction, fields, zone, TIME_FIELDS)


def _new_entry(
    transaction: PersonTransaction,
    item: TimelineItem,
    start_at: datetime,
    end_at: datetime | None = None,
    note: str = "",
    source: EntrySource = EntrySource.TIMER,
) -> TimeEntry:
    """An entry for this item, with its present title."""
    return TimeEntry(
        id=new_id(transaction.now),
        timeline_item_id=item.id,
        start_at=start_at,
        end_at=end_at,
        source=source,
        note=note,
        item_type=item.type,
        item_title=item.title,
        category_id=item.category_id,
        created_at=transaction.now,
        updated_at=transaction.now,
    )


def _save_and_recount(transaction: PersonTransaction, entry: TimeEntry) -> TimeEntry:
    save_entry(transaction, entry)
    update_task_totals(transaction, entry.timeline_item_id)
    return entry


WEEK_DAYS, MAX_DAYS = 7, 31


class TimeTrackingService:
    """Time entries of one person; the scope says whose. Another person's entry is `NotFound`.

    `kind` is the required kind of the item, if the route names it: a task's route finds no activities.
    """

    def __init__(self, records: PersonDatabase) -> None:
        self._records = records

    async def start(
        self,
        scope: PersonScope,
        item_id: str,
        note: str | None = None,
        auto_switch: bool = False,
        *,
        kind: ItemType | None = None,
    ) -> StartedTimer:
        """Start an item's timer. If another is running, raise `TimerRunning`, or stop it with `auto_switch`."""
        scope.require(rights.TASKS_TIME)
        work = partial(start_timer, item_id=item_id, note=note, auto_switch=auto_switch, kind=kind)
        return await self._records.change(scope, work)

    async def stop(
        self,
        scope: PersonScope,
        item_id: str,
        end_at: str | None = None,
        zone: str | None = None,
        *,
        kind: ItemType | None = None,
    ) -> TimeEntry | None:
        """Stop an item's timer now, or as of `end_at`; None if none is running."""
        scope.require(rights.TASKS_TIME)
        work = partial(stop_timer, item_id=item_id, end_at=end_at, zone=zone, kind=kind)
        return await self._records.change(scope, work)

    async def running(self, scope: PersonScope) -> TimeEntry | None:
        scope.require(rights.TASKS_TIME)
        return await self._records.read(scope, fetch_running_entry)

    async def entries_of_item(
        self,
        scope: PersonScope,
        item_id: str,
        start_date: str | None = None,
        end_date: str | None = None,
        zone: str | None = None,
        *,
        kind: ItemType | None = None,
    ) -> Sequence[TimeEntry]:
        """The entries of an item, all or between these dates, in the order of time."""
        scope.require(rights.TASKS_TIME)
        work = partial(_entries_of_item, item_id=item_id, start=start_date, end=end_date, zone=zone, kind=kind)
        return await self._records.read(scope, work)

    async def add(
        self, scope: PersonScope, item_id: str, fields: Fields, zone: str | None = None, *, kind: ItemType | None = None
    ) -> TimeEntry:
        """Add an entry by hand: `start_at`, `end_at` and an optional `note`."""
        scope.require(rights.TASKS_TIME)
        work = partial(add_entry, item_id=item_id, fields=fields, zone=zone, kind=kind)
        return await self._records.change(scope, work)

    async def change(self, scope: PersonScope, entry_id: str, fields: Fields, zone: str | None = None) -> TimeEntry:
        scope.require(rights.TASKS_TIME)
        return await self._records.change(scope, partial(change_entry, entry_id=entry_id, fields=fields, zone=zone))

    async def remove(self, scope: PersonScope, entry_id: str) -> TimeEntry:
        """Delete an entry; returns it as it was."""
        scope.require(rights.TASKS_TIME)
        return await self._records.change(scope, partial(remove_entry, entry_id=entry_id))

    async def entries_between(
        self, scope: PersonScope, start: str, end: str, zone: str | None = None
    ) -> Sequence[TimeEntry]:
        """All entries that overlap that time."""
        scope.require(rights.TASKS_TIME)
        return await self._records.read(scope, partial(_entries_between, start=start, end=end, zone=zone))

    async def day(self, scope: PersonScope, day: str, zone: str | None = None) -> DaySpending:
        """The time of one day, from midnight to midnight in the zone."""
        scope.require(rights.TASKS_TIME)
        return await self._records.read(scope, partial(_one_day_spending, day=day, zone=zone))

    async def days(
        self, scope: PersonScope, last: str | None = None, count: int = WEEK_DAYS, zone: str | None = None
    ) -> Sequence[DaySpending]:
        """The time of `count` days up to `last` or today, the last day first."""
        scope.require(rights.TASKS_TIME)
        if not 1 <= count <= MAX_DAYS:
            raise Invalid(f"count must be from 1 to {MAX_DAYS}")
        return await self._records.read(scope, partial(_days_spending, last=last, count=count, zone=zone))


def _entries_of_item(
    transaction: PersonTransaction,
    item_id: str,
    start: str | None,
    end: str | None,
    zone: str | None,
    kind: ItemType | None,
) -> Sequence[TimeEntry]:
    item, where = get_item_of_kind(transaction, item_id, kind), find_zone(zone, transaction.zone_name)
    first = parse_time(start, where, "start_date") if start else EARLIEST
    last = parse_end(end, where, "end_date") if end else LATEST
    return list_overlapping(transaction, _forward_span(first, last, "start_date must lie before end_date"), item.id)


def _entries_between(transaction: PersonTransaction, start: str, end: str, zone: str | None) -> Sequence[TimeEntry]:
    where = find_zone(zone, transaction.zone_name)
    first, last = parse_time(start, where, "from"), parse_end(end, where, "to")
    return list_overlapping(transaction, _forward_span(first, last, "from must lie before to"))


def _forward_span(first: datetime, last: datetime, otherwise: str) -> TimeSpan:
    if first >= last:
        raise Invalid(otherwise)
    return TimeSpan(first, last)


def _days_spending(
    transaction: PersonTransaction, last: str | None, count: int, zone: str | None
) -> Sequence[DaySpending]:
    where = find_zone(zone, transaction.zone_name)
    end = parse_day(last, "date") if last else today_in(transaction.now, where)
    count = min(count, end.toordinal() - EARLIEST.toordinal() + 1)
    first = end - timedelta(days=count - 1)
    entries = list_overlapping(transaction, span_of_days(first, where, count))
    names = {one.id: one.name for one in list_categories(transaction)}
    every = (end - timedelta(days=back) for back in range(count))
    return [day_spending(entries, one, where.key, span_of_days(one, where), transaction.now, names) for one in every]


def _one_day_spending(transaction: PersonTransaction, day: str, zone: str | None) -> DaySpending:
    where, of_day = find_zone(zone, transaction.zone_name), parse_day(day, "date")
    span = span_of_days(of_day, where)
    names = {one.id: one.name for one in list_categories(transaction)}
    return day_spending(list_overlapping(transaction, span), of_day, where.key, span, transaction.now, names)
