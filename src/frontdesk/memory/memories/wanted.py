"""Which memories are wanted, and what is told of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.memory.model import Anchor, Memory, MemoryStatus, MemoryType


class MemorySort(StrEnum):
    """By what memories are put in order; one without a time of its own happened when it was captured."""

    CAPTURED_AT = "captured_at"
    HAPPENED_AT = "happened_at"
    SALIENCE_SCORE = "salience_score"
    EMOTION_VALENCE = "emotion_valence"
    UPDATED_AT = "updated_at"
    CREATED_AT = "created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWanted:
    """Times are as people write them, in `timezone`; a category is named, or given by its id.

    `search` is for words that occur; what is meant is found by `recall`. `among` are the ids of those that may be.
    """

    memory_type: MemoryType | None = None
    status: MemoryStatus = MemoryStatus.ACTIVE
    is_highlight: bool | None = None
    search: str | None = None
    tags: Sequence[str] = ()
    every_tag: bool = False
    place_name: str | None = None
    min_emotion_valence: int | None = None
    max_emotion_valence: int | None = None
    min_salience: float | None = None
    captured_from: str | None = None
    captured_to: str | None = None
    near_lat: float | None = None
    near_lng: float | None = None
    distance_km: float | None = None
    category_id: str | None = None
    among: Sequence[str] | None = None
    include_superseded: bool = False
    include_expired: bool = False
    sort_by: str = MemorySort.CAPTURED_AT
    sort_order: str = "desc"
    limit: int = 50
    offset: int = 0
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStats:
    """Of the memories that are listed; those that were superseded or have expired are counted apart."""

    total: int
    superseded: int
    expired: int
    by_type: Mapping[str, int]
    by_status: Mapping[str, int]
    highlights: int
    average_valence: float | None
    average_salience: float | None
    by_place: Mapping[str, int]
    by_tag: Mapping[str, int]
    this_week: int
    this_month: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """A memory that is anchored to an item, and how."""

    anchor: Anchor
    memory: Memory
