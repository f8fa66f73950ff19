"""What somebody sees who looks at all schedules: lists that go on, and times around now."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from frontdesk.errors import Invalid
from frontdesk.schedule.model import Past, Schedule, Standing, Trigger

SHAPE = re.compile(r"(\d{1,18})\.(\d{1,16})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a list by next times goes on: after this schedule, which fires then."""

    fire_us: int
    id: int

    def __str__(self) -> str:
        return f"{self.fire_us}.{self.id}"

    @classmethod
    def read(cls, text: str) -> "Turn":
        found = SHAPE.fullmatch(text.strip())
        if found is None:
            raise Invalid("`after` is where the page before ended; begin the list anew")
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class Coming:
    """Schedules that will fire, the next one first; `next` is where the list goes on, None at the end."""

    schedules: Sequence[Schedule]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Newest:
    """Schedules by their numbers, the newest first; `next` goes into `before`."""

    schedules: Sequence[Schedule]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """Runs that are over, the last one first; `next` goes into `before`, and may be there though nothing was found."""

    runs: Sequence[Past]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A schedule that will fire at `fire_us`, with the rule by which it may fire again."""

    fire_us: int
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Around:
    """What fires after now and what ended before; `more` where there are so many that some are left out."""

    ahead: Sequence[int] = ()
    behind: Sequence[tuple[int, Standing]] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class Newer:
    """What is different once something happened: the last end of a run, the newest schedule, and what fires next."""

    ended_us: int
    schedule_id: int
    coming: Sequence[tuple[int, int]]

    @property
    def mark(self) -> str:
        """The same in a word."""
        return f"{self.ended_us}.{self.schedule_id}.{crc32(repr(self.coming).encode()):08x}"


@dataclass(frozen=True, slots=True)
class Sent:
    """A run as whoever finds its id elsewhere wants to know it."""

    run_id: str
    schedule_id: int
    agent_id: str
