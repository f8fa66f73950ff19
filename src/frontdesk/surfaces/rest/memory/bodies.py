"""What is sent where it is more than a record itself."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from frontdesk.memory.asked.common import Asked, Dollars, Id, Line, Metadata, Minutes, Percent, Tags, Text, When, Zone
from frontdesk.memory.asked.queue import Artifact, Logs
from frontdesk.memory.asked.tasks import NewTaskContent, TaskContent
from frontdesk.memory.model import Relation, TaskStatus

LeaseSeconds = Annotated[
    int, Field(ge=1, le=86_400, description="For how long whoever takes it may be silent; a quarter of an hour else.")
]
Claims = Annotated[int, Field(ge=0, le=1_000_000_000, description="What `claims` was when it was taken.")]


class NewTask(Asked):
    """A new task."""

    type: Literal["task"] = "task"
    content: NewTaskContent
    tags: Tags | None = None
    metadata: Metadata | None = None

    def fields(self) -> Mapping[str, Any]:
        return {**self.content.said(), **self.said("type", "content")}


class NewSubtask(NewTask):
    """A new task under another."""

    parent_task_id: Id


class ChangedTask(Asked):
    """What is to be different; what is left out stays, and null takes a thing away."""

    type: Literal["task"] = "task"
    content: TaskContent | None = None
    tags: Tags | None = None
    metadata: Metadata | None = None

    def fields(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = self.content.changes() if self.content else {}
        return {**content, **self.changes("type", "content")}


class NewStatus(Asked):
    """How a task stands."""

    status: TaskStatus
    notes: Text | None = Field(None, description="Goes after the description.")
    progress: Percent | None = None


class NewOrder(Asked):
    """The subtasks of a task in this order; those that are not named come after them."""

    parent_task_id: Id
    task_ids: list[Id] = Field(min_length=1, max_length=1000)


class NewRelation(Asked):
    """What a task is to another: it depends on it, is blocked by it, or is related to it."""

    task_id: Id
    related_task_id: Id
    relation: Relation


class StartTimer(Asked):
    """How to start a timer."""

    autoSwitch: bool = Field(default=False, description="Stop the one that runs.")  # noqa: N815 - the contract's name
    description: Text | None = Field(default=None, description="What you are doing.")


class StopTimer(Asked):
    """How to stop a timer."""

    overrideEndAt: When | None = Field(default=None, description="As of then.")  # noqa: N815 - the contract's name


class Claim(Asked):
    """For which agent to take the next piece of work."""

    agent_name: Line | None = Field(
        default=None, min_length=1, description="The agent's name or id; not needed where the caller is that agent."
    )
    lease_seconds: LeaseSeconds | None = None


class Accept(Asked):
    """What it will take."""

    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None
    agent_name: Line | None = Field(default=None, min_length=1, description="Who takes it, where no agent calls.")
    lease_seconds: LeaseSeconds | None = None


class Renew(Asked):
    """Hold it for longer."""

    claims: Claims
    lease_seconds: LeaseSeconds | None = None


class Complete(Asked):
    """What came of it."""

    output: Text | None = None
    artifacts: list[Artifact] | None = Field(default=None, max_length=100)
    logs: Logs | None = None
    metrics: Metadata | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None
    claims: Claims | None = None


class Fail(Asked):
    """Why not."""

    error_message: Text = Field(min_length=1)
    claims: Claims | None = None


class PersonSettings(Asked):
    """Where the person is."""

    timezone: Zone = Field(min_length=1, examples=["Europe/Berlin"])


class Erase(Asked):
    """That it is meant."""

    confirm: Literal["erase"]
