"""Defines schedules, their runs, and the outcomes of runs; times are UTC microseconds since the epoch."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from time import time_ns

from frontdesk.identity.authority import UNLIMITED, Authority

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
DEFAULT_ATTEMPTS = 10


class TriggerKind(StrEnum):
    """The kind of rule."""

    ONCE = "once"
    CRON = "cron"
    INTERVAL = "interval"


class ScheduleState(StrEnum):
    """The state of a schedule."""

    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    ENDED = "ended"


class Overlap(StrEnum):
    """What happens to a fire during the previous run: it waits, is skipped, or runs at the same time."""

    QUEUE = "queue"
    SKIP = "skip"
    ALLOW = "allow"


class Misfire(StrEnum):
    """What happens to missed fires: one run replaces them all, all are run, or none."""

    ONCE = "once"
    ALL = "all"
    SKIP = "skip"


class RunStatus(StrEnum):
    """The state of a run. The first two are active; in the others the run has ended."""

    RUNNING = "running"
    WAITING = "waiting"
    DELIVERED = "delivered"
    DEAD = "dead"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a schedule fires.

    `value` is an ISO time in UTC, a cron rule of five fields, or an interval such as 30s. An interval counts from
    `start_us`; nothing fires after `end_us`. Each fire comes up to `jitter_s` after its intended time.
    """

    kind: TriggerKind
    value: str
    zone: str = "UTC"
    start_us: int | None = None
    end_us: int | None = None
    jitter_s: int = 0


@dataclass(frozen=True, slots=True)
class SchedulePolicy:
    """What to do about late, missed and failed runs; a fire more than `max_late_s` late is skipped and recorded."""

    overlap: Overlap = Overlap.QUEUE
    misfire: Misfire = Misfire.ONCE
    max_late_s: int | None = None
    attempts: int = DEFAULT_ATTEMPTS


@dataclass(frozen=True, slots=True)
class AnswerForwarding:
    """Where to forward an agent's answer; `timeline` is reserved, and not accepted yet."""

    webhook: str | None = None
    timeline: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """The definition of a schedule.

    `words` are the plain words of its rule, `made_by` the run in which an agent made it. `authority` limits what its
    runs may do.
    """

    agent_id: str
    prompt: str
    trigger: Trigger
    user_id: str | None = None
    policy: SchedulePolicy = field(default_factory=SchedulePolicy)
    max_repetitions: int | None = None
    words: str | None = None
    forward: AnswerForwarding = field(default_factory=AnswerForwarding)
    conversation_id: str | None = None
    made_by: str | None = None
    authority: Authority = UNLIMITED


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored schedule: `intended_us` is its next intended time, `fire_us` the same with jitter.

    `fired` counts its runs, `last_us` is when the last one started.
    """

    id: int
    what: ScheduleDefinition
    state: ScheduleState
    intended_us: int | None
    fire_us: int | None
    fired: int
    last_us: int | None
    created_us: int
    updated_us: int


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A claimed run, held by its worker under this `fence`; `id` is the delivery id.

    `in_doubt`: an earlier attempt may have reached the agent. `last`: no run follows; otherwise `next_us` is the next
    intended time of its schedule. `due_us` is when it should start, with jitter. `lane` is its queue.
    """

    id: str
    schedule_id: int
    agent_id: str
    user_id: str | None
    prompt: str
    intended_us: int
    number: int
    attempt: int
    fence: int
    attempts: int = DEFAULT_ATTEMPTS
    conversation_id: str | None = None
    webhook: str | None = None
    in_doubt: bool = False
    last: bool = False
    manual: bool = False
    recurring: bool = False
    overlap: Overlap = Overlap.QUEUE
    next_us: int | None = None
    due_us: int = 0
    created_us: int = 0
    started_us: int = 0
    lane: str = ""
    authority: Authority = UNLIMITED


@dataclass(frozen=True, slots=True)
class OwnerFilter:
    """The owners of the wanted schedules; with `include_unowned`, also schedules without a user."""

    agent_id: str | None = None
    user_id: str | None = None
    include_unowned: bool = False

    def covers(self, agent_id: str, user_id: str | None) -> bool:
        if self.agent_id is not None and agent_id != self.agent_id:
            return False
        return self.user_id in (None, user_id) or (user_id is None and self.include_unowned)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed attempt of a run."""

    number: int
    started_us: int
    ended_us: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """Whether an answer was sent to a webhook: waiting, sent, or dead, and why the last attempt failed."""

    state: str
    attempt: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run in the history."""

    id: str
    schedule_id: int
    agent_id: str
    user_id: str | None
    intended_us: int
    number: int
    standing: RunStatus
    attempt: int
    started_us: int | None
    ended_us: int | None
    reason: str | None = None
    answer: str | None = None
    manual: bool = False
    earlier: Sequence[Attempt] = ()
    forwarded: WebhookStatus | None = None


# Returns the agent's answer once its turn has ended, or raises `DeliveryFailed`.
DeliverRun = Callable[[Occurrence], Awaitable[str | None]]


class DeliveryFailed(Exception):
    """An attempt failed.

    `permanent`: a retry will not help. Not `counted`: the agent was busy, and the attempt does not count.
    `retry_after`: the seconds that the agent host asked for. `in_doubt`: the prompt may have reached the agent.
    """

    def __init__(
        self,
        error: str,
        *,
        permanent: bool = False,
        counted: bool = True,
        retry_after: float | None = None,
        in_doubt: bool = False,
    ) -> None:
        super().__init__(error)
        self.permanent = permanent
        self.counted = counted
        self.retry_after = retry_after
        self.in_doubt = in_doubt


def delivery_id(schedule_id: int, intended_us: int) -> str:
    """The id is the same for all attempts of a run, so that a receiver recognises a repetition."""
    return f"run-{schedule_id}-{intended_us // 1000}"


def to_us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def from_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def now_us() -> int:
    """The time on this machine's clock."""
    return time_ns() // 1000


def format_utc(at: datetime) -> str:
    """A time as agents and webhooks get it: UTC, with whole seconds."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
