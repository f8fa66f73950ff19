"""One turn of a built-in agent: the scene is set, the loop runs, and all that was said is stored."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from frontdesk.agents.embedded.compaction import compact
from frontdesk.agents.embedded.kit import Kit, named
from frontdesk.agents.embedded.memory import Memory
from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.embedded.own_tools import conversation_search, update_plan
from frontdesk.agents.embedded.store import AgentStore
from frontdesk.agents.embedded.talk.model import Earlier, Scene
from frontdesk.agents.embedded.talk.store import TalkStore
from frontdesk.agents.embedded.toolbox import Toolbox
from frontdesk.agents.host import Prompt
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import Emit
from frontdesk.db.engine import Transaction
from frontdesk.errors import Invalid, PendingApproval
from frontdesk.loop.events import Ending, Failed, StopReason, TextChunk, Trouble, Usage
from frontdesk.loop.messages import add_request, repaired, unanswered, user_message
from frontdesk.loop.models import Models
from frontdesk.loop.tools import OwnTools, Tool
from frontdesk.loop.turn import Turn
from frontdesk.loop.usage import Spent

Hold = Callable[[Transaction, str], Awaitable[None]]
CUT_OFF = "[You were cut off here. Go on from where you were.]"
MANNERS = (
    "You are a stateful agent. The memory blocks below are yours: they stay with you across conversations, and only "
    "you keep them up to date, with the memory tools. What is not in them or in this conversation, look up with "
    "conversation_search before you say that you do not know it."
)


@dataclass(slots=True)
class Performance:
    """Begin, run and end one turn; `end` stores whatever the run left unsaved, however it ended."""

    prompt: Prompt
    new: NewTurn
    agents: AgentStore
    talk: TalkStore
    models: Models
    toolbox: Toolbox
    own_tools: OwnTools
    hold: Hold
    _turn: Turn | None = field(default=None, init=False)
    _changes: int = field(default=0, init=False)
    _opening: ModelRequest | None = field(default=None, init=False)
    _known: Earlier | None = field(default=None, init=False)

    async def begin(self, connection: Transaction) -> Scene:
        """In the transaction that claims the turn: read the scene, refuse what cannot be, store the words."""
        prompt = self.prompt
        self._changes = self.agents.changes
        scene = await self.talk.set_scene(connection, prompt.agent_id, self.new.conversation_id)
        if prompt.text is not None:
            await self._open(connection, scene, prompt.text)
        else:
            _check_approvals(prompt, scene)
            await self.talk.settle(connection, scene.conversation_id)
        return scene

    async def _open(self, connection: Transaction, scene: Scene, text: str) -> None:
        """Store the words that the turn begins with; when they were sent before, only what is still to be said."""
        prompt, thread = self.prompt, scene.conversation_id
        earlier = await self.talk.earlier(connection, thread, prompt.otid) if prompt.again and prompt.otid else None
        if earlier is not None and earlier.was_taken:
            self._known = earlier
            return
        if scene.pending:
            raise PendingApproval([request.call_id for request in scene.pending])
        if earlier is not None and earlier.stands_last(scene.past):
            spoke_last = isinstance(scene.past[-1].message, ModelResponse)
            self._opening = user_message(CUT_OFF) if spoke_last else None
        else:
            self._opening = user_message(text)
        if self._opening is not None:
            await self.talk.append(connection, thread, self.new.id, [self._opening])

    async def run(self, scene: Scene, emit: Emit) -> Ending:
        if self._known is not None:
            return await _told(self._known, emit)
        try:
            model = await self.models.open(scene.agent.model)
        except Invalid as error:
            await emit(Failed(Trouble.INVALID, str(error)))
            return Ending(StopReason.ERROR, failure=Trouble.INVALID)
        summary, past, spent = scene.summary, scene.past, Spent()
        if (compacted := await compact(model, summary, past, spent)) is not None:
            await self.talk.summarise(scene.conversation_id, compacted.summary, compacted.until)
            summary, past = compacted.summary, compacted.rest
        asked = {request.call_id for request in scene.pending}
        messages = repaired([one.message for one in past], asked)
        waiting = [call for call in unanswered(messages) if call.tool_call_id in asked]
        if self._opening is not None:
            add_request(messages, self._opening.parts)
        memory = Memory(self.agents, scene.agent.id, {block.label: block for block in scene.blocks})
        self._turn = turn = Turn(
            model=model,
            tools=self._kit(scene, memory).tools,
            instructions=lambda: instructions(scene, memory, summary),
            messages=messages,
            keep=self._keep,
            emit=emit,
            max_steps=self.prompt.max_steps,
            spent=spent,
        )
        if self.prompt.text is not None:
            return await turn.run()
        rejected = {word.call_id: word.reason for word in self.prompt.approvals if not word.approve}
        return await turn.resume(waiting, rejected)

    async def end(self, connection: Transaction) -> None:
        """In the transaction that records the ending: store what was said since the last time."""
        if self._turn is not None and self._turn.unsaved:
            await self.talk.append(connection, self.new.conversation_id, self.new.id, self._turn.unsaved)
            self._turn.unsaved = []

    def spent(self) -> Usage:
        return self._turn.usage if self._turn is not None else Usage(0, 0)

    async def _keep(self, said: Sequence[ModelMessage]) -> None:
        async with self.talk.writing() as transaction:
            await self.hold(transaction, self.new.id)
            await self.talk.append(transaction, self.new.conversation_id, self.new.id, said)

    def _kit(self, scene: Scene, memory: Memory) -> Kit:
        """The agent's own tools, the caller's, and those it holds; a name that is taken is not taken over."""
        caller = self.prompt.acting
        search = conversation_search(self.talk, scene.agent.id, scene.user_id)
        own = named([*memory.tools(), search, update_plan(), *self.own_tools(caller, self.prompt.user_token)])

        def bind(tools: Sequence[AttachedTool]) -> Sequence[Tool]:
            return self.toolbox.bound(tools, caller, self.prompt.user_token)

        held = named(bind(scene.tools))
        taken = [tool.name for tool in self.prompt.tools if tool.name in own or tool.name in held]
        if taken:
            raise Invalid(f"The agent has tools named {', '.join(taken)} already; give the turn's tools other names")
        return Kit(self.agents, scene.agent.id, own | named(self.prompt.tools), bind, self._changes, held)


async def _told(earlier: Earlier, emit: Emit) -> Ending:
    """The turn was taken before, and this is what came of it."""
    if earlier.answer:
        await emit(TextChunk(earlier.answer))
    return Ending(earlier.stop)


def instructions(scene: Scene, memory: Memory, summary: str | None) -> str:
    """What the model is told before anything else; what changes least comes first, for the provider's cache."""
    about = f"Your name is {scene.agent.name}. {scene.agent.description}".strip()
    earlier = f"\n\nEarlier in this conversation:\n{summary}" if summary else ""
    return f"{MANNERS}\n\n{about}\n\n{memory.shown()}{earlier}\n\nToday is {datetime.now(UTC):%A, %d %B %Y} (UTC)."


def _check_approvals(prompt: Prompt, scene: Scene) -> None:
    asked = {request.call_id for request in scene.pending}
    if not asked:
        raise Invalid("Nothing waits for approval in this conversation; send a message instead")
    answered = {word.call_id for word in prompt.approvals}
    if answered != asked:
        raise Invalid(f"Approve or reject each of {', '.join(sorted(asked))}, and nothing else")
