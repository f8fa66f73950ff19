"""Defines the tools with which a built-in agent schedules prompts for itself."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field, SecretStr

from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.identity.rights import SCHEDULES_READ, SCHEDULES_WRITE, runs_installation
from frontdesk.llm.tools import Tool, ToolInput, ToolOutcome, typed_tool
from frontdesk.operations import Operation
from frontdesk.schedules.access import owner_filter_for_turn
from frontdesk.schedules.model import Schedule
from frontdesk.schedules.requests import NewSchedule, RuleDescription
from frontdesk.schedules.service import ScheduleService

SCHEDULE_DESCRIPTION = (
    "Have yourself prompted later, whether anybody talks with you then or not: a reminder, a check, the next step of "
    "something long. Plain words are fine for the time: 'in two minutes', 'tomorrow at 9am Berlin time', 'every "
    "weekday at 9', or a cron rule. The answer says the exact rule; check it. What repeats does so by itself until it "
    "is cancelled."
)
LIST_DESCRIPTION = "The prompts that you have scheduled for yourself, with their numbers, rules and next times."
CANCEL_DESCRIPTION = "Cancel a scheduled prompt for good, by its number."
NOTHING_SCHEDULED = "Nothing is scheduled."
MAX_LISTED = 50
PROMPT_LENGTH = 200


class SchedulePromptInput(ToolInput):
    """The prompt and its time."""

    prompt: str = Field(min_length=1, description="What you want to be told then, understandable by itself")
    when: str = Field(min_length=1, max_length=500, description="When, in plain words or as a rule")
    zone: str | None = Field(None, max_length=100, description="The time zone as an IANA name; UTC when left out")
    max_repetitions: int | None = Field(None, ge=1, description="Stop after so many runs")


class ListSchedulesInput(ToolInput):
    """No arguments."""


class CancelScheduleInput(ToolInput):
    """Which schedule."""

    schedule_id: int = Field(description="Its number, as list_schedules shows it")


class BuiltinScheduleTools:
    """Offers the tools. The agent host gets this before schedules are open; `open` completes it."""

    def __init__(self) -> None:
        self._schedules: ScheduleService | None = None

    def open(self, schedules: ScheduleService) -> None:
        self._schedules = schedules

    def of(self, caller: Caller, _user_token: SecretStr | None) -> Sequence[Tool]:
        """The three tools, for one agent and the person it works for."""
        schedules = self._schedules
        if schedules is None or caller.agent_id is None:
            return ()
        # The agent itself calls, and we identified it. The credential of a person does not name it.
        of_person = caller.user_id is not None and not runs_installation(caller)
        source = AgentIdSource.NONE if of_person else AgentIdSource.CREDENTIAL
        own = replace(caller, source=source, verified=True, local=False, any_agent=False)

        async def plan(request: SchedulePromptInput) -> ToolOutcome:
            new = NewSchedule(
                request.prompt, when=request.when, zone=request.zone, max_repetitions=request.max_repetitions
            )
            added = await schedules.add(own, new)
            return ToolOutcome(f"Scheduled with number {added.schedule.id}: {added.rule.sentence}")

        async def show(_given: ListSchedulesInput) -> ToolOutcome:
            listed = await schedules.queries.list_for_turn(own, MAX_LISTED)
            lines = [_format_schedule(one) for one in listed.schedules]
            return ToolOutcome("\n".join([*lines, *(["There are more."] if listed.next else [])]) or NOTHING_SCHEDULED)

        async def cancel(request: CancelScheduleInput) -> ToolOutcome:
            gone = await schedules.cancel(own, request.schedule_id, owner_filter_for_turn(own))
            return ToolOutcome(f"Schedule {gone.id} cancelled")

        return [
            typed_tool("schedule_prompt", SCHEDULE_DESCRIPTION, SchedulePromptInput, plan, SCHEDULES_WRITE),
            typed_tool("list_schedules", LIST_DESCRIPTION, ListSchedulesInput, show, SCHEDULES_READ, reads_only=True),
            typed_tool("cancel_schedule", CANCEL_DESCRIPTION, CancelScheduleInput, cancel, SCHEDULES_WRITE),
        ]


def _format_schedule(one: Schedule) -> str:
    rule = RuleDescription.of(one.what.trigger, one.intended_us)
    return f"{one.id}: {rule.sentence}; {one.state}; {one.what.prompt[:PROMPT_LENGTH]}"


SCHEDULE_OPERATIONS: tuple[Operation, ...] = ()
