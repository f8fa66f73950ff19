"""What callers ask of the scheduler, as they said it, and what they are answered."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields

from frontdesk.schedule.model import Past, Schedule, Standing, State, Trigger
from frontdesk.schedule.triggers import echo

CLEARABLE = ("start_at", "end_at", "jitter", "max_repetitions", "max_late", "webhook", "conversation_id")
# How many are told unless more are asked for, and how many at most.
LISTED = 100
MOST_LISTED = 1000
TIMES = 5
MOST_TIMES = 100
LOOP_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A rule as it was said: exactly one of `time`, `cron`, `every` and `when`, each as a rule or in plain words.

    `zone` is an IANA name; times without an offset are in it, and without either they are refused. `jitter` is
    seconds, or an interval such as 5m. Words for another kind of rule than they were given as are refused, unless they
    are meant `loosely`.
    """

    time: str | None = None
    cron: str | None = None
    every: str | int | None = None
    when: str | None = None
    zone: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    jitter: str | int | None = None
    loosely: bool = field(default=False, compare=False)

    @property
    def says_nothing(self) -> bool:
        return all(getattr(self, one.name) in (None, "") for one in fields(When) if one.compare)


@dataclass(frozen=True, slots=True)
class Wish(When):
    """Whatever can be said of a schedule; what is left out is None.

    `max_late` is seconds, or an interval. What is given as an object is checked here, so that the caller is told in
    the same words at every door.
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
class Asked(Wish):
    """A schedule to be made; without an agent it is inferred."""

    agent_id: str | None = None
    skip_validation: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Wish):
    """What is to be different about a schedule; None leaves a thing as it is, a name in `clear` takes it away.

    `CLEARABLE` are the names of what can be taken away. A new time, cron, every or when replaces the whole rule.
    """

    clear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule said back exactly: the `facts` (rule, zone, next_local, next_utc) and the same as a sentence."""

    facts: Mapping[str, str | None]
    sentence: str

    @classmethod
    def of(cls, trigger: Trigger, next_us: int | None) -> "Rule":
        return cls(echo.told(trigger, next_us), echo.sentence(trigger, next_us))


@dataclass(frozen=True, slots=True)
class Added:
    """A schedule as it now stands, and its rule said back."""

    schedule: Schedule

    @property
    def rule(self) -> Rule:
        return Rule.of(self.schedule.what.trigger, self.schedule.intended_us)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which schedules to list, by id: of those one may see, the next `limit` after `after_id`.

    Those that are cancelled or have ended are left out unless they are asked for; `state` asks for one kind alone.
    """

    agent_id: str | None = None
    include_cancelled: bool = False
    state: State | None = None
    after_id: object = 0
    limit: object = LISTED


@dataclass(frozen=True, slots=True)
class Listed:
    """Some schedules; `next` is the `after_id` to go on with, None at the end."""

    schedules: Sequence[Schedule]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class PastWanted:
    """Which runs to tell of, the newest first; `before` is a time, or `next` of the page before."""

    schedule_id: int | None = None
    agent_id: str | None = None
    standing: Standing | None = None
    before: str | None = None
    limit: object = LISTED


@dataclass(frozen=True, slots=True)
class PastListed:
    """Some runs; `next` is the `before` to go on with, None at the end."""

    runs: Sequence[Past]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """When a rule fires next, in UTC microseconds; jitter comes on top."""

    rule: Rule
    zone: str
    times: Sequence[int]


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of one due prompt that was run on somebody's word; `error` is there when it was not delivered.

    One that is `later` was handed over, and comes when the caller's own turn has ended.
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
class Executor:
    """How the worker of this process is doing, and what waits for any; times are UTC microseconds.

    `autostart` and `interval_s` are the settings that older clients look for: the worker sleeps until the next due
    time and does not tick. `oldest_overdue_us` is how late the latest is. What concerns everybody's schedules is None
    for who may not see them.
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
class Inferred:
    """The agent that a call without an `agent_id` would be for, and how it was found.

    `source` is credential, header, parameter, metadata, scoped_default, default, environment, single_agent or none;
    `key` the scope or variable that held it.
    """

    agent_id: str | None
    source: str
    key: str | None = None
    single_agent_fallback: bool = False
    environment: Mapping[str, bool] = field(default_factory=dict[str, bool])


@dataclass(frozen=True, slots=True)
class ScopedDefault:
    """The default agent of a scope (`user:…`, `key:…`, `agent:…`, `local`, or '' for everybody)."""

    scope: str
    agent_id: str | None


@dataclass(frozen=True, slots=True)
class HostTest:
    """The agent host answered."""

    message: str
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A tool that Letta now has."""

    tool_id: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to: ids of the schedules that were made, how many were here before, and why others were not.

    `left_out` has a line for each row that was not taken over: (table and row, why). `warnings` say what is wrong with
    those that were.
    """

    path: str
    made: Sequence[int] = ()
    known: int = 0
    left_out: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
