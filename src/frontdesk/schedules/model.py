"""Defines schedules, their runs, and what became of them; times are UTC microseconds since the epoch."""

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
    """How a rule is told."""

    ONCE = "once"
    CRON = "cron"
    INTERVAL = "interval"


class ScheduleState(StrEnum):
    """Of a schedule."""

    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    ENDED = "ended"


class Overlap(StrEnum):
    """What happens to a fire that falls into the run before it: it waits its turn, is left out, or runs beside it."""

    QUEUE = "queue"
    SKIP = "skip"
    ALLOW = "allow"


class Misfire(StrEnum):
    """What happens to fires that nobody was there for: one run makes up for all, each is run, or none."""

    ONCE = "once"
    ALL = "all"
    SKIP = "skip"


class RunStatus(StrEnum):
    """Of an occurrence. The first two are under way; the others are its end."""

    RUNNING = "running"
    WAITING = "waiting"
    DELIVERED = "delivered"
    DEAD = "dead"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The whole rule of when.

    `value` is an ISO time in UTC, a cron rule of five fields, or an interval such as 30s. An interval is counted from
    `start_us`; `end_us` is the last moment at which anything fires. Each fire comes up to `jitter_s` later than meant.
    """

    kind: TriggerKind
    value: str
    zone: str = "UTC"
    start_us: int | None = None
    end_us: int | None = None
    jitter_s: int = 0


@dataclass(frozen=True, slots=True)
class SchedulePolicy:
    """What to do when things do not go as planned; what is later than `max_late_s` is left out, and recorded so."""

    overlap: Overlap = Overlap.QUEUE
    misfire: Misfire = Misfire.ONCE
    max_late_s: int | None = None
    attempts: int = DEFAULT_ATTEMPTS


@dataclass(frozen=True, slots=True)
class AnswerForwarding:
    """Where an agent's answer goes on to; `timeline` is reserved, and nobody can ask for it yet."""

    webhook: str | None = None
    timeline: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """A schedule to be made; `words` are the plain words it was told in, `made_by` the run in which it was.

    `authority` is on whose word it runs.
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
    """A schedule as it stands: `intended_us` is when it is next meant to fire, `fire_us` when it will, jitter and all.

    `fired` counts its occurrences that were run, `last_us` is when the last one was begun.
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
    """One run to be made now, by whoever holds it under this `fence`; `id` is the delivery id.

    `in_doubt`: an earlier attempt may have reached the agent, and nobody knows. `last`: nothing follows it, otherwise
    `next_us` is when its schedule is meant to fire next. `due_us` is when it was to begin, jitter and all; `lane` is
    its queue: runs of a queue are taken one at a time where it is `serial`.
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
    """Whose schedules are meant; with `or_nobodys` a user's and those that belong to no user in particular."""

    agent_id: str | None = None
    user_id: str | None = None
    include_unowned: bool = False

    def covers(self, agent_id: str, user_id: str | None) -> bool:
        if self.agent_id is not None and agent_id != self.agent_id:
            return False
        return self.user_id in (None, user_id) or (user_id is None and self.include_unowned)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try that came to nothing, or the last one."""

    number: int
    started_us: int
    ended_us: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """What became of an answer on its way to a webhook: waiting, sent, or dead, and why the last try failed."""

    state: str
    attempt: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What became of an occurrence."""

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


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The agent took its turn, and said this."""

    answer: str | None = None


# Returns once the agent's turn has ended, or raises `DeliveryFailed`.
DeliverRun = Callable[[Occurrence], Awaitable[DeliveryResult]]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of an occurrence that was run on somebody's word."""

    occurrence: Occurrence
    delivered: bool
    answer: str | None = None
    error: str | None = None


class DeliveryFailed(Exception):
    """A try came to nothing.

    `permanent`: trying again will not help. Not `counted`: the agent was busy, which is nobody's fault. `retry_after`
    is in seconds, where the other side named them. `in_doubt`: the agent may have got it all the same.
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
    """The same for every attempt at one occurrence, so that a receiver can tell a repetition."""
    return f"run-{schedule_id}-{intended_us // 1000}"


def to_us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def from_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def now_us() -> int:
    """This machine's clock."""
    return time_ns() // 1000


def format_utc(at: datetime) -> str:
    """A time as it is told to agents and webhooks: UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
