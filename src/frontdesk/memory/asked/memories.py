"""What is asked about memories."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import override

from frontdesk.memory.asked.common import (
    Arousal,
    Asked,
    Five,
    Id,
    Latitude,
    Line,
    Longitude,
    Metadata,
    Order,
    Paged,
    Salience,
    Tags,
    Text,
    When,
)
from frontdesk.memory.model import AnchorRelation, MemoryStatus, MemoryType

TITLE = 500


class HappenedRange(Asked):
    """From when to when."""

    start: When
    end: When | None = None


class MemoryFields(Asked):
    """What can be said of a memory."""

    title: str | None = Field(None, min_length=1, max_length=TITLE)
    memory_type: MemoryType | None = None
    emotion_valence: Five | None = Field(None, description="From -5, very bad, to 5, very good.")
    emotion_arousal: Arousal | None = Field(None, description="From 0, calm, to 5, stirred.")
    energy_delta: Five | None = Field(None, description="What it took (-5) or gave (5).")
    place_name: Line | None = None
    is_highlight: bool | None = None
    salience_score: Salience | None = Field(None, description="How much it matters, from 0 to 1.")
    category_id: Line | None = Field(None, description="A category's id or name.")
    tags: Tags | None = None
    expires_at: When | None = Field(None, description="When it is no longer true; it is kept, and no longer found.")


class MemoryWhereabouts(MemoryFields):
    """And where and when it was."""

    latitude: Latitude | None = None
    longitude: Longitude | None = None
    happened_range: HappenedRange | None = Field(None, description="When it happened, if not when it was captured.")
    captured_at: When | None = None
    supersedes: Id | None = Field(
        None, description="The id of a memory that this one replaces: that one is kept, and no longer found."
    )

    @override
    def said(self, *but: str) -> Mapping[str, Any]:
        return _apart(super().said(*but))

    @override
    def changes(self, *but: str) -> Mapping[str, Any]:
        return _apart(super().changes(*but))


class AddMemory(MemoryWhereabouts):
    """Something to be remembered."""

    note: Text = Field(min_length=1, description="What is to be remembered, understandable by itself.")


class UpdateMemory(MemoryFields):
    """What is to be different."""

    id: Id
    note: Text | None = Field(None, min_length=1)


class MemoryContent(MemoryWhereabouts):
    """A memory as apps write it, with a title, a note or both; null takes a thing away."""

    note: Text | None = None
    description: Text | None = Field(None, description="Another name for the note.")
    status: MemoryStatus | None = None
    metadata: Metadata | None = None


class AnchorContent(Asked):
    """A memory tied to a task, an activity or another item; once more with the same relation is a change."""

    anchor_item_id: Id
    relation: AnchorRelation | None = Field(None, description="about, unless said otherwise.")
    local_start: When | None = None
    local_end: When | None = None
    weight: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    notes: Text | None = None


class SearchMemories(Paged):
    """Which memories."""

    memory_type: MemoryType | None = None
    status: MemoryStatus | None = None
    is_highlight: bool | None = None
    search: Line | None = Field(None, description="What they are about, in plain words: found by words and meaning.")
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    place_name: Line | None = None
    min_emotion_valence: Five | None = None
    max_emotion_valence: Five | None = None
    min_salience: Salience | None = None
    captured_from: When | None = None
    captured_to: When | None = None
    near_lat: Latitude | None = None
    near_lng: Longitude | None = None
    distance_km: float | None = Field(None, gt=0, le=20_100, allow_inf_nan=False)
    category_id: Line | None = Field(None, description="A category's id or name.")
    sort_by: Literal["captured_at", "happened_at", "salience_score", "emotion_valence", "updated_at"] | None = Field(
        None, description="The best match first where `search` is given, otherwise the last captured."
    )
    sort_order: Order = "desc"


def _apart(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The range of time as its two ends."""
    if "happened_range" not in fields:
        return fields
    happened: Mapping[str, Any] = fields["happened_range"] or {}
    others = {name: value for name, value in fields.items() if name != "happened_range"}
    return {**others, "happened_start": happened.get("start"), "happened_end": happened.get("end")}
