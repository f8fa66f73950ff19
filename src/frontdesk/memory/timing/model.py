"""The words of timing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from frontdesk.errors import Conflict
from frontdesk.loop.text import one_line
from frontdesk.memory.model import TimeEntry
from frontdesk.memory.moments import Span


class TimerRunning(Conflict):
    """Another timer runs, and a person has one at a time; `running` is its entry."""

    def __init__(self, running: TimeEntry) -> None:
        super().__init__(
            f"The timer of '{one_line(running.item_title, 80)}' ({running.timeline_item_id}) is running; stop it "
            "first, or switch over to this one"
        )
        self.running = running


@dataclass(frozen=True, slots=True)
class Started:
    """The entry that runs, whether it was made just now, and the one that was stopped for it."""

    entry: TimeEntry
    created: bool
    stopped: TimeEntry | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """Time that went into an item or a category; what is under no category has no id."""

    id: str | None
    name: str
    minutes: int
    entries: int


@dataclass(frozen=True, slots=True)
class DaySpending:
    """Where a day went. Its entries are cut off at its edges; one that still runs counts until now."""

    day: date
    zone: str
    span: Span
    total_minutes: int
    by_item: Sequence[Spent]
    by_category: Sequence[Spent]
    entries: Sequence[TimeEntry]
