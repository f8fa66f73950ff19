"""Defines `AgentHost`, the port to whatever runs the agents, and the values that it takes and gives."""

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
    """Nobody in particular, and everybody: the operator looks at what is not one person's."""

    EVERYONE = "everyone"


EVERYONE: Final = Everyone.EVERYONE
# A person by id, None for a turn that names nobody, or everyone.
PersonFilter = str | Everyone | None


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as its host lists it.

    `owner` is the person who made it, None where the installation's operator did. `serves` says whom it serves, where
    its host keeps people apart by agents.
    """

    id: str
    name: str
    description: str = ""
    model: str | None = None
    owner: str | None = None
    serves: str = ""


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """A memory block: a labelled text that is always before the agent's eyes.

    A `per_person` block has a text for each person the agent works for; None is what its label usually is: `human` is
    per person, others are shared. `people_write`: a turn may change a shared block whomever it acts for; otherwise
    only for a person who runs the agent. A block is `read_only` to whom it is shown where they may not change it.
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
    """What stood in a memory block until it was changed."""

    value: str
    until: datetime


@dataclass(frozen=True, slots=True)
class NewAgent:
    """What an agent is made from; the host chooses the model where none is given.

    `owner` is the person who makes it and so runs it, None for the installation's operator.
    """

    name: str
    description: str = ""
    model: str | None = None
    blocks: Sequence[MemoryBlock] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One thread of talk of one person with an agent; `user_id` is None where it is nobody's in particular."""

    id: str
    agent_id: str
    created_at: datetime
    title: str = ""
    user_id: str | None = None


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
class Media:
    """A picture or a sound that comes with a message; `mime` says which, such as `image/png` or `audio/wav`."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that a turn may be taken with; `efforts` are how hard it can be told to think, the least first."""

    name: str
    title: str = ""
    efforts: Sequence[str] = ()
    images: bool = False
    sounds: bool = False


@dataclass(frozen=True, slots=True)
class HostFeatures:
    """What only some hosts can do with a turn or a conversation.

    `asks`: hold back any tool that a prompt names. `steers`: hear what is said while the agent works. `rewinds`:
    forget the newest turns. `context_stays`: what a prompt tells of where the agent is stands in the conversation for
    good, so that it need not be told again. `keeps_turns`: know of all that was said in which turn it was.
    """

    can_require_approval: bool = False
    can_steer: bool = False
    can_rewind: bool = False
    keeps_context: bool = False
    keeps_turns: bool = False


def no_new_texts() -> Sequence[str]:
    """What somebody says who says no more."""
    return ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """One turn to be taken: words of the person, or their word on what waits for approval.

    `conversation_id` None is the person's first conversation with the agent. `tools` are the caller's, for this turn
    only. In another person's conversation only somebody who runs the installation may speak, and the turn is that
    person's then.
    `user_token` goes to tool servers that were set up to act for the user, and is forgotten with the turn.
    A `patient` one comes after what the agent is doing now, also if that was begun without us; a `follow_up` does so
    too, and in that conversation where the host knows it.
    `otid` is the sender's own name for the turn. When it is sent `again`, because nobody knows what became of it, its
    words are not said twice where the host can tell: a turn that was taken is told as it went, and one that was cut
    off goes on, or is told so far.
    `context` is what the model is told of where it is, in this turn alone; `model` and `effort` stand in for the
    agent's own. `asks` are tools that need somebody's word this time, also where they would not, and `heard` says what
    the person has said since it was last asked; both only where the host's traits have it. `runs`:
    whoever sends it runs the installation, also where its caller does not show that.
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
        """The same word on what waits, in the name of whom the turn was for; nobody lends it anything of their own."""
        if caller == self.caller:
            return self
        token = self.user_token if caller.user_id == self.caller.user_id else None
        return replace(self, caller=caller, user_token=token, runs=False)

    @property
    def agent_caller(self) -> Caller:
        """Who acts in the turn: its agent, for whoever sent the prompt, with the rights of their credential."""
        return replace(self.caller, agent_id=self.agent_id, scopes=rights.without_others_scopes(self.caller.scopes))


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One thing of a conversation's past, in the words of a turn."""

    id: str
    turn_id: str
    at: datetime
    event: Event


class AgentHost(Protocol):
    """Runs agents.

    What is not there is `NotFound` (or None from `find`); a host that does not answer is `Unavailable`.
    `user_id` says for whom something is looked at or changed: what is another person's is not there for them. EVERYONE
    is for the operator. A host that keeps no persons apart takes no notice of it.
    """

    async def find(self, agent_id: str) -> Agent | None: ...

    async def list(self, limit: int) -> Sequence[Agent]: ...

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        """What these agents are called, as far as that is known; a host elsewhere may tell what held a moment ago."""
        ...

    async def create(self, new: NewAgent) -> Agent: ...

    async def delete(self, agent_id: str) -> None: ...

    async def agent_for_person(self, agent_id: str, user_id: str | None) -> str:
        """The agent that serves a person who names this one: it, or on some hosts one of their own, made if need be.

        `Denied` where it serves somebody else alone.
        """
        ...

    async def agents_of_others(self, user_id: str) -> Collection[str]:
        """The ids of the agents that serve other people alone."""
        ...

    async def start_conversation(self, agent_id: str, user_id: str | None = None, title: str = "") -> Conversation:
        """Begin a new conversation, with a person where one is known; it is with the agent that serves them."""
        ...

    async def conversations(
        self, agent_id: str, limit: int, user_id: PersonFilter = EVERYONE
    ) -> Sequence[Conversation]:
        """The newest first."""
        ...

    def send(self, prompt: Prompt) -> AsyncGenerator[Event]:
        """Take a turn: `Started` first, `Done` last.

        Turns of one conversation are taken one after the other. A caller's mistake is raised before `Started`
        (`NotFound`, `PendingApproval`, `Busy`); what goes wrong later is `Failed`, then `Done`. Closing the generator
        before its end cancels the turn.
        """
        ...

    async def cancel(self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE) -> bool:
        """Stop what is under way; whether there was anything."""
        ...

    async def pending(
        self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE
    ) -> Sequence[ApprovalRequest]:
        """What waits for somebody's word."""
        ...

    async def history(
        self, agent_id: str, conversation_id: str | None = None, *, limit: int = 200, user_id: PersonFilter = EVERYONE
    ) -> Sequence[HistoryItem]:
        """The newest `limit` messages' worth of what was said, in order."""
        ...

    async def turn_history(self, turn: TurnRecord) -> Sequence[HistoryItem]:
        """What was said in one turn, in order, as far as it is kept and so far.

        A host that does not know what was said in which turn tells what was said while it was taken.
        """
        ...

    async def blocks(self, agent_id: str, user_id: PersonFilter = None, *, runs: bool = True) -> Sequence[MemoryBlock]:
        """The agent's memory as this person's turns have it; for EVERYONE what a person begins with.

        `runs`: the caller runs the installation, and so the agent; its owner does anyway.
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
        """Give a block another value; `Conflict` where it is not any more what `seen` marks, as `mark_of` does."""
        ...

    async def block_versions(self, agent_id: str, label: str, user_id: PersonFilter = None) -> Sequence[BlockVersion]:
        """What stood in a block before, the newest first; nothing where the host does not keep it."""
        ...

    async def set_block(
        self, agent_id: str, label: str, *, per_person: bool | None = None, people_write: bool | None = None
    ) -> MemoryBlock:
        """Say whose a block is, and who may change it; `Invalid` where the host cannot."""
        ...

    async def people(self, agent_id: str) -> Sequence[str]:
        """Whom the agent keeps something of in its memory, where the host keeps them apart."""
        ...

    async def tools(self, agent_id: str) -> Sequence[HeldTool]: ...

    async def attach(self, agent_id: str, tool: HeldTool) -> None: ...

    async def detach(self, agent_id: str, name: str) -> None: ...

    async def change_tools(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        """Attach and detach several at once; what fails is told, and keeps nothing else from being done."""
        ...

    async def host_tools(self) -> Sequence[HeldTool]:
        """The host's own tools that any of its agents could be given, without those of MCP servers."""
        ...

    @property
    def features(self) -> HostFeatures: ...

    async def models(self) -> Sequence[ModelChoice]:
        """What a prompt may name as its model; the first is what an agent without one of its own thinks with."""
        ...

    async def fork(self, agent_id: str, conversation_id: str | None, user_id: str | None = None) -> Conversation:
        """A new conversation of this person that begins with all that was said in another of theirs."""
        ...

    async def forget(self, agent_id: str, conversation_id: str, user_id: PersonFilter = EVERYONE) -> None:
        """Delete a conversation and all that was said in it; nothing where there is none. The first one stays."""
        ...

    async def rewind(
        self, agent_id: str, conversation_id: str | None, turns: int, user_id: PersonFilter = EVERYONE
    ) -> int:
        """Forget the newest turns; how many there were. `Invalid` where the host cannot."""
        ...

    async def compact(
        self, agent_id: str, conversation_id: str | None, user_id: PersonFilter = EVERYONE
    ) -> Compacted | None:
        """Sum up what was said, to make room; None where there is too little. A model that fails is raised."""
        ...

    async def close(self) -> None: ...


async def only_agent(host: AgentHost) -> str | None:
    """The id of the host's agent if it has exactly one."""
    first = await host.list(2)
    return first[0].id if len(first) == 1 else None


def compaction_result(events: Sequence[Event]) -> Compacted | None:
    """What took the place of what was said, or None where there was too little of it; a turn that failed is raised."""
    for event in events:
        if isinstance(event, Failed):
            if event.trouble.is_permanent:
                raise Invalid(event.message)
            raise Unavailable(event.message, retry_after=event.retry_after)
    return next((event for event in events if isinstance(event, Compacted)), None)


T = TypeVar("T")
# It is asked for names mostly; one that takes longer keeps nobody from all the rest.
HOST_LOOK_SECONDS = 3
HOST_SILENT = f"The agents' host has not answered within {HOST_LOOK_SECONDS} s; what it knows is missing until it does"


async def host_answer_in_time(asked: Awaitable[T]) -> T:
    """What the host says, or `Unavailable` where it takes too long."""
    with anyio.move_on_after(HOST_LOOK_SECONDS):
        return await asked
    raise Unavailable(HOST_SILENT)
