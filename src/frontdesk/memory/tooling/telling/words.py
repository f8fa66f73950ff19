"""What the sentences are made of: times on the person's clock, lengths, counts, and lists that tell what is missing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

from frontdesk.loop.text import one_line
from frontdesk.memory.given import Page

T = TypeVar("T")
HOUR = 60
SHOWN = 300


def when(at: datetime, zone: ZoneInfo) -> str:
    """`Fri 2026-11-20 09:00 CET`."""
    local = at.astimezone(zone)
    return f"{local:%a %Y-%m-%d %H:%M} {local.tzname()}"


def span(start: datetime, end: datetime | None, zone: ZoneInfo) -> str:
    """From when to when; the day is said once where it is the same."""
    if end is None:
        return f"since {when(start, zone)}"
    first, last = start.astimezone(zone), end.astimezone(zone)
    if first.date() == last.date():
        return f"{first:%a %Y-%m-%d %H:%M}-{last:%H:%M} {last.tzname()}"
    return f"{when(start, zone)} to {when(end, zone)}"


def placed(start: datetime, end: datetime | None, zone: ZoneInfo) -> str:
    """When something was, of which the end may not be known."""
    return when(start, zone) if end is None else span(start, end, zone)


def length(minutes: int) -> str:
    """`45 min`, `2 h`, `1 h 25 min`."""
    hours, rest = divmod(minutes, HOUR)
    return " ".join(
        part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else "") if part
    )


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def about(parts: Iterable[str | None]) -> str:
    """What there is to say, one thing after another."""
    return ", ".join(part for part in parts if part)


def more(label: str, text: str | None) -> str:
    """A line of its own for a longer text, or nothing."""
    return f"{label}: {one_line(text, SHOWN)}" if text else ""


def whole(label: str, text: str | None) -> str:
    """A longer text as it is."""
    return f"{label}: {text}" if text else ""


def tagged(tags: Sequence[str]) -> str:
    return f"tags {'/'.join(tags)}" if tags else ""


def lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def listed(page: Page[T], tell: Callable[[T], str], noun: str, plural: str = "", *, none: str) -> str:
    """How many there are, which of them these are, and how to get the next; or what to do where there are none."""
    if not page.total:
        return none
    every, last = count(page.total, noun, plural), page.offset + len(page.items)
    if not page.items:
        return f"{every} in all, but none from offset {page.offset} on; begin again with offset 0"
    following = f"; offset {last} for more" if page.has_more else ""
    where = f"showing {page.offset + 1}-{last} of {page.total:,}{following}"
    return lines(f"{every}, {where}:", *map(tell, page.items))


def tallied(title: str, counts: Mapping[str, int]) -> str:
    """`By status: pending 3, completed 1`; what there is none of goes unsaid."""
    said = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number)
    return f"{title}: {said}" if said else ""
