"""Defines the requests and results of the schedules capability, and checks numbers and choices."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import StrEnum
from typing import TypeVar

from frontdesk.errors import Invalid
from frontdesk.schedules.descriptions import describe_facts, describe_trigger
from frontdesk.schedules.model import RunRecord, RunStatus, Schedule, ScheduleState, Trigger
from frontdesk.schedules.triggers import parse_interval

Choice = TypeVar("Choice", bound=StrEnum)
# The largest integer of the database.
MAX_WHOLE_NUMBER = 2**31 - 1
MAX_SCHEDULE_ID = 2**53
MAX_ATTEMPTS = 100
LONGEST_JITTER_S = 86_400


def parse_schedule_id(value: object) -> int:
    """A schedule's number; an impossible number becomes 0, which no schedule has."""
    found = parse_whole_number(value)
    if found is None:
        raise Invalid("Schedule ID must be a number")
    return found if 0 < found <= MAX_SCHEDULE_ID else 0


def parse_max_repetitions(value: object) -> int | None:
    if value is None:
        return None
    found = parse_whole_number(value)
    if found is None or found > MAX_WHOLE_NUMBER:
        raise Invalid("max-repetitions must be a valid integer")
    if found < 1:
        raise Invalid("max-repetitions must be a positive integer")
    return found


def parse_attempts(value: object) -> int:
    found = parse_whole_number(value)
    if found is None or not 1 <= found <= MAX_ATTEMPTS:
        raise Invalid(f"attempts must be a whole number from 1 to {MAX_ATTEMPTS}")
    return found


def parse_jitter_s(value: str | int) -> int:
    found = parse_whole_number(value)
    length = parse_interval(str(value)) if found is None else found
    if not 0 <= length <= LONGEST_JITTER_S:
        raise Invalid("jitter must be from 0 seconds to a day, e.g. 30s")
    return length


def parse_max_late_s(value: str | int) -> int:
    return min(parse_interval(str(value)), MAX_WHOLE_NUMBER)


def parse_loop_interval_s(value: object) -> float:
    """Seconds between the rounds of a loop."""
    found = parse_whole_number(value)
    if found is None or found < 1:
        raise Invalid("Interval must be a number (seconds)")
    return float(found)


def parse_within(name: str, value: object, most: int, least: int = 1) -> int:
    """A whole number within bounds."""
    found = parse_whole_number(value)
    if found is None or not least <= found <= most:
        raise Invalid(f"{name} must be a whole number from {least} to {most}")
    return found


def parse_choice(kind: type[Choice], name: str, value: str) -> Choice:
    try:
        return kind(value.strip().lower())
    except ValueError as error:
        *others, last = [choice.value for choice in kind]
        raise Invalid(f"{name} is {', '.join(others)} or {last}") from error


def parse_whole_number(value: object) -> int | None:
    """A whole number, also from text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = value.strip() if isinstance(value, str) else ""
    return (
        int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else None
    )


CLEARABLE_FIELDS = ("start_at", "end_at", "jitter", "max_repetitions", "max_late", "webhook", "conversation_id")
# The default and the maximum number of schedules or runs in a list.
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
DEFAULT_PREVIEW = 5
MAX_PREVIEW = 100
MAX_LOOP_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRequest:
    """A rule: exactly one of `time`, `cron`, `every` and `when`, each as a rule or in plain words.

    `zone` is an IANA name. A time without an offset is in this zone; without either, it is refused. `jitter` is
    seconds, or an interval such as 5m. Words for another kind of rule than the field's are refused, unless `any_kind`.
    """

    time: str | None = None
    cron: str | None = None
    every: str | int | None = None
    when: str | None = None
    zone: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    jitter: str | int | None = None
    any_kind: bool = field(default=False, compare=False)

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, one.name) in (None, "") for one in fields(RuleRequest) if one.compare)


@dataclass(frozen=True, slots=True)
class ScheduleFields(RuleRequest):
    """All fields of a schedule; a field that is not given is None.

    `max_late` is seconds, or an interval. This capability checks fields of type object, so that every interface gives
    the same error messages.
    """

    prompt: str | None = None
    _: KW_ONLY
    max_repetitions: object = None
    overlap: str | None = None
    misfire: str | None = None
    max_late: str | int | None = None
    attempts: object = None
    webhook: str | None = None
    timeline: bool | None = None
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewSchedule(ScheduleFields):
    """A new schedule; without an `agent_id`, the agent is inferred."""

    agent_id: str | None = None
    skip_validation: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChange(ScheduleFields):
    """The changes of a schedule. None leaves a field unchanged; a name of `CLEARABLE_FIELDS` in `clear` empties it.

    A new time, cron, every or when replaces the whole rule.
    """

    clear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RuleDescription:
    """An exact description of a rule: `facts` (rule, zone, next_local, next_utc), and the same as a sentence."""

    facts: Mapping[str, str | None]
    sentence: str

    @classmethod
    def of(cls, trigger: Trigger, next_us: int | None) -> "RuleDescription":
        return cls(describe_facts(trigger, next_us), describe_trigger(trigger, next_us))


@dataclass(frozen=True, slots=True)
class SavedSchedule:
    """A schedule that was added or changed, with a description of its rule."""

    schedule: Schedule

    @property
    def rule(self) -> RuleDescription:
        return RuleDescription.of(self.schedule.what.trigger, self.schedule.intended_us)


@dataclass(frozen=True, slots=True)
class ListSchedules:
    """Which schedules to list: at most `limit` that the caller may see, in the order of their ids, after `after_id`.

    Cancelled and ended schedules are included only with `include_cancelled`; `state` selects schedules of that state.
    """

    agent_id: str | None = None
    include_cancelled: bool = False
    state: ScheduleState | None = None
    after_id: object = 0
    limit: object = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """A page of schedules; `next` is the `after_id` of the next page, None at the end."""

    schedules: Sequence[Schedule]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class ListRuns:
    """Which runs to list, the newest first; `before` is a time, or `next` of the previous page."""

    schedule_id: int | None = None
    agent_id: str | None = None
    standing: RunStatus | None = None
    before: str | None = None
    limit: object = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs; `next` is the `before` of the next page, None at the end."""

    runs: Sequence[RunRecord]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class RulePreview:
    """The next times of a rule, in UTC microseconds, without jitter."""

    rule: RuleDescription
    zone: str
    times: Sequence[int]


@dataclass(frozen=True, slots=True)
class ExecutedRun:
    """The outcome of one due prompt that was run on demand; `error` says why it was not delivered.

    `later`: the worker delivers it after the caller's own turn.
    """

    id: int
    agent_id: str
    delivered: bool
    delivery_id: str
    next_us: int | None = None
    repetition_count: int = 0
    max_repetitions: int | None = None
    completed: bool = False
    error: str | None = None
    later: bool = False


@dataclass(frozen=True, slots=True)
class ExecutorState:
    """The state of this process's worker, and the figures of all schedules; times are UTC microseconds.

    `autostart` and `interval_s` are settings for older clients: the worker sleeps until the next due time, not for an
    interval. `oldest_overdue_us` is the lateness of the oldest overdue schedule. Figures of all schedules are None for
    callers who may not see them.
    """

    running: bool
    autostart: bool
    interval_s: int
    concurrency: int
    in_flight: int | None = None
    delivered: int | None = None
    failed: int | None = None
    last_us: int | None = None
    next_us: int | None = None
    due: int | None = None
    waiting: int | None = None
    dead: int | None = None
    oldest_overdue_us: int | None = None


@dataclass(frozen=True, slots=True)
class InferredAgent:
    """The agent for a call without an `agent_id`, and how it was found.

    `source` is credential, header, parameter, metadata, scoped_default, default, environment, single_agent or none;
    `key` is the scope or variable that contained it.
    """

    agent_id: str | None
    source: str
    key: str | None = None
    single_agent_fallback: bool = False
    environment: Mapping[str, bool] = field(default_factory=dict[str, bool])


@dataclass(frozen=True, slots=True)
class ScopedDefaultAgent:
    """The default agent of a scope (`user:…`, `key:…`, `agent:…`, `local`, or '' for everybody)."""

    scope: str
    agent_id: str | None


@dataclass(frozen=True, slots=True)
class HostTest:
    """The agent host answered a test request."""

    message: str
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class UploadedHostTool:
    """A tool that was uploaded to Letta."""

    tool_id: str
    name: str | None


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import: the ids of new schedules, and how many were imported before.

    `left_out` has each row that was not imported: (table and row, reason). `warnings` are about imported rows.
    """

    path: str
    made: Sequence[int] = ()
    known: int = 0
    left_out: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
