"""What is asked in the address: which records, which part of them, and in which order. Other words are ignored."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from fastapi import Query
from pydantic import BeforeValidator, Field

from frontdesk.memory.asked.activities import SearchActivities
from frontdesk.memory.asked.common import SEPARATORS, TAGS, Asked, Id, Line, Paged, Text, When, Word, Zone
from frontdesk.memory.asked.memories import SearchMemories
from frontdesk.memory.asked.queue import GetAiTasks
from frontdesk.memory.asked.tasks import TaskFilter
from frontdesk.memory.asked.timeline import GetTimelineItems
from frontdesk.memory.model import ItemType, MemoryType
from frontdesk.memory.recall.model import Way

LISTED, MOST_LISTED = 50, 1000
DEEPEST = 10


def _each(value: object) -> object:
    """Words with commas between them, or said one by one, or both."""
    if not isinstance(value, list):
        return value
    parts = [str(one).split(SEPARATORS) for one in cast("list[object]", value)]
    return [word.strip() for part in parts for word in part if word.strip()]


Words = Annotated[list[Word], Field(max_length=TAGS), BeforeValidator(_each)]
Where = Annotated[Zone | None, Query(alias="timezone")]


class Listed(Paged):
    """Which part of a list, and in which zone a mere day is meant."""

    limit: int = Field(LISTED, ge=1, le=MOST_LISTED, description="At most so many.")
    tags: Words | None = Field(None, description="One of these at least, with commas between them.")
    timezone: Zone | None = None


class TaskQuery(Listed, TaskFilter, extra="ignore"):
    """Which tasks."""

    search: Line | None = Field(None, description="Words that occur in it.")
    updated_after: When | None = None
    updated_before: When | None = None
    parent_task_id: Id | None = None
    root_tasks_only: bool = False
    hierarchy_level: int | None = Field(None, ge=0, le=DEEPEST)
    include_subtasks: bool = True
    sort_by: Literal[
        "created_at", "updated_at", "due_date", "priority", "title", "hierarchy_level", "subtask_order"
    ] = "created_at"


class MadeWithin(Asked, extra="ignore"):
    """Of those made between these dates."""

    from_date: When | None = None
    to_date: When | None = None
    timezone: Zone | None = None


class ChangedWithin(Asked, extra="ignore"):
    """Between which dates; today, if neither is given."""

    start_date: When | None = None
    end_date: When | None = None
    timezone: Zone | None = None


class TreeQuery(Asked, extra="ignore"):
    """How much of a tree, and how it is told."""

    max_depth: int = Field(5, ge=1, le=DEEPEST, description="How many levels under the task.")
    include_completed: bool = True
    format: Literal["flat", "tree"] = Field(
        "flat", description="One after another, each before its own, or each within its parent."
    )


class DayQuery(Asked, extra="ignore"):
    """Between which times."""

    from_: When = Field(alias="from")
    to: When
    timezone: Zone | None = None


class MemoryQuery(Listed, SearchMemories, extra="ignore"):
    """Which memories."""

    include_superseded: bool = False
    include_expired: bool = False


class ActivityQuery(Listed, SearchActivities, extra="ignore"):
    """Which activities."""

    def wanted(self) -> Mapping[str, Any]:
        """What was said, by the names that the room has for it."""
        names = {"from_": "started_from", "to": "started_to"}
        return {names.get(name, name): value for name, value in self.said().items()}


class ItemQuery(Listed, GetTimelineItems, extra="ignore"):
    """Which timeline items."""

    date_from: When | None = None
    date_to: When | None = None


class AiTaskQuery(GetAiTasks, extra="ignore"):
    """Which pieces of work."""

    limit: int = Field(LISTED, ge=1, le=MOST_LISTED, description="At most so many.")


class RecallQuery(Asked, extra="ignore"):
    """What to look for."""

    q: Annotated[Text, Field(min_length=1, max_length=2000, description="What it is about, in plain words.")]
    search_type: Way = Field(Way.HYBRID, description="By words, by meaning, or by both together.")
    date_from: When | None = None
    date_to: When | None = None
    timezone: Zone | None = None
    limit: int = Field(20, ge=1, le=100, description="At most so many.")


class MemoryRecallQuery(RecallQuery):
    """What to look for among the memories."""

    memory_type: MemoryType | None = None
    is_highlight: bool | None = None
    tags: Words | None = Field(None, description="One of these at least, with commas between them.")
    category_id: Line | None = Field(None, description="A category's id or name.")
    min_salience: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)


class TimelineRecallQuery(RecallQuery):
    """What to look for in everything there is."""

    include_types: Annotated[list[ItemType], BeforeValidator(_each)] | None = Field(
        None, max_length=5, description="Of these kinds alone, with commas between them."
    )
    context_depth: int = Field(2, ge=1, le=5, description="How much of what lies around each match to show.")


class InsightQuery(Asked, extra="ignore"):
    """Of how long a time."""

    date_range: Literal["today", "week", "month", "quarter", "year"] = "week"
    timezone: Zone | None = None
