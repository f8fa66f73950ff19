"""What is asked about activities."""

from typing import Literal

from pydantic import Field

from frontdesk.memory.asked.common import Asked, Id, Line, Metadata, Minutes, Order, Paged, Tags, Ten, Text, When
from frontdesk.memory.model import ActivityStatus, ActivityType, Intensity

TITLE = 500


class ActivityFields(Asked):
    """What can be said of an activity; moods, energies and satisfaction go from 1 to 10."""

    description: Text | None = None
    ended_at: When | None = None
    mood_after: Ten | None = None
    energy_after: Ten | None = None
    satisfaction_level: Ten | None = None
    intensity_level: Intensity | None = None
    notes: Text | None = None
    insights: Text | None = None
    gratitude: Text | None = None
    status: ActivityStatus | None = None
    tags: Tags | None = None


class ActivitySetting(ActivityFields):
    """And how it began, where, and with whom."""

    started_at: When | None = None
    duration_minutes: Minutes | None = None
    mood_before: Ten | None = None
    energy_before: Ten | None = None
    location: Line | None = None
    weather: Line | None = None
    companions: Tags | None = None
    category_id: Line | None = Field(None, description="A category's id or name.")


class CreateActivity(ActivitySetting):
    """Something that was done, or is being done."""

    title: str = Field(min_length=1, max_length=TITLE)
    activity_type: ActivityType
    status: ActivityStatus | None = Field(None, description="completed, unless said otherwise.")


class UpdateActivity(ActivityFields):
    """What is to be different."""

    id: Id
    title: str | None = Field(None, min_length=1, max_length=TITLE)
    activity_type: ActivityType | None = None


class NewActivityContent(CreateActivity):
    """A new activity as apps write it."""

    metadata: Metadata | None = None


class ActivityContent(ActivitySetting):
    """What is to be different, as apps write it; null takes a thing away."""

    title: str | None = Field(None, min_length=1, max_length=TITLE)
    activity_type: ActivityType | None = None
    metadata: Metadata | None = None


class SearchActivities(Paged):
    """Which activities."""

    activity_type: ActivityType | None = None
    status: ActivityStatus | None = None
    intensity_level: Intensity | None = None
    min_satisfaction: Ten | None = None
    min_mood_after: Ten | None = None
    location: Line | None = None
    from_: When | None = Field(None, alias="from", description="Begun on or after this.")
    to: When | None = Field(None, description="Begun on or before this.")
    search: Line | None = None
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    category_id: Line | None = Field(None, description="A category's id or name.")
    sort_by: Literal["started_at", "satisfaction_level", "mood_after", "title", "created_at"] = "started_at"
    sort_order: Order = "desc"
