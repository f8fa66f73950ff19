"""What the schedules API is asked; the scheduler itself says what is wrong with a rule or a number."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from frontdesk.schedule.asked import MOST_TIMES, TIMES, Asked, Change, When
from frontdesk.schedule.model import Misfire, Overlap

Interval = Annotated[str | int | None, Field(description="30s, 5m, 1h, 2d, or a number of seconds.")]
Number = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1})]
Text = Annotated[str | None, Field(max_length=2000)]
LATER = "For later: there is no timeline yet, and true is refused."
WHEN = "Any of the three, or plain words: in two minutes, every weekday at 9 Berlin time."


class RuleAsked(BaseModel):
    """When. What is misspelt is refused, so that no limit is lost silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_id: Annotated[
        Any,
        WithJsonSchema({"type": "string"}),
        Field(description="The agent; not needed where the x-agent-id header or the credential names it."),
    ] = None
    when: Annotated[Text, Field(description=WHEN, examples=["every weekday at 9 Berlin time"])] = None
    time: Annotated[Text, Field(description="Once, at this time: ISO 8601 with Z or an offset.")] = None
    cron: Annotated[Text, Field(description="Five fields, or @daily and the like.")] = None
    every: Interval = None
    zone: Annotated[Text, Field(description="An IANA name, e.g. Europe/Berlin; UTC unless said.")] = None
    start_at: Text = None
    end_at: Text = None


class PreviewAsked(RuleAsked):
    """A rule to try."""

    count: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MOST_TIMES})] = TIMES

    @property
    def said(self) -> When:
        return When(**self.model_dump(exclude={"count", "agent_id"}))


class WholeRule(RuleAsked):
    """When, and what to do when things do not go as planned."""

    jitter: Annotated[Interval, Field(description="Each fire comes up to this much later.")] = None
    max_repetitions: Number = None
    overlap: Annotated[Text, Field(description=", ".join(Overlap))] = None
    misfire: Annotated[Text, Field(description=", ".join(Misfire))] = None
    max_late: Annotated[Interval, Field(description="A fire later than this is left out.")] = None
    attempts: Number = None
    webhook: Text = None
    timeline: Annotated[bool | None, Field(description=LATER)] = None
    conversation_id: Text = None


class NewAsked(WholeRule):
    """A schedule to be made."""

    prompt: Annotated[str, Field(examples=["Write the daily report"])]
    skip_validation: Annotated[bool, Field(description="Do not check that the agent exists.")] = False

    @property
    def asked(self) -> Asked:
        # Who it is for has been settled with who is calling.
        return Asked(**self.model_dump(exclude={"agent_id"}))


class ChangeAsked(WholeRule):
    """What is to be different; null takes a thing away, and what is left out stays."""

    prompt: str | None = None

    @property
    def change(self) -> Change:
        given = self.model_dump(exclude_unset=True, exclude={"agent_id"})
        cleared = frozenset(name for name, value in given.items() if value is None)
        return Change(**{name: value for name, value in given.items() if value is not None}, clear=cleared)
