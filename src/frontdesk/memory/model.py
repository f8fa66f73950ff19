"""Defines what is stored for a person, whose records an operation may use, and searches with their hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from frontdesk.errors import Denied, MissingScope, Unauthenticated
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import MEMORY_ADMIN


class ItemType(StrEnum):
    """What a timeline item is."""

    TASK = "task"
    ACTIVITY = "activity"
    ROUTINE = "routine"
    HABIT = "habit"
    MEMORY = "memory"


class ItemStatus(StrEnum):
    """How a timeline item stands; `deleted` ones are kept and never shown."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ARCHIVED = "archived"
    DELETED = "deleted"


class Priority(StrEnum):
    """How pressing it is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    URGENT = "urgent"


class TaskStatus(StrEnum):
    """How a task stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    ON_HOLD = "on_hold"
    CANCELLED = "cancelled"


class CompletionBehavior(StrEnum):
    """When a task with subtasks is completed: by hand, or with the last of them."""

    MANUAL = "manual"
    WITH_SUBTASKS = "auto_when_subtasks_complete"


class ProgressCalculation(StrEnum):
    """Where a task's progress comes from; weighted goes by the subtasks' estimated durations."""

    MANUAL = "manual"
    AVERAGE = "average_subtasks"
    WEIGHTED = "weighted_subtasks"


class TaskRelation(StrEnum):
    """What a task is to another."""

    SUBTASK = "subtask"
    RELATED = "related"
    DEPENDENCY = "dependency"
    BLOCKED_BY = "blocked_by"


class MemoryType(StrEnum):
    """What kind of memory."""

    NOTE = "note"
    LINK = "link"
    FILE = "file"
    THOUGHT = "thought"
    QUOTE = "quote"
    INSIGHT = "insight"


class MemoryStatus(StrEnum):
    """How a memory stands."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    DELETED = "deleted"


class AnchorRelation(StrEnum):
    """What a memory is to the item it is anchored to."""

    CONTEXT_OF = "context_of"
    RESULT_OF = "result_of"
    INSIGHT_FROM = "insight_from"
    ABOUT = "about"
    CO_OCCURRED = "co_occurred"
    TRIGGERED_BY = "triggered_by"
    REFLECTS_ON = "reflects_on"


class ActivityType(StrEnum):
    """What was done."""

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
    """How an activity stands."""

    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Intensity(StrEnum):
    """How hard it was."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"


class EntrySource(StrEnum):
    """Where a time entry comes from."""

    TIMER = "timer"
    MANUAL = "manual"
    IMPORT = "import"


class AiStatus(StrEnum):
    """How a piece of work for an agent stands."""

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
    """What kind of work."""

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
    """A name that tasks, memories and activities are put under."""

    id: str
    name: str
    description: str = ""
    color: str = "#6B7280"
    icon: str = ""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """What all that stands on the timeline has in common."""

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
    """Something to be done. `dependencies` are ids of tasks that must be completed first.

    `wake_schedule_id` is the schedule that wakes the agent it is assigned to when it is due; `wake_note` says, right
    after a change, why there is none where there should be one.
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
    """What one task is to another: `task_id` depends on, is blocked by, or is related to `related_task_id`."""

    id: str
    task_id: str
    related_task_id: str
    relation: TaskRelation
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Something to be remembered. One that was superseded or has expired is kept, and found only when asked for."""

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
    """A memory tied to a task, an activity or another item."""

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
    """Something that was done, and how it felt. Moods, energies and satisfaction go from 1 to 10."""

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
    """Time that was spent, or is being spent, on an item; a running one has no end. Minutes are 1 at least."""

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
    """How far an agent may go with a piece of work; the names are the contract's."""

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
    """A piece of work for an agent, which belongs to a task. Whoever works on it holds a lease until `leased_until`."""

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


NO_PERSON = (
    "This credential speaks for no person, and so has no tasks or memories; use one that was made for a person "
    "(frontdesk keys create --user USER)"
)


@dataclass(frozen=True, slots=True)
class PersonScope:
    """One person; the agent that acts for them, if one does; what they may do, None for everything; by what proof."""

    user_id: str
    agent_id: str | None = None
    scopes: frozenset[str] | None = None
    credential_id: str | None = None

    @classmethod
    def for_caller(cls, caller: Caller) -> "PersonScope":
        """From who is calling, for this one request. Nobody in particular has no records."""
        if caller.user_id is None:
            raise Unauthenticated("Authentication required") if caller.credential_id is None else Denied(NO_PERSON)
        return cls(caller.user_id, caller.agent_id, caller.scopes, caller.credential_id)

    def allows(self, right: str) -> bool:
        return self.scopes is None or right in self.scopes or MEMORY_ADMIN in self.scopes

    def require(self, right: str) -> None:
        """Refuse whoever lacks it, and say what was needed."""
        if not self.allows(right):
            raise MissingScope(right)


DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 20, 100


class SearchMode(StrEnum):
    """By what it is looked for: by words and meaning together, or by one of them alone."""

    HYBRID = "hybrid"
    FULL_TEXT = "full_text"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSearch:
    """What is looked for, and among what. Times are as people write them, in `zone`, and those of the items.

    Without `statuses`, what is neither deleted nor archived. The last seven are of memories, and find nothing else;
    those that were superseded or have expired are found only when asked for.
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
    """An item that was found: how well it fits, from 0 to 1, the words it shares, and how near its meaning is.

    `text` is what it was found by. `beside` are words that only its neighbours hold: a memory is found by what was
    written down right before and after it, too.
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
    """What an item near another is to it."""

    BEFORE = "before"
    AFTER = "after"
    ANCHORED = "anchored"
    RELATED = "related"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """An item near another: written down around it, anchored to it, or tied to it as a task."""

    item: TimelineItem
    tie: ContextRelation


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
class TimelinePosition:
    """Where an item stands in the order in which they were made."""

    at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFilter:
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


@dataclass(frozen=True, slots=True)
class PersonSummary:
    """A person with records here: their time zone, since when, and how many items a search can find."""

    user_id: str
    zone: str
    created_at: datetime
    items: int


@dataclass(frozen=True, slots=True)
class PersonActivity:
    """A person, and when one of their records was last created or changed."""

    person: PersonSummary
    last_change: datetime | None
