"""Time that was spent, in words."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.loop.text import one_line
from frontdesk.memory.model import TimeEntry
from frontdesk.memory.timing.model import DaySpending, Spent
from frontdesk.memory.tooling.telling.words import SHOWN, count, length, lines, span

MOST = 20


def entry_told(entry: TimeEntry, zone: ZoneInfo) -> str:
    """What, from when to when, how long."""
    return f"{entry.item_title} ({entry.item_type} {entry.timeline_item_id}): {_stretch(entry, zone)}"


def entries_told(entries: Sequence[TimeEntry], minutes: int, zone: ZoneInfo) -> str:
    """The stretches on one item."""
    if not entries:
        return "No time was tracked on this task; start_task_timer begins with it."
    head = f"{length(minutes)} in {count(len(entries), 'entry', 'entries')} on {entries[0].item_title}:"
    return lines(head, *(f"- {_stretch(entry, zone)}" for entry in entries))


def day_told(spending: DaySpending) -> str:
    """A day, by what it went into."""
    head = f"{spending.day:%a %Y-%m-%d} ({spending.zone})"
    if not spending.entries:
        return f"{head}: no time was tracked."
    zone = zones.there(spending.zone)
    return lines(
        f"{head}: {length(spending.total_minutes)} in {count(len(spending.entries), 'entry', 'entries')}",
        *_spent("By category", spending.by_category),
        *_spent("By item", spending.by_item),
        "Entries:",
        *(f"- {entry_told(entry, zone)}" for entry in spending.entries[:MOST]),
        f"and {len(spending.entries) - MOST} more" if len(spending.entries) > MOST else "",
    )


def _stretch(entry: TimeEntry, zone: ZoneInfo) -> str:
    long = "still running" if entry.duration_minutes is None else length(entry.duration_minutes)
    note = f" ({one_line(entry.note, SHOWN)})" if entry.note else ""
    return f"{span(entry.start_at, entry.end_at, zone)}, {long}{note}"


def _spent(title: str, spent: Sequence[Spent]) -> list[str]:
    return [f"{title}:", *(f"- {one.name}: {length(one.minutes)}" for one in spent[:MOST])] if spent else []
