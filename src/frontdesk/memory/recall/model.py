"""The words of search: what is asked of a person's records, and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.memory.model import Item, ItemStatus, ItemType, MemoryType

LIMIT, MOST = 20, 100


class Way(StrEnum):
    """By what it is looked for: by words and meaning together, or by one of them alone."""

    HYBRID = "hybrid"
    FULL_TEXT = "full_text"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for, and among what. Times are as people write them, in `zone`, and those of the items.

    Without `statuses`, what is neither deleted nor archived. The last seven are of memories, and find nothing else;
    those that were superseded or have expired are found only when asked for.
    """

    text: str
    types: frozenset[ItemType] | None = None
    limit: int = LIMIT
    how: Way = Way.HYBRID
    date_from: str | None = None
    date_to: str | None = None
    zone: str | None = None
    category: str | None = None
    tags: Sequence[str] = ()
    every_tag: bool = False
    statuses: frozenset[ItemStatus] | None = None
    include_superseded: bool = False
    include_expired: bool = False
    memory_type: MemoryType | None = None
    is_highlight: bool | None = None
    place_name: str | None = None
    min_salience: float | None = None
    min_emotion_valence: int | None = None
    max_emotion_valence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An item that was found: how well it fits, from 0 to 1, the words it shares, and how near its meaning is.

    `text` is what it was found by. `beside` are words that only its neighbours hold: a memory is found by what was
    written down right before and after it, too.
    """

    item: Item
    text: str
    score: float
    words: Sequence[str] = ()
    meaning: float | None = None
    beside: Sequence[str] = ()

    @property
    def why(self) -> str:
        said = [
            f"words: {', '.join(self.words)}" if self.words else "",
            f"meaning {100 * self.meaning:.0f} of 100" if self.meaning is not None and self.meaning >= 0.01 else "",
            f"beside what says: {', '.join(self.beside)}" if self.beside else "",
        ]
        return "; ".join(part for part in said if part) or "little speaks for it"


class Tie(StrEnum):
    """What an item near another is to it."""

    BEFORE = "before"
    AFTER = "after"
    ANCHORED = "anchored"
    RELATED = "related"


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """An item near another: written down around it, anchored to it, or tied to it as a task."""

    item: Item
    tie: Tie
