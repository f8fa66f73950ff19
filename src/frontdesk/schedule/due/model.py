"""What a worker asks of the database, and what it hands back."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from frontdesk.schedule.model import Occurrence, Standing, Whose


class Lease(NamedTuple):
    """Who holds an occurrence, and until when; each renewal makes it another."""

    id: str
    owner: str | None
    until_us: int


@dataclass(frozen=True, slots=True)
class Ask:
    """So many occurrences to run, and what the asking worker knows.

    `dead` are owners that are surely gone. A lease that is past its end has run out where it was left alone, and not
    where its owner may be about to renew it. `due_by_us`: nothing that is due later.
    """

    places: int
    dead: Collection[str] = ()
    left_alone: Callable[[Lease], bool] = lambda _: True
    whose: Whose = field(default_factory=Whose)
    due_by_us: int | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """How an attempt ended. What goes on waiting does so for `wait_us`; not `counted`, the attempt does not count."""

    occurrence: Occurrence
    standing: Standing
    took_us: int
    answer: str | None = None
    error: str | None = None
    wait_us: int = 0
    counted: bool = True
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What one transaction did: `kept` are those whose end was still theirs to tell, `next_us` is when to look next."""

    now_us: int
    kept: Sequence[Settled]
    claimed: Sequence[Occurrence]
    next_us: int | None
