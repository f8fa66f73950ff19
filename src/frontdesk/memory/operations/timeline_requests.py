"""Defines what can be asked about memories, activities, the timeline and categories.

Requests over MCP and of the built-in agents come first, then those of the HTTP API where they differ.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import override

from frontdesk.memory.model import (
    ActivityStatus,
    ActivityType,
    AnchorRelation,
    Intensity,
    ItemType,
    MemoryStatus,
    MemoryType,
    Priority,
    SearchMode,
)
from frontdesk.memory.operations.base import (
    Arousal,
    IdText,
    JsonMetadata,
    Latitude,
    ListQuery,
    Longitude,
    LongText,
    MemoryRequest,
    MinusFiveToFive,
    Minutes,
    OneToTen,
    PagedRequest,
    Salience,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    WordList,
    ZoneName,
    split_words,
)

MAX_TITLE = 500
ShownItemStatus = Literal["active", "inactive", "completed", "cancelled", "archived"]
COLOUR_PATTERN = r"^#[0-9A-Fa-f]{6}$"


class HappenedRange(MemoryRequest):
    """A range of time."""

    start: TimeText
    end: TimeText | None = None


class MemoryFields(MemoryRequest):
    """The fields of a memory."""

    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    memory_type: MemoryType | None = None
    emotion_valence: MinusFiveToFive | None = Field(None, description="From -5, very bad, to 5, very good.")
    emotion_arousal: Arousal | None = Field(None, description="From 0, calm, to 5, stirred.")
    energy_delta: MinusFiveToFive | None = Field(None, description="What it took (-5) or gave (5).")
    place_name: ShortText | None = None
    is_highlight: bool | None = None
    salience_score: Salience | None = Field(None, description="How much it matters, from 0 to 1.")
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    tags: Tags | None = None
    expires_at: TimeText | None = Field(None, description="When it is no longer true; it is kept, and no longer found.")


class MemoryContextFields(MemoryFields):
    """The fields of a memory, with its place and times."""

    latitude: Latitude | None = None
    longitude: Longitude | None = None
    happened_range: HappenedRange | None = Field(None, description="When it happened, if not when it was captured.")
    captured_at: TimeText | None = None
    supersedes: IdText | None = Field(
        None, description="The id of a memory that this one replaces: that one is kept, and no longer found."
    )

    @override
    def provided(self, *but: str) -> Mapping[str, Any]:
        return _split_happened_range(super().provided(*but))

    @override
    def changes(self, *but: str) -> Mapping[str, Any]:
        return _split_happened_range(super().changes(*but))


class AddMemory(MemoryContextFields):
    """A new memory."""

    note: LongText = Field(min_length=1, description="What is to be remembered, understandable by itself.")


class UpdateMemory(MemoryFields):
    """Changes of a memory."""

    id: IdText
    note: LongText | None = Field(None, min_length=1)


class MemoryContent(MemoryContextFields):
    """A memory as apps write it, with a title, a note or both; null removes a value."""

    note: LongText | None = None
    description: LongText | None = Field(None, description="Another name for the note.")
    status: MemoryStatus | None = None
    metadata: JsonMetadata | None = None


class AnchorContent(MemoryRequest):
    """An anchor of a memory to a task, an activity or another item. The same relation again is a change."""

    anchor_item_id: IdText
    relation: AnchorRelation | None = Field(None, description="about, unless said otherwise.")
    local_start: TimeText | None = None
    local_end: TimeText | None = None
    weight: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    notes: LongText | None = None


class SearchMemories(PagedRequest):
    """Filters of memories."""

    memory_type: MemoryType | None = None
    status: MemoryStatus | None = None
    is_highlight: bool | None = None
    search: ShortText | None = Field(
        None, description="What they are about, in plain words: found by words and meaning."
    )
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    place_name: ShortText | None = None
    min_emotion_valence: MinusFiveToFive | None = None
    max_emotion_valence: MinusFiveToFive | None = None
    min_salience: Salience | None = None
    captured_from: TimeText | None = None
    captured_to: TimeText | None = None
    near_lat: Latitude | None = None
    near_lng: Longitude | None = None
    distance_km: float | None = Field(None, gt=0, le=20_100, allow_inf_nan=False)
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    sort_by: Literal["captured_at", "happened_at", "salience_score", "emotion_valence", "updated_at"] | None = Field(
        None, description="The best match first where `search` is given, otherwise the last captured."
    )
    sort_order: SortOrder = "desc"


def _split_happened_range(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Split the range of time into its two ends."""
    if "happened_range" not in fields:
        return fields
    happened: Mapping[str, Any] = fields["happened_range"] or {}
    others = {name: value for name, value in fields.items() if name != "happened_range"}
    return {**others, "happened_start": happened.get("start"), "happened_end": happened.get("end")}


class ActivityFields(MemoryRequest):
    """The fields of an activity; moods, energies and satisfaction go from 1 to 10."""

    description: LongText | None = None
    ended_at: TimeText | None = None
    mood_after: OneToTen | None = None
    energy_after: OneToTen | None = None
    satisfaction_level: OneToTen | None = None
    intensity_level: Intensity | None = None
    notes: LongText | None = None
    insights: LongText | None = None
    gratitude: LongText | None = None
    status: ActivityStatus | None = None
    tags: Tags | None = None


class ActivityDetailFields(ActivityFields):
    """The same, with how it began, where, and with whom."""

    started_at: TimeText | None = None
    duration_minutes: Minutes | None = None
    mood_before: OneToTen | None = None
    energy_before: OneToTen | None = None
    location: ShortText | None = None
    weather: ShortText | None = None
    companions: Tags | None = None
    category_id: ShortText | None = Field(None, description="A category's id or name.")


class CreateActivity(ActivityDetailFields):
    """A new activity."""

    title: str = Field(min_length=1, max_length=MAX_TITLE)
    activity_type: ActivityType
    status: ActivityStatus | None = Field(None, description="completed, unless said otherwise.")


class UpdateActivity(ActivityFields):
    """Changes of an activity."""

    id: IdText
    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    activity_type: ActivityType | None = None


class NewActivityContent(CreateActivity):
    """A new activity as apps write it."""

    metadata: JsonMetadata | None = None


class ActivityContent(ActivityDetailFields):
    """Changes of an activity as apps write them; null removes a value."""

    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    activity_type: ActivityType | None = None
    metadata: JsonMetadata | None = None


class SearchActivities(PagedRequest):
    """Filters of activities."""

    activity_type: ActivityType | None = None
    status: ActivityStatus | None = None
    intensity_level: Intensity | None = None
    min_satisfaction: OneToTen | None = None
    min_mood_after: OneToTen | None = None
    location: ShortText | None = None
    from_: TimeText | None = Field(None, alias="from", description="Begun on or after this.")
    to: TimeText | None = Field(None, description="Begun on or before this.")
    search: ShortText | None = None
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    sort_by: Literal["started_at", "satisfaction_level", "mood_after", "title", "created_at"] = "started_at"
    sort_order: SortOrder = "desc"


class GetTimelineItems(MemoryRequest):
    """Filters of timeline items."""

    type: ItemType | None = None
    status: ShownItemStatus | None = None
    priority: Priority | None = None
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    search: ShortText | None = None
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    is_highlight: bool | None = None
    memory_type: MemoryType | None = None
    render_on_timeline: bool | None = None
    sort_by: Literal["created_at", "updated_at", "title", "priority", "captured_at", "salience_score"] = "created_at"
    sort_order: SortOrder = "desc"
    limit: int = Field(50, ge=1, le=100)
    offset: int = Field(0, ge=0, le=10_000_000)


class ItemFields(MemoryRequest):
    """The fields of a timeline item."""

    description: LongText | None = None
    start_time: TimeText | None = None
    end_time: TimeText | None = None
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    tags: Tags | None = None
    status: ShownItemStatus | None = None
    priority: Priority | None = None
    metadata: JsonMetadata | None = None


class CreateTimelineItem(ItemFields):
    """A new item. A task, memory or activity is created as such."""

    type: ItemType
    title: str = Field(min_length=1, max_length=500)


class ItemContent(ItemFields):
    """Changes of an item as apps write them; null removes a value."""

    title: str | None = Field(None, min_length=1, max_length=500)
    is_time_consuming: bool | None = None
    render_on_timeline: bool | None = None


class GetTimelineInsights(MemoryRequest):
    """The range of time."""

    date_range: Literal["today", "week", "month", "quarter", "year"] = "week"
    timezone: ZoneName | None = None


class SearchAcrossTimeline(MemoryRequest):
    """A search in all records."""

    query: str = Field(min_length=1, max_length=2000, description="What it is about, in plain words.")
    include_types: list[ItemType] | None = Field(None, max_length=5)
    date_from: TimeText | None = None
    date_to: TimeText | None = None
    context_depth: int = Field(2, ge=1, le=5, description="How much of what lies around each match to show.")
    limit: int = Field(20, ge=1, le=100)


class CategoryFields(MemoryRequest):
    """The fields of a category."""

    color: str | None = Field(None, pattern=COLOUR_PATTERN, description="#RRGGBB")
    description: LongText | None = None
    icon: Annotated[str, Field(max_length=100)] | None = None


class CreateCategory(CategoryFields):
    """A new category."""

    name: str = Field(min_length=1, max_length=50)


class UpdateCategory(CategoryFields):
    """Changes of a category."""

    id: IdText = Field(description="Its id, or its name.")
    name: str | None = Field(None, min_length=1, max_length=50)


class CategoryContent(CategoryFields):
    """Changes of a category as apps write them."""

    name: str | None = Field(None, min_length=1, max_length=50)


class CategoryRequest(MemoryRequest):
    """One category."""

    id: IdText = Field(description="Its id, or its name.")


class MemoryQuery(ListQuery, SearchMemories, extra="ignore"):
    """Which memories."""

    include_superseded: bool = False
    include_expired: bool = False


class ActivityQuery(ListQuery, SearchActivities, extra="ignore"):
    """Which activities."""

    def filter_fields(self) -> Mapping[str, Any]:
        """The given filter fields, by the names of the filter."""
        names = {"from_": "started_from", "to": "started_to"}
        return {names.get(name, name): value for name, value in self.provided().items()}


class ItemQuery(ListQuery, GetTimelineItems, extra="ignore"):
    """Which timeline items."""

    date_from: TimeText | None = None
    date_to: TimeText | None = None


class ItemSearchQuery(MemoryRequest, extra="ignore"):
    """A search in items."""

    q: Annotated[LongText, Field(min_length=1, max_length=2000, description="What it is about, in plain words.")]
    search_type: SearchMode = Field(SearchMode.HYBRID, description="By words, by meaning, or by both together.")
    date_from: TimeText | None = None
    date_to: TimeText | None = None
    timezone: ZoneName | None = None
    limit: int = Field(20, ge=1, le=100, description="At most so many.")


class MemorySearchQuery(ItemSearchQuery):
    """A search in memories."""

    memory_type: MemoryType | None = None
    is_highlight: bool | None = None
    tags: WordList | None = Field(None, description="One of these at least, with commas between them.")
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    min_salience: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)


class TimelineSearchQuery(ItemSearchQuery):
    """A search in all records."""

    include_types: Annotated[list[ItemType], BeforeValidator(split_words)] | None = Field(
        None, max_length=5, description="Of these kinds alone, with commas between them."
    )
    context_depth: int = Field(2, ge=1, le=5, description="How much of what lies around each match to show.")


class InsightQuery(GetTimelineInsights, extra="ignore"):
    """The length of time to look at."""


class MemoryIdRequest(MemoryRequest):
    """A memory, by its id."""

    memory_id: str


class RemoveAnchorRequest(MemoryIdRequest):
    """The anchors of a memory to an item, or the one of a relation."""

    item_id: str
    relation: AnchorRelation | None = None


class ActivityIdRequest(MemoryRequest):
    """An activity, by its id."""

    activity_id: str


class ItemIdRequest(MemoryRequest):
    """A timeline item, by its id."""

    item_id: str


class CategoryIdRequest(MemoryRequest):
    """A category, by its id or its name."""

    category_id: str
