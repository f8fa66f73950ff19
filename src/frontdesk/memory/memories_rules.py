"""Checks memories, computes distances, and defines filters and statistics of memories, without I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import asin, cos, degrees, pi, radians, sin, sqrt

from frontdesk.errors import Invalid
from frontdesk.memory.model import Anchor, ItemStatus, ItemType, Memory, MemoryStatus, MemoryType, TimelineItem
from frontdesk.memory.validation import check_length, check_range
from frontdesk.text import one_line


class MemorySort(StrEnum):
    """How to sort memories. A memory without its own time happened when it was captured."""

    CAPTURED_AT = "captured_at"
    HAPPENED_AT = "happened_at"
    SALIENCE_SCORE = "salience_score"
    EMOTION_VALENCE = "emotion_valence"
    UPDATED_AT = "updated_at"
    CREATED_AT = "created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """A filter of memories. Times are as people write them, in `timezone`; a category is given by its name or id.

    `search` finds words as they are written, not meanings. `among` limits the result to these ids.
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
    """Statistics of the listed memories. Superseded and expired memories are counted separately."""

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
class AnchoredMemory:
    """A memory that is anchored to an item, with the anchor."""

    anchor: Anchor
    memory: Memory


EARTH_KM = 6371.0088
MAX_DISTANCE_KM = EARTH_KM * pi
DEFAULT_DISTANCE_KM = 10.0
# A margin for rounding at the edge of a box.
SLACK_KM = 0.001


@dataclass(frozen=True, slots=True)
class SearchArea:
    """A place and a distance around it."""

    latitude: float
    longitude: float
    km: float


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """A box around a circle on the globe. `west` is greater than `east` if the box crosses the date line."""

    south: float
    north: float
    west: float
    east: float


def parse_search_area(latitude: float | None, longitude: float | None, km: float | None) -> SearchArea | None:
    """The area to search in, if any of its values is given."""
    if latitude is None and longitude is None and km is None:
        return None
    if latitude is None or longitude is None:
        raise Invalid("near_lat and near_lng belong together: give both, and distance_km if it is not 10")
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise Invalid("near_lat must be from -90 to 90, and near_lng from -180 to 180")
    if km is not None and not km > 0:
        raise Invalid("distance_km must be more than 0")
    return SearchArea(latitude, longitude, min(DEFAULT_DISTANCE_KM if km is None else km, MAX_DISTANCE_KM))


def distance_km(a_latitude: float, a_longitude: float, b_latitude: float, b_longitude: float) -> float:
    """The distance on the globe (haversine)."""
    a, b = radians(a_latitude), radians(b_latitude)
    apart = sin((b - a) / 2) ** 2 + cos(a) * cos(b) * sin(radians(b_longitude - a_longitude) / 2) ** 2
    return 2 * EARTH_KM * asin(sqrt(min(1.0, apart)))


def bounding_box(place: SearchArea) -> BoundingBox:
    """A box that has the whole area in it, and a little more."""
    angle = (place.km + SLACK_KM) / EARTH_KM
    south, north = place.latitude - degrees(angle), place.latitude + degrees(angle)
    if south <= -90 or north >= 90:
        return BoundingBox(max(south, -90), min(north, 90), -180, 180)
    across = degrees(asin(min(1.0, sin(angle) / cos(radians(place.latitude)))))
    if across >= 90:
        return BoundingBox(south, north, -180, 180)
    return BoundingBox(
        south, north, _wrap_longitude(place.longitude - across), _wrap_longitude(place.longitude + across)
    )


def is_near(place: SearchArea, latitude: float, longitude: float) -> bool:
    return distance_km(place.latitude, place.longitude, latitude, longitude) <= place.km


def _wrap_longitude(longitude: float) -> float:
    """A longitude between -180 and 180."""
    return (longitude + 180) % 360 - 180


MAX_TITLE, MAX_MADE_TITLE, MAX_PLACE = 500, 80, 300
ITEM_STATUSES = {
    MemoryStatus.ACTIVE: ItemStatus.ACTIVE,
    MemoryStatus.ARCHIVED: ItemStatus.ARCHIVED,
    MemoryStatus.DELETED: ItemStatus.DELETED,
}
BOUNDS = {
    "emotion_valence": (-5, 5),
    "emotion_arousal": (0, 5),
    "energy_delta": (-5, 5),
    "salience_score": (0, 1),
    "latitude": (-90, 90),
    "longitude": (-180, 180),
}


def title_from_note(note: str) -> str:
    """The first line that is not empty."""
    return next((one_line(line, MAX_MADE_TITLE) for line in note.splitlines() if line.strip()), "")


def with_title(memory: Memory) -> Memory:
    """The memory with a title. A missing one is made from the note."""
    return memory if memory.title.strip() else replace(memory, title=title_from_note(memory.note))


def check_memory(memory: Memory) -> Memory:
    """Return the memory if it is valid."""
    if not memory.title.strip():
        raise Invalid("A memory needs a note that says something, or a title at least")
    check_length(memory, "title", MAX_TITLE)
    check_length(memory, "place_name", MAX_PLACE)
    for name, (least, most) in BOUNDS.items():
        check_range(memory, name, least, most)
    if (memory.latitude is None) is not (memory.longitude is None):
        raise Invalid("latitude and longitude belong together: give both or neither")
    _check_happened(memory)
    return memory


def is_current(memory: Memory, now: datetime) -> bool:
    """Whether a memory is neither superseded nor expired."""
    return memory.superseded_by is None and (memory.expires_at is None or memory.expires_at > now)


def item_from_memory(memory: Memory, was: TimelineItem | None = None) -> TimelineItem:
    """The timeline item of a memory. Fields that a memory does not have stay as they were."""
    made = TimelineItem(
        id=memory.id,
        type=ItemType.MEMORY,
        title=memory.title,
        start_time=memory.happened_start or memory.captured_at,
        end_time=memory.happened_end,
        is_time_consuming=False,
        category_id=memory.category_id,
        tags=memory.tags,
        status=ITEM_STATUSES[memory.status],
        metadata=memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )
    if was is None:
        return made
    return replace(made, priority=was.priority, render_on_timeline=was.render_on_timeline)


def memory_text(memory: Memory) -> str:
    """The text under which a memory is indexed."""
    own = [] if memory.note.startswith(memory.title.rstrip("…")) else [memory.title]
    return "\n".join(part for part in (*own, memory.note, memory.place_name, " ".join(memory.tags)) if part)


def _check_happened(memory: Memory) -> None:
    start, end = memory.happened_start, memory.happened_end
    if end is not None and start is None:
        raise Invalid("What has an end has a start: give happened_range.start too")
    if start is not None and end is not None and end <= start:
        raise Invalid("happened_range.end must be after happened_range.start")
