"""Which items of the timeline are wanted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.memory.model import ItemStatus, ItemType, MemoryType, Priority


class TimelineSort(StrEnum):
    """By what items are put in order; where that is said of memories alone, all others come after them."""

    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    TITLE = "title"
    PRIORITY = "priority"
    CAPTURED_AT = "captured_at"
    SALIENCE_SCORE = "salience_score"
    START_TIME = "start_time"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item stands in the order in which they were made."""

    at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineWanted:
    """What lies, in part at least, between `date_from` and `date_to`: times as people write them, in `timezone`."""

    type: ItemType | None = None
    status: ItemStatus | None = None
    priority: Priority | None = None
    category_id: str | None = None
    search: str | None = None
    tags: Sequence[str] = ()
    every_tag: bool = False
    is_highlight: bool | None = None
    memory_type: MemoryType | None = None
    render_on_timeline: bool | None = None
    date_from: str | None = None
    date_to: str | None = None
    sort_by: str = TimelineSort.CREATED_AT
    sort_order: str = "desc"
    limit: int = 50
    offset: int = 0
    timezone: str | None = None
