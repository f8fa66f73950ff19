"""Keeps time: timers started and stopped, entries made by hand, changed and taken away."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from frontdesk.errors import Invalid, NotFound
from frontdesk.loop.text import one_line, storable
from frontdesk.memory import checks
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import known, new_id
from frontdesk.memory.items import store as items
from frontdesk.memory.model import EntrySource, Item, ItemType, TimeEntry
from frontdesk.memory.moments import Edge, moment, zone_of
from frontdesk.memory.store import Mine
from frontdesk.memory.timing import rules, store
from frontdesk.memory.timing.model import Started, TimerRunning

WHAT = "Time entry"
SETTABLE = ("start_at", "end_at", "note")
TIMES = {"start_at": Edge.START, "end_at": Edge.END}


def item_of(mine: Mine, item_id: str, kind: ItemType | None) -> Item:
    """One of the person's own; where a kind is named, what is of another is not there."""
    what = (kind or "item").capitalize()
    found = there(items.get(mine, known(item_id, what)), what)
    if kind is not None and found.type is not kind:
        raise NotFound(f"{what} not found")
    return found


def start(mine: Mine, item_id: str, note: str | None, *, auto_switch: bool, kind: ItemType | None) -> Started:
    mine.hold()
    item = _spendable(item_of(mine, item_id, kind))
    running = store.running(mine)
    if running is not None and running.timeline_item_id == item.id:
        return Started(running, created=False)
    if running is not None and not auto_switch:
        raise TimerRunning(running)
    before = None if running is None else _rewritten(mine, rules.stopped(running, mine.now))
    begun = mine.now if before is None or before.end_at is None else before.end_at
    entry = _entry(mine, item, begun, note=storable(note or ""))
    store.add(mine, entry)
    return Started(entry, created=True, stopped=before)


def stop(mine: Mine, item_id: str, end_at: str | None, zone: str | None, kind: ItemType | None) -> TimeEntry | None:
    mine.hold()
    item = item_of(mine, item_id, kind)
    running = store.running(mine)
    if running is None:
        return None
    if running.timeline_item_id != item.id:
        raise NotFound(f"No timer of this runs, but that of '{one_line(running.item_title, 80)}'; stop that one")
    if end_at is None:
        return _rewritten(mine, rules.stopped(running, mine.now))
    end = moment(end_at, zone_of(zone, mine.zone_name), "end_at", Edge.END)
    return _rewritten(mine, rules.stopped_at(running, end, mine.now))


def add(mine: Mine, item_id: str, fields: Fields, zone: str | None, kind: ItemType | None) -> TimeEntry:
    """Time that was spent without a timer."""
    mine.hold()
    item = _spendable(item_of(mine, item_id, kind))
    said = _said(mine, checks.said(fields), zone)
    if "start_at" not in said or "end_at" not in said:
        raise Invalid("start_at and end_at are both needed; for what goes on now, start the timer")
    entry = rules.checked(_entry(mine, item, source=EntrySource.MANUAL, **said), mine.now)
    store.add(mine, entry)
    store.recount(mine, item.id)
    return entry


def change(mine: Mine, entry_id: str, fields: Fields, zone: str | None) -> TimeEntry:
    """What is given; an end stops a timer that runs."""
    mine.hold()
    before = _found(mine, entry_id)
    said = _said(mine, checks.emptied(TimeEntry, fields), zone)
    if before.end_at is not None and said.get("end_at", before.end_at) is None:
        raise Invalid("An entry that has ended cannot go on; start the timer again")
    after = replace(before, **said, updated_at=mine.now)
    return _rewritten(mine, after if TIMES.keys().isdisjoint(said) else rules.checked(after, mine.now))


def remove(mine: Mine, entry_id: str) -> TimeEntry:
    mine.hold()
    gone = _found(mine, entry_id)
    store.remove(mine, gone.id)
    store.recount(mine, gone.timeline_item_id)
    return gone


def _found(mine: Mine, entry_id: str) -> TimeEntry:
    return there(store.get(mine, known(entry_id, WHAT)), WHAT)


def _spendable(item: Item) -> Item:
    if item.type is ItemType.MEMORY:
        raise Invalid("Time cannot be spent on a memory; track it on a task or an activity")
    return item


def _said(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    checks.known(fields, SETTABLE)
    return taken(mine, fields, zone, TIMES)


def _entry(
    mine: Mine,
    item: Item,
    start_at: datetime,
    end_at: datetime | None = None,
    note: str = "",
    source: EntrySource = EntrySource.TIMER,
) -> TimeEntry:
    """On that item, as it is called now."""
    return TimeEntry(
        id=new_id(mine.now),
        timeline_item_id=item.id,
        start_at=start_at,
        end_at=end_at,
        source=source,
        note=note,
        item_type=item.type,
        item_title=item.title,
        category_id=item.category_id,
        created_at=mine.now,
        updated_at=mine.now,
    )


def _rewritten(mine: Mine, entry: TimeEntry) -> TimeEntry:
    store.write(mine, entry)
    store.recount(mine, entry.timeline_item_id)
    return entry
