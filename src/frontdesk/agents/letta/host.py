"""Implements `AgentHost` with agents on a Letta server, over its REST API."""

import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio
from letta_client import NotFoundError
from letta_client.types import AgentState, CreateBlockParam

from frontdesk.agents.host import (
    EVERYONE,
    Agent,
    BlockVersion,
    Conversation,
    HeldTool,
    HistoryItem,
    HostFeatures,
    MemoryBlock,
    ModelChoice,
    NewAgent,
    PersonFilter,
    Prompt,
    ToolChange,
    compaction_result,
)
from frontdesk.agents.letta.conversation import (
    DEFAULT_CONVERSATION,
    NEW_RUN_PAUSES,
    ConversationClient,
    conversation_of,
    wait_until_idle,
)
from frontdesk.agents.letta.convert import block_of, build_history
from frontdesk.agents.letta.handed_store import agent_lock
from frontdesk.agents.letta.people import AgentAssignments
from frontdesk.agents.letta.people_store import AgentAssignment
from frontdesk.agents.letta.server import LettaServer, open_server
from frontdesk.agents.letta.tools import LettaAgentTools, ToolRegistrar
from frontdesk.agents.letta.turn import LettaTurn, why_refused
from frontdesk.agents.memory_blocks import change_block, initial_blocks, make_replacement
from frontdesk.agents.turns.model import NewTurn, TurnRecord
from frontdesk.agents.turns.service import Emit, TurnService, TurnWork
from frontdesk.agents.turns.store import clear_pending
from frontdesk.db.engine import Transaction
from frontdesk.errors import Conflict, Denied, Invalid, NotFound, Unavailable
from frontdesk.identity.authority import Authority
from frontdesk.identity.key_service import RecentCache
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import AgentIdSource
from frontdesk.llm.access import IMAGE_TYPES, accepted_media
from frontdesk.llm.events import ApprovalRequest, Compacted, Event, StopReason, TurnEnd

MAX_HISTORY = 100_000
# How many of the newest messages are searched for a turn.
TURN_MESSAGES = 500
# How many agents are known by name, and how long a list of them is used.
NAMED_AGENTS = 500
NAMES_SECONDS = 10.0
# Letta's own free model, which a self-hosted server lists first and can rarely reach.
FREE_MODEL = "letta/letta-free"
NO_DESCRIPTIONS: Mapping[str, str] = MappingProxyType({})


class LettaHost:
    """An `AgentHost` for a Letta server; it runs an agent's turns one after another, which Letta does not ensure."""

    def __init__(
        self,
        base_url: str,
        token: str | None,
        turns: TurnService,
        model: str | None,
        registrar: ToolRegistrar,
        people: AgentAssignments,
        *,
        image_models: Sequence[str] = (),
    ) -> None:
        self.server = open_server(base_url, token)
        self.assignments = people
        self._tools = LettaAgentTools(self.server, registrar)
        self._client = self.server.client
        self._turns = turns
        self._model = model
        self._image_models = image_models
        # Turns pass this check one after another, so that they run in the order of their requests.
        self._admission_locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._named = RecentCache[None, Sequence[Agent]](NAMES_SECONDS, 1)

    async def find(self, agent_id: str) -> Agent | None:
        try:
            state = await self._state(agent_id)
        except NotFound:
            return None
        return _agent(state, await self.assignments.descriptions([agent_id]))

    async def list(self, limit: int) -> Sequence[Agent]:
        with self.server.translating_errors("agents"):
            # The order is always ascending: the default order repeats rows on later pages.
            page = await self._client.agents.list(limit=limit, order="asc")
        words = await self.assignments.descriptions([state.id for state in page.items])
        return [_agent(state, words) for state in page.items]

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        known = {agent.id: agent.name for agent in await self._named.get_or_load(None, lambda: self.list(NAMED_AGENTS))}
        return {agent_id: known[agent_id] for agent_id in ids if agent_id in known}

    async def create(self, new: NewAgent) -> Agent:
        given = initial_blocks(new.name, new.blocks)
        model = new.model or self._model or await self._first_model()
        with self.server.translating_errors(f"model '{model}'"):
            embeddings = await self._client.models.embeddings.list()
            state = await self._client.agents.create(
                name=new.name,
                description=new.description,
                model=model,
                embedding=next((found.handle for found in embeddings if found.handle), FREE_MODEL),
                memory_blocks=[_block(block) for block in given],
                # Without this setting, Letta drops all but the first of several calls.
                parallel_tool_calls=True,
            )
        return _agent(state)

    async def delete(self, agent_id: str) -> None:
        with self.server.translating_errors(_about(agent_id)):
            state = await self._client.agents.retrieve(agent_id, include=["agent.blocks"])
            await self._client.agents.delete(agent_id)
        self.server.forget(agent_id)
        await self.assignments.store.unmark(agent_id)
        for block in state.blocks or ():
            await self._drop_block(block.id or "")

    async def agent_for_person(self, agent_id: str, user_id: str | None) -> str:
        found = await self.assignments.agent_for_person(self.server, agent_id, user_id)
        if found != agent_id and await self.find(found) is None:
            # The agent was deleted on the Letta server.
            await self.assignments.store.unmark(found)
            return await self.assignments.agent_for_person(self.server, agent_id, user_id)
        return found

    async def agents_of_others(self, user_id: str) -> Collection[str]:
        return await self.assignments.agents_of_others(user_id)

    async def agents_of_person(self, user_id: str) -> Sequence[Mapping[str, Any]]:
        """The agents that serve only this person, each with its memory as Letta has it now."""
        return [
            await self._describe_agent(one) for one in await self.assignments.store.of_person(user_id) if one.agent_id
        ]

    async def forget_person(self, user_id: str) -> tuple[int, Sequence[str]]:
        """Delete a person's agents; returns the number of records, and texts about what is left on the Letta server."""
        return await self.assignments.forget(self.server, self.delete, user_id)

    async def start_conversation(self, agent_id: str, user_id: str | None = None, title: str = "") -> Conversation:
        mine = await self.agent_for_person(agent_id, user_id)
        with self.server.translating_errors(_about(mine)):
            begun = conversation_of(await self._client.conversations.create(agent_id=mine, summary=title or None))
        self.server.remember(begun.id, begun.agent_id)
        return begun

    async def conversations(
        self,
        agent_id: str,
        limit: int,
        user_id: PersonFilter = EVERYONE,  # noqa: ARG002
    ) -> Sequence[Conversation]:
        state = await self._state(agent_id)
        with self.server.translating_errors(_about(agent_id)):
            newest = await self._client.conversations.list(
                agent_id=agent_id, limit=limit, order="desc", order_by="created_at"
            )
        first = Conversation(DEFAULT_CONVERSATION, agent_id, state.created_at or datetime.now(UTC))
        return [*map(conversation_of, newest), first][:limit]

    async def send(self, prompt: Prompt) -> AsyncGenerator[Event]:
        _check_media(prompt)
        prompt = await self._for_its_person(prompt)
        server = self.server.on_behalf_of(prompt.agent_caller)
        thread = _conversation(server, prompt.agent_id, await _target_conversation(server, prompt))
        lane = _lock_of(thread)
        if prompt.approvals:
            prompt = await self._continue_as_person(prompt, lane, thread)
        caller = prompt.caller
        ids = (f"turn-{uuid4()}", lane, thread.agent_id, thread.name)
        new = NewTurn(*ids, caller.user_id, prompt.otid, Authority.of(caller))
        admission = self._admission_locks.setdefault(new.lane, anyio.Lock())
        async with admission:
            trouble = await self._admit(prompt, thread, new)

        async def run(_begun: None, emit: Emit) -> TurnEnd:
            if trouble is not None:
                return await LettaTurn(thread, prompt, emit).give_up(trouble)
            return await LettaTurn(thread, prompt, emit).run()

        async def begin(connection: Transaction) -> None:
            if trouble is None and caller.user_id is not None:
                await self.assignments.bind(connection, thread.agent_id, caller.user_id)
            # A turn that is only replayed does not answer the calls that wait.
            if trouble is None and not prompt.again:
                await _clear_pending(new, connection)

        async with aclosing(self._turns.take(new, TurnWork(begin, run))) as events:
            async for event in events:
                yield event

    async def _continue_as_person(self, prompt: Prompt, lock: str, thread: ConversationClient) -> Prompt:
        """The prompt in the name of the person whose turn waits; calls that can never continue are cancelled."""
        try:
            return prompt.continued_for(await self._turns.caller_to_continue(lock, thread.name, prompt.caller))
        except Denied:
            await self.cancel(thread.agent_id, prompt.conversation_id)
            raise

    async def cancel(self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE) -> bool:  # noqa: ARG002 - Letta's conversations have no person
        thread = _conversation(self.server, agent_id, conversation_id)
        lane = _lock_of(thread)
        await self._turns.recover(lane)
        if await self._turns.cancel(lane, thread.name):
            # A finished turn leaves nothing behind, and the running one may be the next turn.
            return True
        # A run may outlive the process that began it, and an unanswered approval blocks the conversation.
        stopped = await thread.stop_active_runs()
        denied = await thread.deny_pending("Cancelled")
        await self._turns.settle(lane, thread.name)
        return denied or stopped

    async def pending(
        self,
        agent_id: str,
        conversation_id: str | None = None,
        user_id: PersonFilter = EVERYONE,  # noqa: ARG002 - Letta's conversations have no person
    ) -> Sequence[ApprovalRequest]:
        return await _conversation(self.server, agent_id, conversation_id).pending()

    async def history(
        self,
        agent_id: str,
        conversation_id: str | None = None,
        *,
        limit: int = 200,
        user_id: PersonFilter = EVERYONE,  # noqa: ARG002 - Letta's conversations have no person
    ) -> Sequence[HistoryItem]:
        return build_history(
            await _conversation(self.server, agent_id, conversation_id).recent(min(limit, MAX_HISTORY))
        )

    async def turn_history(self, turn: TurnRecord) -> Sequence[HistoryItem]:
        thread = _conversation(self.server, turn.agent_id, turn.conversation_id)
        # Letta's messages have times in whole seconds, its runs have more precise ones.
        runs = await thread.runs_between(turn.started_at, turn.ended_at)
        return build_history(await thread.recent(TURN_MESSAGES), runs) if runs else ()

    async def blocks(self, agent_id: str, user_id: PersonFilter = None, *, runs: bool = True) -> Sequence[MemoryBlock]:  # noqa: ARG002 - Letta's blocks have no person
        return (await ConversationClient(self.server, agent_id).agent_setup()).blocks

    async def write_block(
        self,
        agent_id: str,
        label: str,
        value: str,
        seen: str | None = None,
        user_id: PersonFilter = None,  # noqa: ARG002 - Letta's blocks have no person
        *,
        runs: bool = True,  # noqa: ARG002 - Letta's blocks have no person
    ) -> MemoryBlock:
        with self.server.translating_errors(f"memory block '{label}' of agent '{agent_id}'"):
            found = block_of(await self._client.agents.blocks.retrieve(label, agent_id=agent_id))
            # Letta itself accepts any value over REST, so the limit is checked here.
            new = change_block(found, make_replacement(label, value, seen))
            return block_of(await self._client.agents.blocks.update(label, agent_id=agent_id, value=new.value))

    async def block_versions(self, agent_id: str, label: str, user_id: PersonFilter = None) -> Sequence[BlockVersion]:  # noqa: ARG002 - required by the port
        # Letta keeps versions of a block only on request.
        return ()

    async def set_block(
        self,
        agent_id: str,  # noqa: ARG002 - required by the port
        label: str,  # noqa: ARG002 - required by the port
        *,
        per_person: bool | None = None,  # noqa: ARG002 - required by the port
        people_write: bool | None = None,  # noqa: ARG002 - required by the port
    ) -> MemoryBlock:
        raise Invalid("Letta's memory blocks are the agent's alone; give each person an agent of their own")

    async def people(self, agent_id: str) -> Sequence[str]:  # noqa: ARG002 - required by the port
        return ()

    async def tools(self, agent_id: str) -> Sequence[HeldTool]:
        return await self._tools.held(agent_id)

    async def attach(self, agent_id: str, tool: HeldTool) -> None:
        await self._tools.attach(agent_id, tool)

    async def detach(self, agent_id: str, name: str) -> None:
        await self._tools.detach(agent_id, name)

    async def change_tools(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        return await self._tools.change(agent_id, attach, detach)

    async def host_tools(self) -> Sequence[HeldTool]:
        return await self._tools.host_tools()

    @property
    def features(self) -> HostFeatures:
        return HostFeatures(keeps_context=True)

    async def models(self) -> Sequence[ModelChoice]:
        with self.server.translating_errors("models"):
            found = {model.handle: model for model in await self._client.models.list() if model.handle}
        titles = {handle: model.display_name or model.name for handle, model in found.items()}
        chosen = self._model or _first_of(list(titles))
        names = [*([chosen] if chosen else []), *(handle for handle in titles if handle != chosen)]
        return [
            ModelChoice(name, titles.get(name, name), images=accepted_media(name, self._image_models)[0])
            for name in names
        ]

    async def fork(self, agent_id: str, conversation_id: str | None, user_id: str | None = None) -> Conversation:
        await self.agent_for_person(agent_id, user_id)
        return await _conversation(self.server, agent_id, conversation_id).fork()

    async def forget(self, agent_id: str, conversation_id: str, user_id: PersonFilter = EVERYONE) -> None:  # noqa: ARG002 - Letta's conversations have no person
        thread = _conversation(self.server, agent_id, conversation_id)
        if thread.conversation_id is not None:
            # The lock belongs to the agent, so no other turn can be stopped by mistake.
            await self._turns.cancel(_lock_of(thread), thread.name)
        await thread.forget()

    async def rewind(
        self,
        agent_id: str,  # noqa: ARG002 - required by the port
        conversation_id: str | None,  # noqa: ARG002 - required by the port
        turns: int,  # noqa: ARG002 - required by the port
        user_id: PersonFilter = EVERYONE,  # noqa: ARG002 - required by the port
    ) -> int:
        raise Invalid("Letta forgets no turns; begin a new conversation, or say what is to be done otherwise")

    async def compact(
        self,
        agent_id: str,
        conversation_id: str | None,
        user_id: PersonFilter = EVERYONE,  # noqa: ARG002 - Letta's conversations have no person
    ) -> Compacted | None:
        thread = _conversation(self.server, agent_id, conversation_id)
        await thread.pending()

        async def run(_begun: None, emit: Emit) -> TurnEnd:
            if (summary := await thread.compact()) is not None:
                await emit(Compacted(summary))
            return TurnEnd(StopReason.END_TURN)

        new = NewTurn(f"turn-{uuid4()}", _lock_of(thread), agent_id, thread.name)
        async with aclosing(self._turns.take(new, TurnWork(_begin_nothing, run))) as events:
            return compaction_result([event async for event in events])

    async def close(self) -> None:
        await self.server.close()

    async def _for_its_person(self, prompt: Prompt) -> Prompt:
        """The prompt for the agent that serves its person, with the person's name for the agent."""
        user_id = prompt.caller.user_id
        if user_id is None:
            return prompt
        asked, where = prompt.agent_id, prompt.conversation_id
        agent_id = await self.agent_for_person(asked, user_id)
        if agent_id != asked and where is not None and await self._owner(where) != agent_id:
            # Tasks planned before the agent became a template continue; a new message must go where its answer can be
            # read.
            if prompt.caller.source is not AgentIdSource.SCHEDULE:
                raise Conflict(
                    f"Agent '{asked}' is a template now; begin a new conversation, with an agent of your own"
                )
            where = None
        return replace(prompt, agent_id=agent_id, conversation_id=where, context=_add_person(user_id, prompt.context))

    async def _describe_agent(self, one: AgentAssignment) -> Mapping[str, Any]:
        agent_id = one.agent_id or ""
        told = {"id": agent_id, "made_from": one.template_id}
        try:
            known = await self.blocks(agent_id)
        except (NotFound, Unavailable) as error:
            return {**told, "blocks": None, "trouble": error.public_message}
        return {**told, "blocks": [{"label": block.label, "value": block.value} for block in known]}

    async def _owner(self, conversation_id: str) -> str | None:
        if conversation_id == DEFAULT_CONVERSATION:
            return None
        with suppress(NotFound), self.server.translating_errors(f"conversation '{conversation_id}'"):
            return await self.server.owner(conversation_id)
        return None

    async def _admit(self, prompt: Prompt, thread: ConversationClient, new: NewTurn) -> Unavailable | None:
        """Raise the caller's mistakes; other errors are returned, so that the turn can report them."""
        try:
            if why_refused(prompt, await thread.pending()) is None:
                return None
            if prompt.again and await thread.answer_to(prompt.otid or "") is not None:
                # The waiting calls belong to this very turn, so they are replayed.
                return None
            # The waiting call may be a tool of the caller that another turn runs now, so check again after that turn.
            with suppress(LockIsFree):
                async with aclosing(self._turns.take(new, TurnWork(_begin_free, _run_free))) as events:
                    async for _ in events:
                        continue
            if (mistake := why_refused(prompt, await thread.pending())) is not None:
                raise mistake
        except Unavailable as error:
            return error
        return None

    async def _state(self, agent_id: str) -> AgentState:
        with self.server.translating_errors(_about(agent_id)):
            return await self._client.agents.retrieve(agent_id, include=[])

    async def _drop_block(self, block_id: str) -> None:
        """Delete a block of a deleted agent, which Letta would keep, unless another agent has it."""
        with self.server.translating_errors(f"memory block '{block_id}'"), suppress(NotFoundError):
            holders = await self._client.blocks.agents.list(block_id, limit=1)
            if not holders.items:
                await self._client.blocks.delete(block_id)

    async def _first_model(self) -> str:
        with self.server.translating_errors("models"):
            handles = [model.handle for model in await self._client.models.list() if model.handle]
        if (first := _first_of(handles)) is None:
            raise Invalid("The Letta server has no model; set up a provider there, or name a model")
        return first


def _first_of(handles: Sequence[str]) -> str | None:
    return next((handle for handle in handles if handle != FREE_MODEL), next(iter(handles), None))


def _check_media(prompt: Prompt) -> None:
    for media in prompt.media:
        if media.mime not in IMAGE_TYPES:
            raise Invalid(f"Letta takes no {media.mime}; send a picture as PNG, JPEG, GIF or WebP, all else in words")


def _conversation(server: LettaServer, agent_id: str, conversation_id: str | None) -> ConversationClient:
    return ConversationClient(server, agent_id, None if conversation_id == DEFAULT_CONVERSATION else conversation_id)


async def _target_conversation(server: LettaServer, prompt: Prompt) -> str | None:
    """The conversation of a turn. Only some turns wait for runs that began outside Frontdesk."""
    if not prompt.follow_up and not prompt.patient:
        return prompt.conversation_id
    at_work = await wait_until_idle(server, prompt.agent_id, NEW_RUN_PAUSES if prompt.again else NEW_RUN_PAUSES[:1])
    return at_work if prompt.follow_up else prompt.conversation_id


class LockIsFree(Exception):
    """Ends the turn that only waits for the lock."""


async def _begin_nothing(_connection: object) -> None:
    """Do nothing: Letta stores the messages itself."""


async def _clear_pending(new: NewTurn, connection: Transaction) -> None:
    """Record that nothing waits for approval in the conversation: a turn begins only when every call is answered."""
    await clear_pending(connection, new.lane, new.conversation_id)


async def _begin_free(_connection: object) -> None:
    raise LockIsFree


async def _run_free(_begun: None, _emit: Emit) -> TurnEnd:
    raise LockIsFree


def _lock_of(thread: ConversationClient) -> str:
    return agent_lock(thread.agent_id)


def _about(agent_id: str) -> str:
    return f"agent '{agent_id}'"


def _agent(state: AgentState, words: Mapping[str, str] = NO_DESCRIPTIONS) -> Agent:
    return Agent(state.id, state.name, state.description or "", state.model, serves=words.get(state.id, ""))


def _add_person(user_id: str, context: str) -> str:
    """Put the person's name before the context; a caller on this machine has no name."""
    name = "" if user_id == LOCAL_USER else f"You speak with {json.dumps(user_id, ensure_ascii=False)} in this turn."
    return "\n\n".join(part for part in (name, context) if part.strip())


def _block(block: MemoryBlock) -> CreateBlockParam:
    return {
        "label": block.label,
        "value": block.value,
        "description": block.description or None,
        "limit": block.limit,
        "read_only": block.read_only,
    }
