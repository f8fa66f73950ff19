"""Defines the records of a person, whose records an operation may use, and searches with their hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from frontdesk.errors import MissingScope
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import MEMORY_ADMIN, require_person


class ItemType(StrEnum):
    """The kind of a timeline item."""

    TASK = "task"
    ACTIVITY = "activity"
    ROUTINE = "routine"
    HABIT = "habit"
    MEMORY = "memory"


class ItemStatus(StrEnum):
    """The status of a timeline item. Deleted items are kept, but never shown."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ARCHIVED = "archived"
    DELETED = "deleted"


class Priority(StrEnum):
    """The priority of an item."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    URGENT = "urgent"


class TaskStatus(StrEnum):
    """The status of a task."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    ON_HOLD = "on_hold"
    CANCELLED = "cancelled"


class CompletionBehavior(StrEnum):
    """When a task with subtasks is completed: by hand, or with its last subtask."""

    MANUAL = "manual"
    WITH_SUBTASKS = "auto_when_subtasks_complete"


class ProgressCalculation(StrEnum):
    """How a task's progress is computed. `weighted` uses the estimated durations of its subtasks."""

    MANUAL = "manual"
    AVERAGE = "average_subtasks"
    WEIGHTED = "weighted_subtasks"


class TaskRelation(StrEnum):
    """The relation of a task to another."""

    SUBTASK = "subtask"
    RELATED = "related"
    DEPENDENCY = "dependency"
    BLOCKED_BY = "blocked_by"


class MemoryType(StrEnum):
    """The kind of a memory."""

    NOTE = "note"
    LINK = "link"
    FILE = "file"
    THOUGHT = "thought"
    QUOTE = "quote"
    INSIGHT = "insight"


class MemoryStatus(StrEnum):
    """The status of a memory."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    DELETED = "deleted"


class AnchorRelation(StrEnum):
    """The relation of a memory to the item that it is anchored to."""

    CONTEXT_OF = "context_of"
    RESULT_OF = "result_of"
    INSIGHT_FROM = "insight_from"
    ABOUT = "about"
    CO_OCCURRED = "co_occurred"
    TRIGGERED_BY = "triggered_by"
    REFLECTS_ON = "reflects_on"


class ActivityType(StrEnum):
    """The kind of an activity."""

    EXERCISE = "exercise"
    MEDITATION = "meditation"
    READING = "reading"
    MUSIC = "music"
    SOCIALIZING = "socializing"
    GAMING = "gaming"
    WALKING = "walking"
    COOKING = "cooking"
    REST = "rest"
    CREATIVE = "creative"
    LEARNING = "learning"
    OTHER = "other"


class ActivityStatus(StrEnum):
    """The status of an activity."""

    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Intensity(StrEnum):
    """The effort of an activity."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"


class EntrySource(StrEnum):
    """The source of a time entry."""

    TIMER = "timer"
    MANUAL = "manual"
    IMPORT = "import"


class AiStatus(StrEnum):
    """The status of a piece of work for an agent."""

    PENDING = "pending"
    ASSIGNED = "assigned"
    IN_PROGRESS = "in_progress"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AiMode(StrEnum):
    """How far an agent may go."""

    PLAN_ONLY = "plan_only"
    DRY_RUN = "dry_run"
    EXECUTE = "execute"


class AiTaskType(StrEnum):
    """The kind of a piece of work."""

    BRAINSTORMING = "brainstorming"
    DAILY_QA = "daily_qa"
    CODING = "coding"
    MCP = "mcp"
    NEWS_SEARCH = "news_search"
    COMET = "comet"
    TTS = "tts"
    STT = "stt"
    COMPANION = "companion"
    SPEECH = "speech"
    IMAGE_GEN = "image_gen"
    ANALYSIS = "analysis"
    WRITING = "writing"
    RESEARCH = "research"
    TRANSLATION = "translation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A category of tasks, memories and activities."""

    id: str
    name: str
    description: str = ""
    color: str = "#6B7280"
    icon: str = ""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """A timeline item: what all kinds of records have in common."""

    id: str
    type: ItemType
    title: str
    description: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    is_time_consuming: bool = True
    render_on_timeline: bool = True
    category_id: str | None = None
    tags: Sequence[str] = ()
    status: ItemStatus = ItemStatus.ACTIVE
    priority: Priority = Priority.MEDIUM
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task. `dependencies` are the ids of tasks that must be completed first.

    `wake_schedule_id` is the schedule that wakes the assigned agent when the task is due. `wake_note` says, right after
    a change, why there is no such schedule if there should be one.
    """

    id: str
    title: str
    description: str = ""
    status: TaskStatus = TaskStatus.PENDING
    priority: Priority = Priority.MEDIUM
    category_id: str | None = None
    tags: Sequence[str] = ()
    due_date: datetime | None = None
    estimated_duration: int | None = None
    progress: int = 0
    assignee: str | None = None
    notes: str = ""
    completion_date: datetime | None = None
    parent_task_id: str | None = None
    hierarchy_level: int = 0
    hierarchy_path: str = ""
    subtask_order: int = 0
    completion_behavior: CompletionBehavior = CompletionBehavior.MANUAL
    progress_calculation: ProgressCalculation = ProgressCalculation.MANUAL
    subtask_count: int = 0
    completed_subtask_count: int = 0
    tracked_minutes_total: int = 0
    tracked_segments_count: int = 0
    is_ai_task: bool = False
    wake_schedule_id: int | None = None
    wake_note: str = ""
    dependencies: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLink:
    """A relation between tasks: `task_id` depends on, is blocked by, or is related to `related_task_id`."""

    id: str
    task_id: str
    related_task_id: str
    relation: TaskRelation
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory. A superseded or expired one is kept, and found only on request."""

    id: str
    title: str
    note: str
    memory_type: MemoryType = MemoryType.NOTE
    status: MemoryStatus = MemoryStatus.ACTIVE
    emotion_valence: int | None = None
    emotion_arousal: int | None = None
    energy_delta: int | None = None
    place_name: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    is_highlight: bool = False
    salience_score: float | None = None
    category_id: str | None = None
    tags: Sequence[str] = ()
    captured_at: datetime
    happened_start: datetime | None = None
    happened_end: datetime | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    expires_at: datetime | None = None
    agent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """An anchor: ties a memory to a task, an activity or another item."""

    memory_id: str
    anchor_item_id: str
    relation: AnchorRelation
    local_start: datetime | None = None
    local_end: datetime | None = None
    weight: float = 1.0
    notes: str = ""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """An activity and how it felt. Moods, energies and satisfaction go from 1 to 10."""

    id: str
    title: str
    activity_type: ActivityType
    description: str = ""
    status: ActivityStatus = ActivityStatus.ACTIVE
    started_at: datetime
    ended_at: datetime | None = None
    duration_minutes: int | None = None
    mood_before: int | None = None
    mood_after: int | None = None
    energy_before: int | None = None
    energy_after: int | None = None
    satisfaction_level: int | None = None
    intensity_level: Intensity = Intensity.MODERATE
    location: str | None = None
    weather: str | None = None
    companions: Sequence[str] = ()
    notes: str = ""
    insights: str = ""
    gratitude: str = ""
    category_id: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEntry:
    """A time entry: time spent on an item. A running one has no end. Minutes are at least 1."""

    id: str
    timeline_item_id: str
    start_at: datetime
    end_at: datetime | None = None
    duration_minutes: int | None = None
    source: EntrySource = EntrySource.TIMER
    note: str = ""
    item_type: ItemType
    item_title: str
    category_id: str | None = None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrails:
    """The limits of an agent in a piece of work. The names are those of the contract."""

    costCapUSD: float | None = None  # noqa: N815
    timeCapMin: int | None = None  # noqa: N815
    requiresHumanApproval: bool = True  # noqa: N815
    dataScopes: Sequence[str] = ()  # noqa: N815


@dataclass(frozen=True, slots=True, kw_only=True)
class AiEvent:
    """A step in the history of a piece of work."""

    at: datetime
    from_status: AiStatus | None
    to_status: AiStatus
    by_agent: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AiTask:
    """A piece of work for an agent, which belongs to a task. The agent holds a lease until `leased_until`."""

    id: str
    task_id: str
    agent_id: str
    agent_name: str
    objective: str
    deliverables: str = ""
    context: str = ""
    acceptance_criteria: str = ""
    task_type: AiTaskType
    dependencies: Sequence[str] = ()
    mode: AiMode = AiMode.PLAN_ONLY
    guardrails: Guardrails = field(default_factory=Guardrails)
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: AiStatus = AiStatus.PENDING
    priority: Priority = Priority.MEDIUM
    progress_message: str = ""
    error_message: str = ""
    execution_result: Mapping[str, Any] = field(default_factory=dict[str, Any])
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    estimated_duration_min: int | None = None
    actual_duration_min: int | None = None
    is_local_task: bool = False
    executor_workspace_id: str | None = None
    assigned_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    due_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    leased_by: str | None = None
    leased_until: datetime | None = None
    claims: int = 0
    history: Sequence[AiEvent] = ()


@dataclass(frozen=True, slots=True)
class PersonScope:
    """A person, the agent that acts for them, their scopes (None for all), and the credential."""

    user_id: str
    agent_id: str | None = None
    scopes: frozenset[str] | None = None
    credential_id: str | None = None

    @classmethod
    def for_caller(cls, caller: Caller) -> "PersonScope":
        """The scope of the caller of this request. A caller who is no person has no records."""
        return cls(require_person(caller), caller.agent_id, caller.scopes, caller.credential_id)

    def allows(self, right: str) -> bool:
        return self.scopes is None or right in self.scopes or MEMORY_ADMIN in self.scopes

    def require(self, right: str) -> None:
        """Raise an error that names the missing scope."""
        if not self.allows(right):
            raise MissingScope(right)


DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 20, 100


class SearchMode(StrEnum):
    """How to search: by words and meaning together, or by one of them."""

    HYBRID = "hybrid"
    FULL_TEXT = "full_text"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSearch:
    """A search and its filters. Times are as people write them, in `zone`; they filter by the times of items.

    Without `statuses`, deleted and archived items are left out. The last six fields filter memories, and leave out all
    other items. Superseded and expired memories are found only on request.
    """

    text: str
    types: frozenset[ItemType] | None = None
    limit: int = DEFAULT_SEARCH_LIMIT
    mode: SearchMode = SearchMode.HYBRID
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
class ItemHit:
    """A hit: an item with its score from 0 to 1, the words it shares, and its nearness of meaning.

    `text` is the indexed text. `beside` are words that only its neighbours have: what was noted right before and after
    a memory speaks for it too.
    """

    item: TimelineItem
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


class ContextRelation(StrEnum):
    """The relation of an item to another near it."""

    BEFORE = "before"
    AFTER = "after"
    ANCHORED = "anchored"
    RELATED = "related"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """An item near another: stored before or after it, anchored to it, or related to it as a task."""

    item: TimelineItem
    tie: ContextRelation


class TimelineSort(StrEnum):
    """How to sort items. If only memories have the field, all other items come after them."""

    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    TITLE = "title"
    PRIORITY = "priority"
    CAPTURED_AT = "captured_at"
    SALIENCE_SCORE = "salience_score"
    START_TIME = "start_time"


@dataclass(frozen=True, slots=True)
class TimelinePosition:
    """The place of an item in the order of creation."""

    at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFilter:
    """A filter of timeline items. Times are as people write them, in `timezone`."""

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


@dataclass(frozen=True, slots=True)
class PersonSummary:
    """A person with records: their time zone, since when, and the number of searchable items."""

    user_id: str
    zone: str
    created_at: datetime
    items: int


@dataclass(frozen=True, slots=True)
class PersonActivity:
    """A person, and when one of their records was last created or changed."""

    person: PersonSummary
    last_change: datetime | None
