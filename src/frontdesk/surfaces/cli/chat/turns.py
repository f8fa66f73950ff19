"""What a chat says to the host: which agent and conversation, and who is speaking."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.agents.host import EVERYONE, Agent, AgentHost, Approval, Prompt, Whose
from frontdesk.identity.model import Caller
from frontdesk.loop.events import ApprovalRequest, Done, StopReason
from frontdesk.surfaces.visit import request_id


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation of one agent with one person; `conversation_id` None is their first."""

    agent: Agent
    conversation_id: str | None = None
    user_id: str | None = None

    @property
    def whose(self) -> Whose:
        """For whom the conversation is looked at; whoever names nobody runs the installation."""
        return EVERYONE if self.user_id is None else self.user_id

    def says(self, text: str) -> Prompt:
        return self._prompt(text=text)

    def decides(self, approvals: Sequence[Approval]) -> Prompt:
        return self._prompt(approvals=approvals)

    def _prompt(self, text: str | None = None, approvals: Sequence[Approval] = ()) -> Prompt:
        runs = self.user_id is None
        return Prompt(self.agent.id, self._caller(), text, approvals, self.conversation_id, runs=runs)

    def _caller(self) -> Caller:
        # Whoever can start this command can read the database: there is nobody to prove a user to.
        return Caller(request_id(None), user_id=self.user_id)


async def begin(host: AgentHost, thread: Thread) -> Thread:
    """The same agent and person in a new conversation."""
    made = await host.converse(thread.agent.id, thread.user_id)
    return Thread(thread.agent, made.id, thread.user_id)


async def last_stop(host: AgentHost, thread: Thread) -> Done | None:
    """How the newest turn of a conversation ended; None before the first, and while one is under way."""
    said = await host.history(thread.agent.id, thread.conversation_id, limit=1, user_id=thread.whose)
    last = said[-1].event if said else None
    return last if isinstance(last, Done) else None


async def left(host: AgentHost, agent_id: str, conversation_id: str) -> str | None:
    """How a conversation was left, in a word or a few; None where its host does not know."""
    said = await host.history(agent_id, conversation_id, limit=1)
    match said[-1].event if said else None:
        case ApprovalRequest() | Done(StopReason.REQUIRES_APPROVAL):
            return "waits for approval"
        case Done(stop):
            return stop
        case _:
            return None


async def standing(host: AgentHost, thread: Thread) -> tuple[bool, Sequence[ApprovalRequest]]:
    """How a conversation was left: (whether in the middle of a turn, what waits for approval)."""
    ended = await last_stop(host, thread)
    interrupted = ended is not None and ended.stop is StopReason.INTERRUPTED
    return interrupted, await host.pending(thread.agent.id, thread.conversation_id, thread.whose)
