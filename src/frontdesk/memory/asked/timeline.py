"""What is asked about the timeline and about categories."""

from typing import Annotated, Literal

from pydantic import Field

from frontdesk.memory.asked.common import Asked, Id, Line, Metadata, Order, Tags, Text, When, Zone
from frontdesk.memory.model import ItemType, MemoryType, Priority

Standing = Literal["active", "inactive", "completed", "cancelled", "archived"]
COLOUR = r"^#[0-9A-Fa-f]{6}$"


class GetTimelineItems(Asked):
    """Which items."""

    type: ItemType | None = None
    status: Standing | None = None
    priority: Priority | None = None
    category_id: Line | None = Field(None, description="A category's id or name.")
    search: Line | None = None
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    is_highlight: bool | None = None
    memory_type: MemoryType | None = None
    render_on_timeline: bool | None = None
    sort_by: Literal["created_at", "updated_at", "title", "priority", "captured_at", "salience_score"] = "created_at"
    sort_order: Order = "desc"
    limit: int = Field(50, ge=1, le=100)
    offset: int = Field(0, ge=0, le=10_000_000)


class ItemFields(Asked):
    """What can be said of a timeline item."""

    description: Text | None = None
    start_time: When | None = None
    end_time: When | None = None
    category_id: Line | None = Field(None, description="A category's id or name.")
    tags: Tags | None = None
    status: Standing | None = None
    priority: Priority | None = None
    metadata: Metadata | None = None


class CreateTimelineItem(ItemFields):
    """A new item; a task, memory or activity is made as such."""

    type: ItemType
    title: str = Field(min_length=1, max_length=500)


class ItemContent(ItemFields):
    """An item as apps change it; null takes a thing away."""

    title: str | None = Field(None, min_length=1, max_length=500)
    is_time_consuming: bool | None = None
    render_on_timeline: bool | None = None


class Insights(Asked):
    """Of how long a time."""

    date_range: Literal["today", "week", "month", "quarter", "year"] = "week"
    timezone: Zone | None = None


class SearchAcross(Asked):
    """What to look for, in everything there is."""

    query: str = Field(min_length=1, max_length=2000, description="What it is about, in plain words.")
    include_types: list[ItemType] | None = Field(None, max_length=5)
    date_from: When | None = None
    date_to: When | None = None
    context_depth: int = Field(2, ge=1, le=5, description="How much of what lies around each match to show.")
    limit: int = Field(20, ge=1, le=100)


class CategoryFields(Asked):
    """What can be said of a category."""

    color: str | None = Field(None, pattern=COLOUR, description="#RRGGBB")
    description: Text | None = None
    icon: Annotated[str, Field(max_length=100)] | None = None


class CreateCategory(CategoryFields):
    """A new category."""

    name: str = Field(min_length=1, max_length=50)


class UpdateCategory(CategoryFields):
    """What is to be different."""

    id: Id = Field(description="Its id, or its name.")
    name: str | None = Field(None, min_length=1, max_length=50)


class CategoryContent(CategoryFields):
    """A category as apps change it."""

    name: str | None = Field(None, min_length=1, max_length=50)


class WhichCategory(Asked):
    """One category."""

    id: Id = Field(description="Its id, or its name.")
