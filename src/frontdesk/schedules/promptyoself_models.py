"""Defines the inputs and outputs of the schedule tools, with the names and the order of PromptYoSelf.

Inputs are taken in any form: the scheduler itself reports what is wrong with them, in the words of the contract.
"""

from collections.abc import Sequence
from typing import Any, cast

from pydantic import Field
from pydantic_core import to_json

from frontdesk.coercion import (
    coerce_flag,
    loose_field,
    optional_interval,
    optional_number,
    optional_text,
    required_fields,
    to_text,
)
from frontdesk.operations import Answer, OperationRequest
from frontdesk.schedules.api_models import (
    PreviewResponse,
    RuleResponse,
    RunResponse,
    ScheduleResponse,
    ScheduleResponseModel,
    SchedulerStatusResponse,
    next_run_time,
    optional_iso_time,
)
from frontdesk.schedules.model import Misfire, Overlap, RunStatus, Schedule
from frontdesk.schedules.requests import (
    CLEARABLE_FIELDS,
    DEFAULT_LIMIT,
    DEFAULT_PREVIEW,
    MAX_LIMIT,
    MAX_LOOP_SECONDS,
    MAX_PREVIEW,
    ExecutedRun,
    NewSchedule,
    RunPage,
    SavedSchedule,
    ScheduleChange,
    SchedulePage,
)

TIME_HELP = (
    "One moment: an ISO 8601 time in the future with Z or an offset (2025-12-25T10:00:00Z), or plain words "
    "(in two minutes, tomorrow at 9 Berlin time)."
)
CRON_HELP = "A cron rule of five fields (0 9 * * MON-FRI), @daily and the like, or plain words (every weekday at 9)."
EVERY_HELP = "How often: 30s, 5m, 1h, 2d, a number of seconds, or plain words (every two hours)."
ZONE_HELP = "The time zone as an IANA name, e.g. Europe/Berlin; UTC when left out."
PROMPT_HELP = "What you want to be told then, written so that it is understood without this conversation."
START_HELP = "When to begin: a time in the future, as ISO 8601 or in plain words."
END_HELP = "Nothing fires after this time."
REPETITIONS_HELP = "Stop after so many runs."
DEFAULT_RUNS = 20
SKIP_VALIDATION_HELP = "Do not check that the agent exists."


class NewPromptInput(OperationRequest):
    """The fields of every new schedule."""

    prompt: object = loose_field("string", PROMPT_HELP)
    skip_validation: object = loose_field("boolean", SKIP_VALIDATION_HELP, default=False)


class ScheduleTimeInput(NewPromptInput):
    """A schedule that fires once."""

    model_config = required_fields("prompt", "time")

    time: object = loose_field("string", TIME_HELP)
    zone: object = loose_field("string", ZONE_HELP)

    @property
    def new_schedule(self) -> NewSchedule:
        return NewSchedule(
            to_text(self.prompt),
            time=to_text(self.time),
            zone=optional_text(self.zone),
            skip_validation=coerce_flag(self.skip_validation),
        )


class ScheduleCronInput(NewPromptInput):
    """A schedule by a cron rule."""

    model_config = required_fields("prompt", "cron")

    cron: object = loose_field("string", CRON_HELP)
    zone: object = loose_field("string", ZONE_HELP)
    start_at: object = loose_field("string", START_HELP)
    end_at: object = loose_field("string", END_HELP)
    max_repetitions: object = loose_field("integer", REPETITIONS_HELP, minimum=1)

    @property
    def new_schedule(self) -> NewSchedule:
        return NewSchedule(
            to_text(self.prompt),
            cron=to_text(self.cron),
            zone=optional_text(self.zone),
            start_at=optional_text(self.start_at),
            end_at=optional_text(self.end_at),
            max_repetitions=optional_number(self.max_repetitions),
            skip_validation=coerce_flag(self.skip_validation),
        )


class ScheduleEveryInput(NewPromptInput):
    """A schedule at an interval."""

    model_config = required_fields("prompt", "every")

    every: object = loose_field("string", EVERY_HELP)
    start_at: object = loose_field("string", START_HELP)
    end_at: object = loose_field("string", END_HELP)
    max_repetitions: object = loose_field("integer", REPETITIONS_HELP, minimum=1)

    @property
    def new_schedule(self) -> NewSchedule:
        return NewSchedule(
            to_text(self.prompt),
            every=optional_interval(self.every) or to_text(self.every),
            start_at=optional_text(self.start_at),
            end_at=optional_text(self.end_at),
            max_repetitions=optional_number(self.max_repetitions),
            skip_validation=coerce_flag(self.skip_validation),
        )


class RuleInput(OperationRequest):
    """The fields of a rule."""

    time: object = loose_field("string", TIME_HELP)
    cron: object = loose_field("string", CRON_HELP)
    every: object = loose_field("string", EVERY_HELP)
    zone: object = loose_field("string", ZONE_HELP)
    start_at: object = loose_field("string", START_HELP)
    end_at: object = loose_field("string", END_HELP)

    @property
    def rule_fields(self) -> dict[str, Any]:
        names = ("time", "cron", "zone", "start_at", "end_at")
        texts = {name: optional_text(getattr(self, name)) for name in names}
        return texts | {"every": optional_interval(self.every), "any_kind": True}


class RuleOptionsInput(RuleInput):
    """The fields of a rule, and the options for late, missed and failed runs."""

    max_repetitions: object = loose_field("integer", REPETITIONS_HELP, minimum=1)
    jitter: object = loose_field(
        "string", "Let each run come up to this much later, e.g. 30s, so that not all come at once."
    )
    overlap: object = loose_field(
        "string",
        "What a run does that falls into the one before it: queue (wait), skip, or allow (run beside it).",
        enum=list(Overlap),
    )
    misfire: object = loose_field(
        "string",
        "After a time when nothing ran: once (one run makes up for all that were missed), all, or skip.",
        enum=list(Misfire),
    )
    max_late: object = loose_field("string", "Leave out a run that would be later than this, e.g. 1h.")
    attempts: object = loose_field("integer", "How often to try to deliver one run.", minimum=1)
    webhook: object = loose_field("string", "An https address that the agent's answer is sent to.")
    timeline: object = loose_field("boolean", "For later: there is no timeline yet, so leave it out.")
    conversation_id: object = loose_field("string", "The conversation to speak in; your main one when left out.")

    @property
    def option_fields(self) -> dict[str, Any]:
        texts = {
            name: optional_text(getattr(self, name)) for name in ("overlap", "misfire", "webhook", "conversation_id")
        }
        lengths = {name: optional_interval(getattr(self, name)) for name in ("jitter", "max_late")}
        numbers = {"max_repetitions": optional_number(self.max_repetitions), "attempts": optional_number(self.attempts)}
        timeline = None if self.timeline is None else coerce_flag(self.timeline)
        return self.rule_fields | texts | lengths | numbers | {"timeline": timeline}


class RegisterInput(RuleOptionsInput):
    """A schedule of any kind."""

    model_config = required_fields("prompt")

    prompt: object = loose_field("string", PROMPT_HELP)
    skip_validation: object = loose_field("boolean", SKIP_VALIDATION_HELP, default=False)

    @property
    def new_schedule(self) -> NewSchedule:
        return NewSchedule(
            to_text(self.prompt), **self.option_fields, skip_validation=coerce_flag(self.skip_validation)
        )


class ScheduleIdInput(OperationRequest):
    """Which schedule."""

    model_config = required_fields("schedule_id")

    schedule_id: object = loose_field("integer", "The schedule's number, as promptyoself_list shows it.")


class UpdateScheduleInput(RuleOptionsInput):
    """The changes of a schedule."""

    model_config = required_fields("schedule_id")

    schedule_id: object = loose_field("integer", "The schedule's number, as promptyoself_list shows it.")
    prompt: object = loose_field("string", "The new text.")
    clear: object = loose_field(
        "array",
        f"Names of what is to be taken away: {', '.join(CLEARABLE_FIELDS)}.",
        items={"type": "string"},
    )

    @property
    def change(self) -> ScheduleChange:
        return ScheduleChange(
            optional_text(self.prompt), **self.option_fields, clear=frozenset(split_words(self.clear))
        )


class ScheduleListInput(OperationRequest):
    """Which schedules to list."""

    include_cancelled: object = loose_field("boolean", "Also those that are cancelled or over.", default=False)
    after: object = loose_field("integer", "Go on after the schedule with this number: `next` of the answer before.")
    limit: object = loose_field("integer", "How many at most.", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIMIT)


class RunHistoryInput(OperationRequest):
    """Which runs to list."""

    schedule_id: object = loose_field("integer", "Only runs of this schedule; all of yours when left out.")
    standing: object = loose_field(
        "string",
        "Only runs that stand so; dead ones were given up after all attempts.",
        enum=list(RunStatus),
    )
    limit: object = loose_field(
        "integer", "How many at most, the newest first.", default=DEFAULT_RUNS, minimum=1, maximum=MAX_LIMIT
    )
    before: object = loose_field("string", "Go on before this time, or with `next` of the answer before.")


class PreviewInput(RuleInput):
    """A schedule, or a rule to try, whose next times to show."""

    schedule_id: object = loose_field("integer", "A schedule that is there; or give a rule instead, to try it.")
    count: object = loose_field(
        "integer", "How many times to tell.", default=DEFAULT_PREVIEW, minimum=1, maximum=MAX_PREVIEW
    )


class ExecuteInput(OperationRequest):
    """Whether to run once or in a loop."""

    loop: object = loose_field("boolean", "Go on for a while instead of running once.", default=False)
    interval: object = loose_field("integer", "Seconds from one round to the next, with loop.", default=60, minimum=1)
    max_seconds: object = loose_field(
        "integer", "With loop: how long to go on.", default=MAX_LOOP_SECONDS, minimum=1, maximum=MAX_LOOP_SECONDS
    )


class UploadToolInput(OperationRequest):
    """A tool for Letta."""

    model_config = required_fields("source_code")

    source_code: object = loose_field(
        "string", "The whole Python source: one function with type hints and a docstring."
    )
    name: object = loose_field("string", "What to call it in logs.")
    description: object = loose_field("string", "What it is for.")


class DefaultAgentInput(OperationRequest):
    """The default agent of calls that name none."""

    model_config = required_fields("agent_id")

    agent_id: object = loose_field("string", "The agent's id; leave it empty to take the default away.")


class ScopedAgentInput(DefaultAgentInput):
    """The default agent of a scope."""

    scope: object = loose_field(
        "string", "Whose default; your own when left out. Another's takes the scope schedules:admin."
    )


class ScopeInput(OperationRequest):
    """The scope of a default agent."""

    scope: object = loose_field("string", "Whose default; your own when left out.")


def split_words(value: object) -> Sequence[str]:
    """Names from a list, or from a text with commas."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    return [str(word) for word in cast("list[object]", value)] if isinstance(value, list) else []


class ScheduleToolOutput(ScheduleResponseModel):
    """The result of a tool; fields that were not set are left out."""

    status: str = "success"

    def answer(self) -> Answer:
        data: dict[str, Any] = {"status": self.status, **self.model_dump(mode="json", exclude_unset=True)}
        return Answer(to_json(data).decode(), data)


class ScheduleListOutput(ScheduleToolOutput):
    """Schedules by their numbers."""

    schedules: list[ScheduleResponse]
    count: int
    next: int | None = Field(default=None, description="There are more: pass this as `after`.")

    @classmethod
    def of(cls, page: SchedulePage) -> "ScheduleListOutput":
        schedules = [ScheduleResponse.of(schedule) for schedule in page.schedules]
        output = cls(schedules=schedules, count=len(schedules))
        return output if page.next is None else output.model_copy(update={"next": page.next})


class ScheduleOutput(ScheduleToolOutput):
    """A new or changed schedule, with its rule as it was understood."""

    id: int
    next_run: str | None
    message: str
    state: str
    schedule_type: str
    schedule_value: str
    rule: RuleResponse

    @classmethod
    def of(cls, added: SavedSchedule, message: str) -> "ScheduleOutput":
        schedule = added.schedule
        trigger = schedule.what.trigger
        return cls(
            id=schedule.id,
            next_run=next_run_time(schedule),
            message=message,
            state=schedule.state,
            schedule_type=trigger.kind,
            schedule_value=trigger.value,
            rule=RuleResponse.of(added.rule),
        )


class CancelledScheduleOutput(ScheduleToolOutput):
    """A cancelled schedule."""

    cancelled_id: int
    message: str


class ScheduleStateOutput(ScheduleToolOutput):
    """The state of a schedule."""

    id: int
    state: str
    next_run: str | None
    message: str

    @classmethod
    def of(cls, schedule: Schedule, message: str) -> "ScheduleStateOutput":
        return cls(id=schedule.id, state=schedule.state, next_run=next_run_time(schedule), message=message)


class RunStartedOutput(ScheduleToolOutput):
    """A run that was started by hand."""

    id: int
    delivery_id: str
    message: str


class ExecutedPrompt(ScheduleResponseModel):
    """The outcome of one due prompt; one that was not delivered has an `error`."""

    id: int
    agent_id: str
    delivered: bool
    error: str | None = None
    next_run: str | None = None
    repetition_count: int = 0
    max_repetitions: int | None = None
    completed: bool = False
    delivery_id: str

    @classmethod
    def of(cls, run: ExecutedRun) -> "ExecutedPrompt":
        fields: dict[str, Any] = {
            "id": run.id,
            "agent_id": run.agent_id,
            "delivered": run.delivered,
            "next_run": optional_iso_time(run.next_us),
            "delivery_id": run.delivery_id,
        }
        if not run.delivered:
            return cls(**fields, error=run.error)
        return cls(
            **fields,
            repetition_count=run.repetition_count,
            max_repetitions=run.max_repetitions,
            completed=run.completed,
        )


class ExecutionOutput(ScheduleToolOutput):
    """The prompts that were run; a loop reports only its end."""

    executed: list[ExecutedPrompt] = Field(default_factory=list[ExecutedPrompt])
    message: str

    @classmethod
    def of(cls, executed: Sequence[ExecutedRun]) -> "ExecutionOutput":
        later = sum(run.later for run in executed)
        message = f"{len(executed) - later} prompts executed"
        if later:
            message += f"; {later} handed to the worker: they come when your present turn has ended"
        return cls(executed=[ExecutedPrompt.of(run) for run in executed], message=message)


class RunHistoryOutput(ScheduleToolOutput):
    """Runs, the newest first."""

    runs: list[RunResponse]
    count: int
    next: str | None = Field(default=None, description="There are more: pass this as `before`.")

    @classmethod
    def of(cls, page: RunPage) -> "RunHistoryOutput":
        runs = [RunResponse.of(run) for run in page.runs]
        output = cls(runs=runs, count=len(runs))
        return output if page.next is None else output.model_copy(update={"next": page.next})


class PreviewOutput(ScheduleToolOutput, PreviewResponse):
    """The next times of a rule."""


class ConnectionTestOutput(ScheduleToolOutput):
    """The agent host answered."""

    message: str
    details: dict[str, Any]


class ListedAgent(ScheduleResponseModel):
    """An agent."""

    id: str
    name: str
    description: str


class AgentListOutput(ScheduleToolOutput):
    """Agents for which the caller may schedule."""

    agents: list[ListedAgent]


class UploadedToolOutput(ScheduleToolOutput):
    """A tool that Letta now has."""

    tool_id: str
    name: str | None


class SchedulerStatusOutput(ScheduleToolOutput, SchedulerStatusResponse):
    """The state of the scheduler."""


class DefaultAgentOutput(ScheduleToolOutput):
    """The default agent of a scope."""

    scope: str
    agent_id: str | None
    message: str


class DiagnosticsOutput(ScheduleToolOutput):
    """The agent of a call without an agent_id, and how it was inferred."""

    status: str = "ok"
    ctx_present: bool
    ctx_metadata_keys: list[str]
    env: dict[str, bool]
    single_agent_fallback_enabled: bool
    inferred_agent_id: str | None
    inference_debug: dict[str, str]
