"""Defines what the HTTP API and the built-in agents ask about schedules."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from frontdesk.operations import OperationRequest
from frontdesk.schedules.model import Misfire, Overlap, RunStatus, ScheduleState
from frontdesk.schedules.requests import (
    DEFAULT_LIMIT,
    DEFAULT_PREVIEW,
    MAX_LIMIT,
    MAX_PREVIEW,
    ListRuns,
    ListSchedules,
    NewSchedule,
    RuleRequest,
    ScheduleChange,
    parse_schedule_id,
)

Interval = Annotated[str | int | None, Field(description="30s, 5m, 1h, 2d, or a number of seconds.")]
PositiveNumber = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1})]
OptionalText = Annotated[str | None, Field(max_length=2000)]
TIMELINE_HELP = "For later: there is no timeline yet, and true is refused."
WHEN_HELP = "Any of the three, or plain words: in two minutes, every weekday at 9 Berlin time."
# The bounds are shown here, and checked by the scheduler.
Count = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_LIMIT})]
PreviewCount = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PREVIEW})]
Before = Annotated[
    str | None, Field(max_length=100, description="Only runs that were due before this time, or `next` of a page.")
]


class RuleRequestBody(OperationRequest):
    """A rule. Unknown fields are refused, so that no option is lost by a typing error."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    # The agent is taken from this field when the caller is identified.
    agent_id: Annotated[
        Any,
        WithJsonSchema({"type": "string"}),
        Field(description="The agent; not needed where the x-agent-id header or the credential names it."),
    ] = None
    when: Annotated[OptionalText, Field(description=WHEN_HELP, examples=["every weekday at 9 Berlin time"])] = None
    time: Annotated[OptionalText, Field(description="Once, at this time: ISO 8601 with Z or an offset.")] = None
    cron: Annotated[OptionalText, Field(description="Five fields, or @daily and the like.")] = None
    every: Interval = None
    zone: Annotated[OptionalText, Field(description="An IANA name, e.g. Europe/Berlin; UTC unless said.")] = None
    start_at: OptionalText = None
    end_at: OptionalText = None


class PreviewRuleRequest(RuleRequestBody):
    """A rule to try."""

    count: PreviewCount = DEFAULT_PREVIEW

    @property
    def rule(self) -> RuleRequest:
        return RuleRequest(**self.model_dump(exclude={"count", "agent_id"}))


class ScheduleOptionsBody(RuleRequestBody):
    """A rule, and the options for late, missed and failed runs."""

    jitter: Annotated[Interval, Field(description="Each fire comes up to this much later.")] = None
    max_repetitions: PositiveNumber = None
    overlap: Annotated[OptionalText, Field(description=", ".join(Overlap))] = None
    misfire: Annotated[OptionalText, Field(description=", ".join(Misfire))] = None
    max_late: Annotated[Interval, Field(description="A fire later than this is left out.")] = None
    attempts: PositiveNumber = None
    webhook: OptionalText = None
    timeline: Annotated[bool | None, Field(description=TIMELINE_HELP)] = None
    conversation_id: OptionalText = None


class NewScheduleRequest(ScheduleOptionsBody):
    """A new schedule."""

    prompt: Annotated[str, Field(examples=["Write the daily report"])]
    skip_validation: Annotated[bool, Field(description="Do not check that the agent exists.")] = False

    @property
    def new_schedule(self) -> NewSchedule:
        return NewSchedule(**self.model_dump(exclude={"agent_id"}))


class ChangeScheduleRequest(ScheduleOptionsBody):
    """The changes of a schedule; null clears a field, and fields that are left out stay."""

    schedule_id: str
    prompt: str | None = None

    @property
    def change(self) -> ScheduleChange:
        fields = self.model_dump(exclude_unset=True, exclude={"agent_id", "schedule_id"})
        cleared = frozenset(name for name, value in fields.items() if value is None)
        return ScheduleChange(**{name: value for name, value in fields.items() if value is not None}, clear=cleared)


class ScheduleNumber(OperationRequest):
    """A schedule by its number."""

    schedule_id: str


class RunId(OperationRequest):
    """A run by its id."""

    delivery_id: str


class PreviewScheduleRequest(ScheduleNumber):
    """A schedule, and how many of its next times to show."""

    count: PreviewCount = DEFAULT_PREVIEW


class ScheduleListQuery(OperationRequest):
    """Which schedules to list."""

    agent_id: str | None = None
    state: ScheduleState | None = None
    include_cancelled: Annotated[bool, Field(description="Also those that are cancelled or over.")] = False
    after: Annotated[int, Field(description="`next` of the page before.")] = 0
    limit: Count = DEFAULT_LIMIT

    @property
    def filters(self) -> ListSchedules:
        return ListSchedules(self.agent_id, self.include_cancelled, self.state, self.after, self.limit)


class RunListQuery(OperationRequest):
    """Which runs to list."""

    agent_id: str | None = None
    standing: RunStatus | None = None
    before: Before = None
    limit: Count = DEFAULT_LIMIT

    @property
    def filters(self) -> ListRuns:
        return ListRuns(None, self.agent_id, self.standing, self.before, self.limit)


class ScheduleRunsQuery(ScheduleNumber):
    """Which runs of a schedule to list."""

    standing: RunStatus | None = None
    before: Before = None
    limit: Count = DEFAULT_LIMIT

    @property
    def filters(self) -> ListRuns:
        return ListRuns(parse_schedule_id(self.schedule_id), None, self.standing, self.before, self.limit)


class SchedulePromptArguments(OperationRequest):
    """The prompt and its time."""

    prompt: str = Field(min_length=1, description="What you want to be told then, understandable by itself")
    when: str = Field(min_length=1, max_length=500, description="When, in plain words or as a rule")
    zone: str | None = Field(None, max_length=100, description="The time zone as an IANA name; UTC when left out")
    max_repetitions: int | None = Field(None, ge=1, description="Stop after so many runs")

    @property
    def new_schedule(self) -> NewSchedule:
        return NewSchedule(self.prompt, when=self.when, zone=self.zone, max_repetitions=self.max_repetitions)


class CancelScheduleArguments(OperationRequest):
    """Which schedule."""

    schedule_id: int = Field(description="Its number, as list_schedules shows it")
