"""Defines what is asked of schedules over the HTTP API and by the built-in agents, and all answers about them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from frontdesk.errors import Invalid
from frontdesk.operations import OperationRequest
from frontdesk.schedules.create import MissingRule
from frontdesk.schedules.model import (
    SECOND,
    Attempt,
    Misfire,
    Overlap,
    RunRecord,
    RunStatus,
    Schedule,
    ScheduleState,
    WebhookStatus,
    from_us,
)
from frontdesk.schedules.requests import (
    DEFAULT_LIMIT,
    DEFAULT_PREVIEW,
    MAX_LIMIT,
    MAX_PREVIEW,
    ExecutorState,
    ListRuns,
    ListSchedules,
    NewSchedule,
    RuleDescription,
    RulePreview,
    RuleRequest,
    RunPage,
    ScheduleChange,
    SchedulePage,
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


class ScheduleResponseModel(BaseModel):
    """The contract sets names and order; our additions come last."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class RuleResponse(ScheduleResponseModel):
    """When exactly a schedule fires."""

    rule: str | None = None
    zone: str | None = None
    next_local: str | None = Field(None, description="The next time in its zone, with the offset there.")
    next_utc: str | None = None
    sentence: str

    @classmethod
    def of(cls, rule: RuleDescription) -> "RuleResponse":
        facts = rule.facts
        return cls(
            rule=facts.get("rule"),
            zone=facts.get("zone"),
            next_local=facts.get("next_local"),
            next_utc=facts.get("next_utc"),
            sentence=rule.sentence,
        )

    @classmethod
    def of_inactive(cls, rule: RuleDescription, state: ScheduleState) -> "RuleResponse":
        """The rule of a schedule that does not fire at present."""
        text, zone = rule.facts.get("rule"), rule.facts.get("zone")
        return cls(rule=text, zone=zone, next_local=None, next_utc=None, sentence=f"{text}, {zone}; {state}")


class ScheduleResponse(ScheduleResponseModel):
    """A schedule in its present state."""

    id: int
    agent_id: str
    prompt_text: str
    schedule_type: str = Field(description="once, cron or interval")
    schedule_value: str
    next_run: str | None
    active: bool
    created_at: str
    last_run: str | None
    max_repetitions: int | None
    repetition_count: int
    state: str = Field(description="active, paused, cancelled or ended")
    user_id: str | None
    zone: str
    rule: RuleResponse
    words: str | None = Field(description="The plain words it was told in, if it was.")
    start_at: str | None
    end_at: str | None
    jitter: int = Field(description="Each fire comes up to so many seconds later.")
    overlap: str
    misfire: str
    max_late: int | None = Field(description="Seconds after which a fire is left out.")
    attempts: int
    webhook: str | None
    timeline: bool = Field(description="For later: there is no timeline yet.")
    conversation_id: str | None
    updated_at: str

    @classmethod
    def of(cls, schedule: Schedule) -> "ScheduleResponse":
        what = schedule.what
        trigger, policy, forward = what.trigger, what.policy, what.forward
        rule = RuleDescription.of(trigger, schedule.intended_us)
        return cls(
            id=schedule.id,
            agent_id=what.agent_id,
            prompt_text=what.prompt,
            schedule_type=trigger.kind,
            schedule_value=trigger.value,
            next_run=next_run_time(schedule),
            active=schedule.state is ScheduleState.ACTIVE,
            created_at=iso_time(schedule.created_us),
            last_run=optional_iso_time(schedule.last_us),
            max_repetitions=what.max_repetitions,
            repetition_count=schedule.fired,
            state=schedule.state,
            user_id=what.user_id,
            zone=trigger.zone,
            rule=RuleResponse.of(rule)
            if schedule.state is ScheduleState.ACTIVE
            else RuleResponse.of_inactive(rule, schedule.state),
            words=what.words,
            start_at=optional_iso_time(trigger.start_us),
            end_at=optional_iso_time(trigger.end_us),
            jitter=trigger.jitter_s,
            overlap=policy.overlap,
            misfire=policy.misfire,
            max_late=policy.max_late_s,
            attempts=policy.attempts,
            webhook=forward.webhook,
            timeline=forward.timeline,
            conversation_id=what.conversation_id,
            updated_at=iso_time(schedule.updated_us),
        )


class ScheduleListResponse(ScheduleResponseModel):
    """Schedules by their numbers; pass `next` as `after`."""

    schedules: list[ScheduleResponse]
    next: int | None = None

    @classmethod
    def of(cls, page: SchedulePage) -> "ScheduleListResponse":
        return cls(schedules=[ScheduleResponse.of(schedule) for schedule in page.schedules], next=page.next)


class AttemptResponse(ScheduleResponseModel):
    """A failed attempt."""

    number: int
    started_at: str
    ended_at: str | None
    error: str | None

    @classmethod
    def of(cls, attempt: Attempt) -> "AttemptResponse":
        return cls(
            number=attempt.number,
            started_at=iso_time(attempt.started_us),
            ended_at=optional_iso_time(attempt.ended_us),
            error=attempt.error,
        )


class WebhookResponse(ScheduleResponseModel):
    """The delivery of the answer to the schedule's webhook."""

    state: str = Field(description="waiting (for its first try or another), sent, or dead: given up")
    attempt: int
    error: str | None = Field(description="Why the last try failed; the host alone is named.")

    @classmethod
    def of(cls, webhook: WebhookStatus) -> "WebhookResponse":
        return cls(state=webhook.state, attempt=webhook.attempt, error=webhook.error)


class RunResponse(ScheduleResponseModel):
    """The outcome of one fire."""

    delivery_id: str = Field(description="The same for every attempt; the agent is told it.")
    schedule_id: int
    agent_id: str
    user_id: str | None
    intended_at: str
    repetition: int
    standing: str = Field(description="running, waiting, delivered, dead, skipped or cancelled")
    attempt: int
    started_at: str | None
    ended_at: str | None
    reason: str | None
    answer: str | None = Field(description="What the agent said.")
    manual: bool = Field(description="It was asked for, and not due by the rule.")
    earlier: list[AttemptResponse]
    webhook: WebhookResponse | None = Field(None, description="Where there is a webhook, and an answer for it.")

    @classmethod
    def of(cls, run: RunRecord) -> "RunResponse":
        return cls(
            delivery_id=run.id,
            schedule_id=run.schedule_id,
            agent_id=run.agent_id,
            user_id=run.user_id,
            intended_at=iso_time(run.intended_us),
            repetition=run.number,
            standing=run.standing,
            attempt=run.attempt,
            started_at=optional_iso_time(run.started_us),
            ended_at=optional_iso_time(run.ended_us),
            reason=run.reason,
            answer=run.answer,
            manual=run.manual,
            earlier=[AttemptResponse.of(attempt) for attempt in run.earlier],
            webhook=None if run.forwarded is None else WebhookResponse.of(run.forwarded),
        )


class RunListResponse(ScheduleResponseModel):
    """Runs, the newest first; pass `next` as `before`."""

    runs: list[RunResponse]
    next: str | None = None

    @classmethod
    def of(cls, page: RunPage) -> "RunListResponse":
        return cls(runs=[RunResponse.of(run) for run in page.runs], next=page.next)


class RunStartedResponse(ScheduleResponseModel):
    """A run that was started by hand; the history has it under this id."""

    schedule_id: int
    delivery_id: str


class FireTime(ScheduleResponseModel):
    """One time at which a rule fires."""

    local: str
    utc: str


class PreviewResponse(ScheduleResponseModel):
    """The next times at which a rule fires."""

    rule: RuleResponse
    zone: str
    times: list[FireTime]

    @classmethod
    def fields_of(cls, preview: RulePreview) -> dict[str, object]:
        zone = ZoneInfo(preview.zone)
        times = [FireTime(local=from_us(at).astimezone(zone).isoformat(), utc=iso_time(at)) for at in preview.times]
        return {"rule": RuleResponse.of(preview.rule), "zone": preview.zone, "times": times}

    @classmethod
    def of(cls, preview: RulePreview) -> "PreviewResponse":
        return cls.model_validate(cls.fields_of(preview))


class SchedulerStatusResponse(ScheduleResponseModel):
    """The state of this process's scheduler, and the waiting prompts; only operators see figures about everybody."""

    running: bool
    autostart: bool
    interval: int = Field(description="Kept for older clients: the worker sleeps until the next due time.")
    concurrency: int
    in_flight: int | None
    due: int | None
    waiting: int | None = Field(description="Runs that wait for another try.")
    dead: int | None = Field(description="Runs that were given up.")
    delivered: int | None = Field(description="Since this process began.")
    failed: int | None
    last_run: str | None
    next_run: str | None
    oldest_overdue: float | None = Field(description="How many seconds late the latest is that nobody has begun.")

    @classmethod
    def of(cls, state: ExecutorState) -> "SchedulerStatusResponse":
        return cls(
            running=state.running,
            autostart=state.autostart,
            interval=state.interval_s,
            concurrency=state.concurrency,
            in_flight=state.in_flight,
            due=state.due,
            waiting=state.waiting,
            dead=state.dead,
            delivered=state.delivered,
            failed=state.failed,
            last_run=optional_iso_time(state.last_us),
            next_run=optional_iso_time(state.next_us),
            oldest_overdue=state.oldest_overdue_us / SECOND if state.oldest_overdue_us else None,
        )


@contextmanager
def explain_missing_rule(when: str) -> Generator[None]:
    """Add the interface's own ways to give a rule to the error for a missing one."""
    try:
        yield
    except MissingRule as error:
        raise Invalid(f"Must specify {when}") from error


def next_run_time(schedule: Schedule) -> str | None:
    """The next intended fire time; None for a schedule that is not active."""
    return optional_iso_time(schedule.intended_us) if schedule.state is ScheduleState.ACTIVE else None


def iso_time(microseconds: int) -> str:
    return from_us(microseconds).isoformat()


def optional_iso_time(microseconds: int | None) -> str | None:
    return None if microseconds is None else iso_time(microseconds)
