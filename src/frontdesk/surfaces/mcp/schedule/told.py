"""What the schedule tools answer: the contract's names, and after them what we add."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from pydantic_core import to_json

from frontdesk.schedule.asked import Added, Executed, Listed, PastListed
from frontdesk.schedule.model import Schedule
from frontdesk.surfaces.mcp.tool import Result
from frontdesk.surfaces.scheduled import ExecutorShape, Previewed, RuleShape, Run, Scheduled, Shape, maybe, next_run


class Told(Shape):
    """An answer; fields that were not given are not told."""

    status: str = "success"

    def result(self) -> Result:
        structured: dict[str, Any] = {"status": self.status, **self.model_dump(mode="json", exclude_unset=True)}
        return Result([{"type": "text", "text": to_json(structured).decode()}], structured)


class Schedules(Told):
    """Schedules by their numbers."""

    schedules: list[Scheduled]
    count: int
    next: int | None = Field(default=None, description="There are more: pass this as `after`.")

    @classmethod
    def of(cls, listed: Listed) -> "Schedules":
        shown = [Scheduled.of(one) for one in listed.schedules]
        told = cls(schedules=shown, count=len(shown))
        return told if listed.next is None else told.model_copy(update={"next": listed.next})


class Made(Told):
    """A schedule that was made or changed, with its rule as it is understood."""

    id: int
    next_run: str | None
    message: str
    state: str
    schedule_type: str
    schedule_value: str
    rule: RuleShape

    @classmethod
    def of(cls, added: Added, message: str) -> "Made":
        schedule = added.schedule
        trigger = schedule.what.trigger
        return cls(
            id=schedule.id,
            next_run=next_run(schedule),
            message=message,
            state=schedule.state,
            schedule_type=trigger.kind,
            schedule_value=trigger.value,
            rule=RuleShape.of(added.rule),
        )


class Cancelled(Told):
    """A schedule that fires no more."""

    cancelled_id: int
    message: str


class Stands(Told):
    """How a schedule stands."""

    id: int
    state: str
    next_run: str | None
    message: str

    @classmethod
    def of(cls, schedule: Schedule, message: str) -> "Stands":
        return cls(id=schedule.id, state=schedule.state, next_run=next_run(schedule), message=message)


class Running(Told):
    """A run that was asked for."""

    id: int
    delivery_id: str
    message: str


class ExecutedPrompt(Shape):
    """What became of one due prompt; one that was not delivered has an `error` and is tried again at `next_run`."""

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
    def of(cls, one: Executed) -> "ExecutedPrompt":
        named: dict[str, Any] = {"id": one.id, "agent_id": one.agent_id, "delivered": one.delivered}
        if not one.delivered:
            return cls(**named, error=one.error, next_run=maybe(one.next_us), delivery_id=one.delivery_id)
        return cls(
            **named,
            next_run=maybe(one.next_us),
            repetition_count=one.repetition_count,
            max_repetitions=one.max_repetitions,
            completed=one.completed,
            delivery_id=one.delivery_id,
        )


class Execution(Told):
    """What was run; a loop says only that it is over."""

    executed: list[ExecutedPrompt] = Field(default_factory=list[ExecutedPrompt])
    message: str

    @classmethod
    def of(cls, executed: Sequence[Executed]) -> "Execution":
        later = sum(one.later for one in executed)
        message = f"{len(executed) - later} prompts executed"
        if later:
            message += f"; {later} handed to the worker: they come when your present turn has ended"
        return cls(executed=[ExecutedPrompt.of(one) for one in executed], message=message)


class Runs(Told):
    """What became of runs, the newest first."""

    runs: list[Run]
    count: int
    next: str | None = Field(default=None, description="There are more: pass this as `before`.")

    @classmethod
    def of(cls, listed: PastListed) -> "Runs":
        runs = [Run.of(past) for past in listed.runs]
        told = cls(runs=runs, count=len(runs))
        return told if listed.next is None else told.model_copy(update={"next": listed.next})


class Upcoming(Told, Previewed):
    """When a rule fires next."""


class Connection(Told):
    """The agent host answers."""

    message: str
    details: dict[str, Any]


class ListedAgent(Shape):
    """An agent."""

    id: str
    name: str
    description: str


class Agents(Told):
    """The agents there are."""

    agents: list[ListedAgent]


class UploadedTool(Told):
    """A tool that Letta now has."""

    tool_id: str
    name: str | None


class ExecutorStatus(Told, ExecutorShape):
    """How the scheduler is doing."""


class Default(Told):
    """Which agent stands in."""

    scope: str
    agent_id: str | None
    message: str


class Diagnostics(Told):
    """Which agent a call without an agent_id is for, and why."""

    status: str = "ok"
    ctx_present: bool
    ctx_metadata_keys: list[str]
    env: dict[str, bool]
    single_agent_fallback_enabled: bool
    inferred_agent_id: str | None
    inference_debug: dict[str, str]
