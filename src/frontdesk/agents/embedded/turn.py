"""Takes one turn of a built-in agent: reads its state, runs the model, stores the messages."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import get_args

from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ThinkingEffort

from frontdesk.agents.embedded.compaction import compact_if_full
from frontdesk.agents.embedded.conversation import EarlierAttempt, StoredMessage, TurnSender, TurnState
from frontdesk.agents.embedded.conversation_store import ConversationStore
from frontdesk.agents.embedded.own_tools import MemoryTools, conversation_search, update_plan
from frontdesk.agents.embedded.store import AgentStore, AttachedTool
from frontdesk.agents.embedded.tools import ToolBinder, TurnTools, tools_by_name
from frontdesk.agents.host import Prompt
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import Emit
from frontdesk.db.engine import Transaction
from frontdesk.errors import Invalid, PendingApproval
from frontdesk.identity.rights import runs_installation
from frontdesk.llm.access import AUDIO_TYPES, IMAGE_TYPES
from frontdesk.llm.events import Compacted, Failed, FailureKind, StopReason, TextChunk, TurnEnd, Usage
from frontdesk.llm.messages import open_calls, repair_messages, replace_unfit_media, user_message
from frontdesk.llm.models import ModelPool
from frontdesk.llm.tools import Tool, ToolProvider, permitted_tools
from frontdesk.llm.turn import ModelTurn, UsageTotal
from frontdesk.text import one_line, storable

RequireOwnership = Callable[[Transaction, str], Awaitable[None]]
EFFORTS: Mapping[str, ThinkingEffort] = {effort: effort for effort in get_args(ThinkingEffort)}
NAME_LENGTH = 200
CUT_OFF_NOTE = "[You were cut off here. Go on from where you were.]"
BASE_INSTRUCTIONS = (
    "You are a stateful agent. The memory blocks below are yours: they stay with you across conversations, and only "
    "you keep them up to date, with the memory tools; those marked read_only you cannot change now. What is not in "
    "them or in this conversation, look up with conversation_search before you say that you do not know it."
)


@dataclass(slots=True)
class TurnRunner:
    """Begins, runs and ends one turn; `end` stores the run's unsaved messages after any ending."""

    prompt: Prompt
    new: NewTurn
    agents: AgentStore
    conversations: ConversationStore
    models: ModelPool
    tool_binder: ToolBinder
    own_tools: ToolProvider
    hold: RequireOwnership
    _turn: ModelTurn | None = field(default=None, init=False)
    _changes: int = field(default=0, init=False)
    _opening: ModelRequest | None = field(default=None, init=False)
    _known: EarlierAttempt | None = field(default=None, init=False)

    async def begin(self, connection: Transaction) -> TurnState:
        """In the transaction that claims the turn: check the prompt, read the state, and store the prompt's message."""
        prompt = self.prompt
        _check_prompt(prompt)
        self._changes = self.agents.changes
        sender = TurnSender(prompt.caller.user_id, prompt.runs or runs_installation(prompt.caller))
        state = await self.conversations.read_turn_state(
            connection, prompt.agent_id, self.new.conversation_id, self.new.id, sender
        )
        if prompt.text is not None:
            await self._open(connection, state, prompt.text)
        else:
            _check_approvals(prompt, state)
            await self.conversations.settle(connection, state.conversation_id)
        return state

    async def _open(self, connection: Transaction, state: TurnState, text: str) -> None:
        """Store the message that begins the turn.

        A prompt that is sent again is not stored twice: a completed turn is repeated, an interrupted one continued.
        """
        prompt, thread = self.prompt, state.conversation_id
        earlier = (
            await self.conversations.find_earlier_attempt(connection, thread, prompt.otid)
            if prompt.again and prompt.otid
            else None
        )
        if earlier is not None and earlier.completed:
            self._known = earlier
            return
        if state.pending:
            raise PendingApproval([request.call_id for request in state.pending])
        if earlier is not None and earlier.is_newest(state.past):
            spoke_last = isinstance(state.past[-1].message, ModelResponse)
            self._opening = user_message(CUT_OFF_NOTE) if spoke_last else None
        else:
            self._opening = user_message(text, [BinaryContent(one.data, media_type=one.mime) for one in prompt.media])
        if self._opening is not None:
            await self.conversations.append(connection, thread, self.new.id, [self._opening])

    async def run(self, state: TurnState, emit: Emit) -> TurnEnd:
        if self._known is not None:
            return await _repeat_answer(self._known, emit)
        name = self.prompt.model or state.agent.model or self.models.default
        try:
            model = await self.models.open(name)
            images, sounds = _check_media(self.prompt, name, self.models)
        except Invalid as error:
            await emit(Failed(FailureKind.INVALID, str(error)))
            return TurnEnd(StopReason.ERROR, failure=FailureKind.INVALID)
        usage = UsageTotal(model.context_window or 0)
        summary, past = await self._compact(state, model, usage, emit)
        stored = [*(one.message for one in past), *([self._opening] if self._opening is not None else [])]
        # Calls after one that needs approval wait with it.
        waiting = open_calls(stored) if state.pending else ()
        held = {call.tool_call_id for call in waiting}
        messages = repair_messages(replace_unfit_media(stored, images=images, sounds=sounds), held)
        memory = MemoryTools(
            self.agents,
            state.agent.id,
            state.user_id,
            state.runs,
            lambda transaction: self.hold(transaction, self.new.id),
            {block.label: block for block in state.blocks},
        )
        self._turn = turn = ModelTurn(
            model=model,
            tools=self._turn_tools(state, memory).tools,
            instructions=lambda: build_instructions(state, memory, summary, self.prompt.context),
            messages=messages,
            store=self._store,
            emit=emit,
            max_steps=self.prompt.max_steps,
            effort=EFFORTS.get(self.prompt.effort or ""),
            take_new_texts=self.prompt.heard,
            usage_total=usage,
        )
        if self.prompt.text is not None:
            return await turn.run()
        rejected = {word.call_id: word.reason for word in self.prompt.approvals if not word.approve}
        return await turn.resume(waiting, rejected, {request.call_id for request in state.pending})

    async def _compact(
        self, state: TurnState, model: Model, usage: UsageTotal, emit: Emit
    ) -> tuple[str | None, Sequence[StoredMessage]]:
        """The summary and messages that the turn starts from; a conversation that is too long is summed up first."""
        summed = await compact_if_full(model, state.summary, state.past, usage)
        if summed is None:
            return state.summary, state.past
        await self.conversations.store_summary(state.conversation_id, summed.summary, summed.until)
        await emit(Compacted(summed.summary, by_model=summed.by_model))
        return summed.summary, summed.rest

    async def end(self, connection: Transaction) -> None:
        """In the transaction that records the end: store the messages that are not stored yet."""
        if self._turn is not None and self._turn.unsaved:
            await self.conversations.append(connection, self.new.conversation_id, self.new.id, self._turn.unsaved)
            self._turn.unsaved = []

    def usage(self) -> Usage:
        return self._turn.usage if self._turn is not None else Usage(0, 0)

    async def _store(self, messages: Sequence[ModelMessage]) -> None:
        async with self.conversations.writing() as transaction:
            await self.hold(transaction, self.new.id)
            await self.conversations.append(transaction, self.new.conversation_id, self.new.id, messages)

    def _turn_tools(self, state: TurnState, memory: MemoryTools) -> TurnTools:
        """The agent's own tools, the prompt's tools, and the attached tools; no two share a name."""
        caller, token = replace(self.prompt.agent_caller, user_id=state.user_id), self.prompt.user_token
        if state.user_id != self.prompt.caller.user_id:
            # The conversation belongs to another person, so the caller's token is not used in it.
            token = None
        search = conversation_search(self.conversations, state.agent.id, state.user_id)
        every = [*memory.tools(), search, update_plan(), *self.own_tools(caller, token)]
        own = tools_by_name(permitted_tools(every, caller))

        def bind(tools: Sequence[AttachedTool]) -> Sequence[Tool]:
            return permitted_tools(self.tool_binder.bind(tools, caller, token), caller)

        held = tools_by_name(bind(state.tools))
        taken = [tool.name for tool in self.prompt.tools if tool.name in own or tool.name in held]
        if taken:
            raise Invalid(f"The agent has tools named {', '.join(taken)} already; give the turn's tools other names")
        fixed = own | tools_by_name(self.prompt.tools)
        return TurnTools(self.agents, state.agent.id, fixed, bind, self._changes, held, self.prompt.asks)


async def _repeat_answer(earlier: EarlierAttempt, emit: Emit) -> TurnEnd:
    """Send the answer of a completed turn again."""
    if earlier.answer:
        await emit(TextChunk(earlier.answer))
    return TurnEnd(earlier.stop)


def build_instructions(state: TurnState, memory: MemoryTools, summary: str | None, context: str = "") -> str:
    """The system instructions; the parts that change least come first, for the provider's cache."""
    about = f"Your name is {state.agent.name}. {state.agent.description}".strip()
    earlier = f"\n\nEarlier in this conversation:\n{summary}" if summary else ""
    today = f"Today is {datetime.now(UTC):%A, %d %B %Y} (UTC)."
    where = f"\n\n{storable(context)}" if context.strip() else ""
    return f"{BASE_INSTRUCTIONS}\n\n{about}\n\n{describe_person(state)}\n\n{memory.render()}{earlier}\n\n{today}{where}"


def describe_person(state: TurnState) -> str:
    """Tell the model for whom it works; names and ids are JSON strings, so they cannot pass for instructions."""
    theirs = [block.label for block in state.blocks if block.per_person]
    if state.user_id is None:
        return "You work for nobody in particular now: this conversation names no person."
    name = one_line(state.person or "", NAME_LENGTH)
    called = f" and the name {json.dumps(name, ensure_ascii=False)}" if name else ""
    who = f"the person with the user id {json.dumps(one_line(state.user_id, NAME_LENGTH), ensure_ascii=False)}{called}"
    kept = f" What you know of them goes into: {', '.join(theirs)}; nobody else sees it there." if theirs else ""
    return f"You work for {who} now, and for nobody else in this conversation.{kept}"


def _check_prompt(prompt: Prompt) -> None:
    if prompt.effort is not None and prompt.effort not in EFFORTS:
        raise Invalid(f"'{prompt.effort}' is not an effort; say one of {', '.join(EFFORTS)}")
    strange = [one.mime for one in prompt.media if one.mime not in IMAGE_TYPES | AUDIO_TYPES]
    if strange:
        raise Invalid(f"No model takes {strange[0]}; send a picture as PNG, JPEG, GIF or WebP, a sound as WAV or MP3")


def _check_media(prompt: Prompt, name: str, models: ModelPool) -> tuple[bool, bool]:
    """Whether the model accepts images and audio; raises `Invalid` if the prompt has media that it does not accept."""
    images, sounds = models.accepted_media(name)
    kinds = {one.mime for one in prompt.media}
    if kinds & IMAGE_TYPES and not images:
        raise Invalid(
            f"The model '{name}' is not known to take pictures; say it in words, or take another model. "
            "If it does take them, name it in FRONTDESK_IMAGE_MODELS"
        )
    if kinds & AUDIO_TYPES and not sounds:
        raise Invalid(f"The model '{name}' takes no sounds; say it in words, or take another model")
    return images, sounds


def _check_approvals(prompt: Prompt, state: TurnState) -> None:
    asked = {request.call_id for request in state.pending}
    if not asked:
        raise Invalid("Nothing waits for approval in this conversation; send a message instead")
    answered = {word.call_id for word in prompt.approvals}
    if answered != asked:
        raise Invalid(f"Approve or reject each of {', '.join(sorted(asked))}, and nothing else")
