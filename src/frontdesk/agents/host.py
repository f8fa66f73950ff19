"""Defines `AgentHost`, the port to the software that runs the agents, and the values that it takes and gives."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

import anyio
from pydantic import SecretStr

from frontdesk.agents.turns.model import TurnRecord
from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ApprovalRequest, Compacted, Event, Failed
from frontdesk.llm.tools import Tool

MAX_STEPS = 10


class Everyone(Enum):
    """Stands for all people, when the operator reads data of more than one person."""

    EVERYONE = "everyone"


EVERYONE: Final = Everyone.EVERYONE
# A person by id, None for a turn without a person, or everyone.
PersonFilter = str | Everyone | None


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as its host lists it.

    `owner` is the person who made it; None if the installation's operator made it. `serves` describes the people that
    it serves, on hosts that keep people apart by agents.
    """

    id: str
    name: str
    description: str = ""
    model: str | None = None
    owner: str | None = None
    serves: str = ""


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """A memory block: a labelled text that the model sees in every turn.

    A `per_person` block has a text for each person that the agent works for. With None, the label decides: `human` is
    per person, other blocks are shared. With `people_write`, every turn may change a shared block; otherwise only turns
    for a person who runs the agent may. A block is `read_only` for a reader who may not change it.
    """

    label: str
    value: str
    description: str = ""
    limit: int = 5000
    read_only: bool = False
    per_person: bool | None = None
    people_write: bool = False


@dataclass(frozen=True, slots=True)
class BlockVersion:
    """The value that a memory block had until it was changed."""

    value: str
    until: datetime


@dataclass(frozen=True, slots=True)
class NewAgent:
    """The parts of an agent to make; the host chooses the model if none is given.

    `owner` is the person who makes it and so runs it; None if the installation's operator makes it.
    """

    name: str
    description: str = ""
    model: str | None = None
    blocks: Sequence[MemoryBlock] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of a person with an agent; `user_id` is None if it belongs to nobody in particular."""

    id: str
    agent_id: str
    created_at: datetime
    title: str = ""
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool attached to an agent; `server` and `remote_name` say which server has it, and its name there.

    `parameters` is its schema if it is known; a host that needs a missing schema asks the server. `tags` are the host's
    own categories of tools.
    """

    name: str
    description: str
    needs_approval: bool = False
    server: str | None = None
    remote_name: str | None = None
    parameters: Mapping[str, Any] | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ToolChange:
    """The result of a change to an agent's tools: the names, and the reasons of those that failed."""

    attached: Sequence[str] = ()
    detached: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's decision on one `ApprovalRequest`."""

    call_id: str
    approve: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Media:
    """An image or audio in a message; `mime` is its type, such as `image/png` or `audio/wav`."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that a turn may use; `efforts` are its levels of reasoning effort, the lowest first."""

    name: str
    title: str = ""
    efforts: Sequence[str] = ()
    images: bool = False
    sounds: bool = False


@dataclass(frozen=True, slots=True)
class HostFeatures:
    """Features that only some hosts have.

    `can_require_approval`: hold back any tool that a prompt names. `can_steer`: take new messages while the agent
    works. `can_rewind`: delete the newest turns. `keeps_context`: the context of a prompt stays in the conversation, so
    it need not be sent again. `keeps_turns`: know for every message in which turn it was.
    """

    can_require_approval: bool = False
    can_steer: bool = False
    can_rewind: bool = False
    keeps_context: bool = False
    keeps_turns: bool = False


def no_new_texts() -> Sequence[str]:
    """The default of `Prompt.heard`: the person has said nothing more."""
    return ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """One turn to take: a message of the person, or decisions on the calls that wait for approval.

    `conversation_id` None is the person's first conversation with the agent. `tools` are the caller's, for this turn
    only. In another person's conversation, only a person who runs the installation may send a prompt; the turn is then
    for the person of the conversation.
    `user_token` goes to tool servers that are set up to act for the user, and is forgotten with the turn.
    A `patient` prompt waits until the agent has finished its present work, even work that began outside Frontdesk. A
    `follow_up` waits too, and runs in the conversation of that work if the host knows it.
    `otid` is the sender's own id for the turn. `again` means that the turn is sent a second time because its outcome is
    unknown. The host then does not repeat the message if it can tell: a completed turn is replayed, and an interrupted
    one is continued, or replayed as far as it went.
    `context` describes to the model where it is, in this turn only; `model` and `effort` replace the agent's own.
    `asks` are tools that need approval in this turn even if they usually do not, and `heard` returns what the person
    has said since its last call; both work only if the host's features include them. `runs`: the sender runs the
    installation, even if the caller does not show it.
    """

    agent_id: str
    caller: Caller
    text: str | None = None
    approvals: Sequence[Approval] = ()
    conversation_id: str | None = None
    tools: Sequence[Tool] = ()
    max_steps: int = MAX_STEPS
    user_token: SecretStr | None = None
    follow_up: bool = False
    patient: bool = False
    otid: str | None = None
    again: bool = False
    media: Sequence[Media] = ()
    context: str = ""
    model: str | None = None
    effort: str | None = None
    asks: frozenset[str] = frozenset()
    heard: Callable[[], Sequence[str]] = no_new_texts
    runs: bool = False

    def __post_init__(self) -> None:
        blank = self.text is not None and not self.text.strip() and not self.media
        if (self.text is None) == (not self.approvals) or blank:
            raise Invalid("Send a message, or approve or reject the calls that wait; not both")
        if self.again and (self.otid is None or self.text is None):
            raise Invalid("Only a message that was sent with an `otid` can be sent again")
        if self.max_steps < 1:
            raise Invalid("A turn takes at least one step")

    def continued_for(self, caller: Caller) -> "Prompt":
        """The same decisions in the name of the turn's person, who does not get the sender's rights or token."""
        if caller == self.caller:
            return self
        token = self.user_token if caller.user_id == self.caller.user_id else None
        return replace(self, caller=caller, user_token=token, runs=False)

    @property
    def agent_caller(self) -> Caller:
        """The agent as caller, for the prompt's sender, with the sender's scopes except those that concern others."""
        return replace(self.caller, agent_id=self.agent_id, scopes=rights.without_others_scopes(self.caller.scopes))


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One event in a conversation's history."""

    id: str
    turn_id: str
    at: datetime
    event: Event


class AgentHost(Protocol):
    """Runs agents.

    A missing object is `NotFound` (or None from `find`); a host that does not answer is `Unavailable`. `user_id` is the
    person for whom something is read or changed: another person's data does not exist for them. EVERYONE is for the
    operator. A host that does not keep people apart ignores `user_id`.
    """

    async def find(self, agent_id: str) -> Agent | None: ...

    async def list(self, limit: int) -> Sequence[Agent]: ...

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        """The names of these agents, where known; a remote host may give names that are a moment old."""
        ...

    async def create(self, new: NewAgent) -> Agent: ...

    async def delete(self, agent_id: str) -> None: ...

    async def agent_for_person(self, agent_id: str, user_id: str | None) -> str:
        """The agent that serves a person who names this one: this one, or on some hosts their own, made if needed.

        Raises `Denied` where the named agent serves only somebody else.
        """
        ...

    async def agents_of_others(self, user_id: str) -> Collection[str]:
        """The ids of the agents that serve only other people."""
        ...

    async def start_conversation(self, agent_id: str, user_id: str | None = None, title: str = "") -> Conversation:
        """Begin a new conversation, if a person is known with the agent that serves them."""
        ...

    async def conversations(
        self, agent_id: str, limit: int, user_id: PersonFilter = EVERYONE
    ) -> Sequence[Conversation]:
        """The conversations, the newest first."""
        ...

    def send(self, prompt: Prompt) -> AsyncGenerator[Event]:
        """Take a turn: `Started` is the first event, `Done` the last.

        Turns of one conversation run one after another. A mistake of the caller is raised before `Started` (`NotFound`,
        `PendingApproval`, `Busy`); a later error gives `Failed`, then `Done`. Closing the generator before its end
        cancels the turn.
        """
        ...

    async def cancel(self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE) -> bool:
        """Stop the running turn; returns whether there was one."""
        ...

    async def pending(
        self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE
    ) -> Sequence[ApprovalRequest]:
        """The calls that wait for approval."""
        ...

    async def history(
        self, agent_id: str, conversation_id: str | None = None, *, limit: int = 200, user_id: PersonFilter = EVERYONE
    ) -> Sequence[HistoryItem]:
        """The events of the newest `limit` messages, in order."""
        ...

    async def turn_history(self, turn: TurnRecord) -> Sequence[HistoryItem]:
        """The events of one turn so far, in order, as far as they are stored.

        A host that does not know which messages belong to a turn gives all messages from the time of the turn.
        """
        ...

    async def blocks(self, agent_id: str, user_id: PersonFilter = None, *, runs: bool = True) -> Sequence[MemoryBlock]:
        """The agent's memory as this person's turns see it; for EVERYONE, the values that a new person begins with.

        `runs`: the caller runs the installation, and so the agent; the agent's owner always runs it.
        """
        ...

    async def write_block(
        self,
        agent_id: str,
        label: str,
        value: str,
        seen: str | None = None,
        user_id: PersonFilter = None,
        *,
        runs: bool = True,
    ) -> MemoryBlock:
        """Set a block's value; raises `Conflict` if the present one does not have the `value_fingerprint` `seen`."""
        ...

    async def block_versions(self, agent_id: str, label: str, user_id: PersonFilter = None) -> Sequence[BlockVersion]:
        """The earlier values of a block, the newest first; empty where the host does not keep them."""
        ...

    async def set_block(
        self, agent_id: str, label: str, *, per_person: bool | None = None, people_write: bool | None = None
    ) -> MemoryBlock:
        """Set whether a block is per person, and who may change it; raises `Invalid` where the host cannot."""
        ...

    async def people(self, agent_id: str) -> Sequence[str]:
        """The people of whom the agent has something in its memory, where the host keeps people apart."""
        ...

    async def tools(self, agent_id: str) -> Sequence[HeldTool]: ...

    async def attach(self, agent_id: str, tool: HeldTool) -> None: ...

    async def detach(self, agent_id: str, name: str) -> None: ...

    async def change_tools(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        """Attach and detach several tools; a failure is reported and does not stop the other changes."""
        ...

    async def host_tools(self) -> Sequence[HeldTool]:
        """The host's own tools that any of its agents can have, without tools of MCP servers."""
        ...

    @property
    def features(self) -> HostFeatures: ...

    async def models(self) -> Sequence[ModelChoice]:
        """The models that a prompt may name; the first is the default for an agent without a model."""
        ...

    async def fork(self, agent_id: str, conversation_id: str | None, user_id: str | None = None) -> Conversation:
        """Copy a conversation of this person into a new one."""
        ...

    async def forget(self, agent_id: str, conversation_id: str, user_id: PersonFilter = EVERYONE) -> None:
        """Delete a conversation with its messages, if it exists. The first conversation is never deleted."""
        ...

    async def rewind(
        self, agent_id: str, conversation_id: str | None, turns: int, user_id: PersonFilter = EVERYONE
    ) -> int:
        """Delete the newest turns; returns how many there were. Raises `Invalid` where the host cannot."""
        ...

    async def compact(
        self, agent_id: str, conversation_id: str | None, user_id: PersonFilter = EVERYONE
    ) -> Compacted | None:
        """Sum up the conversation to make room; returns None if it is too short. Raises the model's failures."""
        ...

    async def close(self) -> None: ...


async def only_agent(host: AgentHost) -> str | None:
    """The id of the host's agent if it has exactly one."""
    first = await host.list(2)
    return first[0].id if len(first) == 1 else None


def compaction_result(events: Sequence[Event]) -> Compacted | None:
    """The summary, or None if the conversation was too short; raises the failure of a turn that failed."""
    for event in events:
        if isinstance(event, Failed):
            if event.trouble.is_permanent:
                raise Invalid(event.message)
            raise Unavailable(event.message, retry_after=event.retry_after)
    return next((event for event in events if isinstance(event, Compacted)), None)


T = TypeVar("T")
# Most of these calls read names for a page; a slow host must not delay the rest of the page.
HOST_LOOK_SECONDS = 3
HOST_SILENT = f"The agents' host has not answered within {HOST_LOOK_SECONDS} s; what it knows is missing until it does"


async def host_answer_in_time(asked: Awaitable[T]) -> T:
    """The host's answer; raises `Unavailable` where the host takes too long."""
    with anyio.move_on_after(HOST_LOOK_SECONDS):
        return await asked
    raise Unavailable(HOST_SILENT)
