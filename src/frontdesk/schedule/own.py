"""The tools with which a built-in agent plans for itself: `schedule_prompt`, `list_schedules`, `cancel_schedule`."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field, SecretStr

from frontdesk.identity.model import Caller, Source
from frontdesk.identity.rights import SCHEDULES_READ, SCHEDULES_WRITE, runs_installation
from frontdesk.loop.tools import Given, Tool, ToolOutcome, typed_tool
from frontdesk.schedule import rights
from frontdesk.schedule.asked import Asked, Rule
from frontdesk.schedule.model import Schedule
from frontdesk.schedule.service import Schedules

SCHEDULE = (
    "Have yourself prompted later, whether anybody talks with you then or not: a reminder, a check, the next step of "
    "something long. Plain words are fine for the time: 'in two minutes', 'tomorrow at 9am Berlin time', 'every "
    "weekday at 9', or a cron rule. The answer says the exact rule; check it. What repeats does so by itself until it "
    "is cancelled."
)
LIST = "The prompts that you have scheduled for yourself, with their numbers, rules and next times."
CANCEL = "Cancel a scheduled prompt for good, by its number."
NONE = "Nothing is scheduled."
LISTED = 50
SHOWN = 200


class Plan(Given):
    """What to be told, and when."""

    prompt: str = Field(min_length=1, description="What you want to be told then, understandable by itself")
    when: str = Field(min_length=1, max_length=500, description="When, in plain words or as a rule")
    zone: str | None = Field(None, max_length=100, description="The time zone as an IANA name; UTC when left out")
    max_repetitions: int | None = Field(None, ge=1, description="Stop after so many runs")


class Nothing(Given):
    """Nothing to say."""


class Which(Given):
    """Which schedule."""

    schedule_id: int = Field(description="Its number, as list_schedules shows it")


class OwnSchedules:
    """Handed to the agent host before the scheduler stands, and opened once it does."""

    def __init__(self) -> None:
        self._schedules: Schedules | None = None

    def open(self, schedules: Schedules) -> None:
        self._schedules = schedules

    def of(self, caller: Caller, _user_token: SecretStr | None) -> Sequence[Tool]:
        """The three tools, for one agent, and for the person it works for."""
        schedules = self._schedules
        if schedules is None or caller.agent_id is None:
            return ()
        # The agent acts here, and that it is this one we know ourselves. The credential of a person does not name it.
        of_person = caller.user_id is not None and not runs_installation(caller)
        source = Source.NONE if of_person else Source.CREDENTIAL
        own = replace(caller, source=source, verified=True, local=False, any_agent=False)

        async def plan(given: Plan) -> ToolOutcome:
            asked = Asked(given.prompt, when=given.when, zone=given.zone, max_repetitions=given.max_repetitions)
            added = await schedules.add(own, asked)
            return ToolOutcome(f"Scheduled with number {added.schedule.id}: {added.rule.sentence}")

        async def show(_given: Nothing) -> ToolOutcome:
            listed = await schedules.looking.of_turn(own, LISTED)
            lines = [_told(one) for one in listed.schedules]
            return ToolOutcome("\n".join([*lines, *(["There are more."] if listed.next else [])]) or NONE)

        async def cancel(given: Which) -> ToolOutcome:
            gone = await schedules.cancel(own, given.schedule_id, rights.of_turn(own))
            return ToolOutcome(f"Schedule {gone.id} cancelled")

        return [
            typed_tool("schedule_prompt", SCHEDULE, Plan, plan, SCHEDULES_WRITE),
            typed_tool("list_schedules", LIST, Nothing, show, SCHEDULES_READ, reads_only=True),
            typed_tool("cancel_schedule", CANCEL, Which, cancel, SCHEDULES_WRITE),
        ]


def _told(one: Schedule) -> str:
    rule = Rule.of(one.what.trigger, one.intended_us)
    return f"{one.id}: {rule.sentence}; {one.state}; {one.what.prompt[:SHOWN]}"
