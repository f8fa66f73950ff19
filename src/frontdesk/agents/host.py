"""The port to whatever runs the agents."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from pydantic import SecretStr

from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.loop.events import ApprovalRequest, Event
from frontdesk.loop.tools import Tool

MAX_STEPS = 10


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as its host lists it."""

    id: str
    name: str
    description: str = ""
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A memory block: a labelled text that is always before the agent's eyes."""

    label: str
    value: str
    description: str = ""
    limit: int = 5000
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class NewAgent:
    """What an agent is made from; the host chooses the model where none is given."""

    name: str
    description: str = ""
    model: str | None = None
    blocks: Sequence[Block] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """One thread of talk with an agent; all of an agent's threads share its memory."""

    id: str
    agent_id: str
    created_at: datetime
    title: str = ""


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool attached to an agent; `server` and `remote_name` say whose it is.

    `parameters` is its schema where that is known; a host that needs it and has none asks the server. `tags` are the
    host's words for what kind of tool it is.
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
    """What became of a change to an agent's tools: names, and for those that failed why."""

    attached: Sequence[str] = ()
    detached: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's word on one `ApprovalRequest`."""

    call_id: str
    approve: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One turn to be taken: words of the person, or their word on what waits for approval.

    `conversation_id` None is the agent's own first conversation. `tools` are the caller's, for this turn only.
    `user_token` goes to tool servers that were set up to act for the user, and is forgotten with the turn.
    A `patient` one comes after what the agent is doing now, also if that was begun without us; a `follow_up` does so
    too, and in that conversation where the host knows it.
    `otid` is the sender's own name for the turn. When it is sent `again`, because nobody knows what became of it, its
    words are not said twice where the host can tell: a turn that was taken is told as it went, and one that was cut
    off goes on, or is told so far.
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

    def __post_init__(self) -> None:
        if (self.text is None) == (not self.approvals) or (self.text is not None and not self.text.strip()):
            raise Invalid("Send a message, or approve or reject the calls that wait; not both")
        if self.again and (self.otid is None or self.text is None):
            raise Invalid("Only a message that was sent with an `otid` can be sent again")
        if self.max_steps < 1:
            raise Invalid("A turn takes at least one step")

    @property
    def acting(self) -> Caller:
        """Who acts in the turn: its agent, for whoever sent the prompt."""
        return replace(self.caller, agent_id=self.agent_id)


@dataclass(frozen=True, slots=True)
class Said:
    """One thing of a conversation's past, in the words of a turn."""

    id: str
    turn_id: str
    at: datetime
    event: Event


class AgentHost(Protocol):
    """Runs agents.

    What is not there is `NotFound` (or None from `find`); a host that does not answer is `Unavailable`.
    """

    async def find(self, agent_id: str) -> Agent | None: ...

    async def list(self, limit: int) -> Sequence[Agent]: ...

    async def create(self, new: NewAgent) -> Agent: ...

    async def delete(self, agent_id: str) -> None: ...

    async def converse(self, agent_id: str, user_id: str | None = None, title: str = "") -> Conversation:
        """Begin a new conversation, with a person where one is known."""
        ...

    async def conversations(self, agent_id: str, limit: int) -> Sequence[Conversation]:
        """The newest first."""
        ...

    def send(self, prompt: Prompt) -> AsyncGenerator[Event]:
        """Take a turn: `Started` first, `Done` last.

        Turns of one conversation are taken one after the other. A caller's mistake is raised before `Started`
        (`NotFound`, `PendingApproval`, `Busy`); what goes wrong later is `Failed`, then `Done`. Closing the generator
        before its end cancels the turn.
        """
        ...

    async def cancel(self, agent_id: str, conversation_id: str | None = None) -> bool:
        """Stop what is under way; whether there was anything."""
        ...

    async def pending(self, agent_id: str, conversation_id: str | None = None) -> Sequence[ApprovalRequest]:
        """What waits for somebody's word."""
        ...

    async def history(self, agent_id: str, conversation_id: str | None = None, *, limit: int = 200) -> Sequence[Said]:
        """The newest `limit` messages' worth of what was said, in order."""
        ...

    async def blocks(self, agent_id: str) -> Sequence[Block]: ...

    async def write_block(self, agent_id: str, label: str, value: str) -> Block: ...

    async def tools(self, agent_id: str) -> Sequence[HeldTool]: ...

    async def attach(self, agent_id: str, tool: HeldTool) -> None: ...

    async def detach(self, agent_id: str, name: str) -> None: ...

    async def change_tools(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        """Attach and detach several at once; what fails is told, and keeps nothing else from being done."""
        ...

    async def offered(self) -> Sequence[HeldTool]:
        """The host's own tools that any of its agents could be given, without those of MCP servers."""
        ...

    async def close(self) -> None: ...


async def only_agent(host: AgentHost) -> str | None:
    """The id of the host's agent if it has exactly one."""
    first = await host.list(2)
    return first[0].id if len(first) == 1 else None
