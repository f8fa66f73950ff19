"""Implements `AgentHost` with agents in Frontdesk's own database."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio

from frontdesk.agents.embedded.store import (
    AgentStore,
    AttachedTool,
    agent_not_found,
    conversation_lock,
    first_conversation_id,
)
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
from frontdesk.agents.memory_blocks import initial_blocks, make_replacement
from frontdesk.agents.turns.model import NewTurn, TurnRecord
from frontdesk.agents.turns.service import TurnService
from frontdesk.db.engine import Database
from frontdesk.errors import Denied, FrontdeskError, Invalid, NotFound, Unavailable
from frontdesk.identity.authority import Authority
from frontdesk.identity.rights import runs_installation
from frontdesk.llm.access import ModelAccess
from frontdesk.llm.events import ApprovalRequest, Compacted, Event
from frontdesk.llm.tools import ToolProvider
from frontdesk.mcp_client.model import API_NAME
from frontdesk.text import is_storable, storable

if TYPE_CHECKING:
    from frontdesk.agents.embedded.resources import HostResources
    from frontdesk.agents.embedded.tools import ToolBinder

RESOURCES_MODULE = "frontdesk.agents.embedded.resources"
NAME_LENGTH = 200


class EmbeddedHost:
    """An `AgentHost` that needs no other process; `own_tools` gives the tools that every agent has."""

    def __init__(
        self,
        database: Database,
        turns: TurnService,
        access: ModelAccess,
        tool_binder: "Callable[[], ToolBinder]",
        own_tools: ToolProvider = lambda _caller, _token: (),
    ) -> None:
        self._database = database
        self._agents = AgentStore(database)
        self._turns = turns
        self._access = access
        self._tool_binder = tool_binder
        self._own_tools = own_tools
        self._resources: HostResources | None = None

    async def resources(self) -> "HostResources":
        """The parts that need the model library, which a thread imports on first use; that takes a second or more."""
        if self._resources is None:
            await anyio.to_thread.run_sync(import_module, RESOURCES_MODULE)
            self._resources = self._resources or self._open_resources()
        return self._resources

    async def warm_up(self) -> None:
        """If there are agents, import in threads what turns need, so that the first turn need not wait."""
        with suppress(Unavailable):
            if await self._agents.list(1):
                await self.resources()
                for module in self._access.libraries:
                    await anyio.to_thread.run_sync(import_module, module)

    async def find(self, agent_id: str) -> Agent | None:
        return await self._agents.get(agent_id)

    async def list(self, limit: int) -> Sequence[Agent]:
        return await self._agents.list(limit)

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        return await self._agents.names(ids)

    async def create(self, new: NewAgent) -> Agent:
        _check_new_agent(new)
        memory = initial_blocks(new.name, new.blocks)
        if new.model is not None:
            await (await self.resources()).models.open(new.model)
        agent = Agent(f"agent-{uuid4()}", new.name, new.description, new.model, new.owner)
        await self._agents.add(agent, memory, datetime.now(UTC))
        return agent

    async def delete(self, agent_id: str) -> None:
        await self._turns.cancel_all(agent_id)
        if not await self._agents.delete(agent_id):
            raise agent_not_found(agent_id)

    async def agent_for_person(self, agent_id: str, user_id: str | None) -> str:  # noqa: ARG002 - required by the port
        return agent_id

    async def agents_of_others(self, user_id: str) -> Collection[str]:  # noqa: ARG002 - required by the port
        return ()

    async def start_conversation(self, agent_id: str, user_id: str | None = None, title: str = "") -> Conversation:
        await self._require(agent_id)
        conversation = Conversation(f"conv-{uuid4()}", agent_id, datetime.now(UTC), title[:NAME_LENGTH], user_id)
        await (await self.resources()).conversations.add(conversation)
        return conversation

    async def conversations(
        self, agent_id: str, limit: int, user_id: PersonFilter = EVERYONE
    ) -> Sequence[Conversation]:
        await self._require(agent_id)
        return await (await self.resources()).conversations.of_agent(agent_id, limit, user_id)

    async def send(self, prompt: Prompt) -> AsyncGenerator[Event]:
        conversation = prompt.conversation_id or first_conversation_id(prompt.agent_id, prompt.caller.user_id)
        lane = conversation_lock(conversation)
        if prompt.approvals:
            prompt = await self._continue_as_person(prompt, lane, conversation)
        caller = prompt.caller
        ids = (f"turn-{uuid4()}", lane, prompt.agent_id, conversation)
        new = NewTurn(*ids, caller.user_id, prompt.otid, Authority.of(caller))
        work = (await self.resources()).turn_work(prompt, new, self._turns.hold)
        async with aclosing(self._turns.take(new, work)) as events:
            async for event in events:
                yield event

    async def _continue_as_person(self, prompt: Prompt, lock: str, conversation: str) -> Prompt:
        """The prompt in the name of the person whose turn waits; calls that can never continue are cancelled."""
        runs = prompt.runs or runs_installation(prompt.caller)
        whose = EVERYONE if runs else prompt.caller.user_id
        await _require_conversation(await self.resources(), prompt.agent_id, conversation, whose)
        try:
            return prompt.continued_for(await self._turns.caller_to_continue(lock, conversation, prompt.caller))
        except Denied:
            await self.cancel(prompt.agent_id, conversation, whose)
            raise

    async def cancel(self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE) -> bool:
        resources = await self.resources()
        conversation = await _require_conversation(resources, agent_id, conversation_id, user_id)
        stopped = await self._turns.cancel(conversation_lock(conversation), conversation)
        return await resources.conversations.drop_pending(conversation) or stopped

    async def pending(
        self, agent_id: str, conversation_id: str | None = None, user_id: PersonFilter = EVERYONE
    ) -> Sequence[ApprovalRequest]:
        resources = await self.resources()
        return await resources.conversations.pending(
            await _require_conversation(resources, agent_id, conversation_id, user_id)
        )

    async def history(
        self, agent_id: str, conversation_id: str | None = None, *, limit: int = 200, user_id: PersonFilter = EVERYONE
    ) -> Sequence[HistoryItem]:
        resources = await self.resources()
        conversation = await _require_conversation(resources, agent_id, conversation_id, user_id)
        await self._turns.recover(conversation_lock(conversation))
        return await resources.recent_history(conversation, limit)

    async def turn_history(self, turn: TurnRecord) -> Sequence[HistoryItem]:
        resources = await self.resources()
        await self._turns.recover(turn.lane)
        return await resources.turn_history(turn.conversation_id, turn.id)

    async def blocks(self, agent_id: str, user_id: PersonFilter = None, *, runs: bool = True) -> Sequence[MemoryBlock]:
        agent = await self._require(agent_id)
        return await self._agents.blocks(agent_id, user_id, runs=runs or _is_owner(agent, user_id))

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
        agent, change = await self._require(agent_id), make_replacement(label, value, seen)
        may, now = runs or _is_owner(agent, user_id), datetime.now(UTC)
        _, after = await self._agents.edit_block(agent_id, label, change, now, user_id, runs=may)
        return after

    async def block_versions(self, agent_id: str, label: str, user_id: PersonFilter = None) -> Sequence[BlockVersion]:
        await self._require(agent_id)
        return await self._agents.versions(agent_id, label, user_id)

    async def set_block(
        self, agent_id: str, label: str, *, per_person: bool | None = None, people_write: bool | None = None
    ) -> MemoryBlock:
        await self._require(agent_id)
        said = {"per_person": per_person, "people_write": people_write}
        return await self._agents.set_block(
            agent_id, label, {name: value for name, value in said.items() if value is not None}
        )

    async def people(self, agent_id: str) -> Sequence[str]:
        await self._require(agent_id)
        return await self._agents.people(agent_id)

    async def tools(self, agent_id: str) -> Sequence[HeldTool]:
        return [_held_tool(tool) for tool in await self._agents.tools(agent_id)]

    async def attach(self, agent_id: str, tool: HeldTool) -> None:
        await self._require(agent_id)
        found = await self._described(tool)
        await self._agents.change_tools(agent_id, [found], (), datetime.now(UTC))

    async def detach(self, agent_id: str, name: str) -> None:
        if not await self._agents.change_tools(agent_id, (), [name], datetime.now(UTC)):
            raise NotFound(f"Agent '{agent_id}' has no tool '{name}'; give a name that its list of tools shows")

    async def change_tools(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        found: dict[int, AttachedTool] = {}
        failed: dict[str, str] = {}

        async def describe(number: int, tool: HeldTool) -> None:
            try:
                found[number] = await self._described(tool)
            except FrontdeskError as error:
                failed[tool.name] = error.public_message

        async with anyio.create_task_group() as tasks:
            for number, tool in enumerate(attach):
                tasks.start_soon(describe, number, tool)
        new = {found[number].name: found[number] for number in sorted(found)}
        gone = await self._agents.change_tools(agent_id, list(new.values()), detach, datetime.now(UTC))
        had_not = {name: "the agent does not hold it" for name in detach if name not in gone and name not in new}
        return ToolChange(list(new), gone, had_not | failed)

    async def host_tools(self) -> Sequence[HeldTool]:
        """None: every agent has the host's own tools."""
        return ()

    @property
    def features(self) -> HostFeatures:
        return HostFeatures(can_require_approval=True, can_steer=True, can_rewind=True, keeps_turns=True)

    async def models(self) -> Sequence[ModelChoice]:
        resources = await self.resources()
        # In a thread, because this imports the providers' libraries.
        return await anyio.to_thread.run_sync(resources.model_choices)

    async def fork(self, agent_id: str, conversation_id: str | None, user_id: str | None = None) -> Conversation:
        threads, source = (
            (await self.resources()).maintenance,
            conversation_id or first_conversation_id(agent_id, user_id),
        )
        return await threads.fork(agent_id, source, f"conv-{uuid4()}", user_id, datetime.now(UTC))

    async def forget(self, agent_id: str, conversation_id: str, user_id: PersonFilter = EVERYONE) -> None:
        if conversation_id == first_conversation_id(agent_id):
            return
        resources = await self.resources()
        with suppress(NotFound):
            await resources.conversations.require(agent_id, conversation_id, user_id)
            await self._turns.cancel(conversation_lock(conversation_id), conversation_id)
            await resources.maintenance.delete(agent_id, conversation_id)

    async def rewind(
        self, agent_id: str, conversation_id: str | None, turns: int, user_id: PersonFilter = EVERYONE
    ) -> int:
        if turns < 1:
            raise Invalid("Say how many turns to forget: one, or more")
        resources = await self.resources()
        conversation = await _require_conversation(resources, agent_id, conversation_id, user_id)
        await self._turns.recover(conversation_lock(conversation))
        return await resources.maintenance.rewind(conversation, turns)

    async def compact(
        self, agent_id: str, conversation_id: str | None, user_id: PersonFilter = EVERYONE
    ) -> Compacted | None:
        resources, everyone = await self.resources(), user_id is EVERYONE
        person = None if user_id is EVERYONE else user_id
        conversation = conversation_id or first_conversation_id(agent_id, person)
        new = NewTurn(f"turn-{uuid4()}", conversation_lock(conversation), agent_id, conversation, person)
        async with aclosing(self._turns.take(new, resources.compaction_work(new, everyone=everyone))) as events:
            return compaction_result([event async for event in events])

    async def close(self) -> None:
        if self._resources is not None:
            await self._resources.models.close()

    async def _described(self, tool: HeldTool) -> AttachedTool:
        """A tool with its description and parameters, read from its server if they are missing."""
        if tool.parameters is None:
            return await self._tool_binder().read_from_server(tool)
        server, remote = tool.server or "", tool.remote_name or ""
        _check_tool(tool.name, server, remote)
        text = storable(tool.description)
        return AttachedTool(tool.name, text, tool.parameters, server, remote, tool.needs_approval)

    async def _require(self, agent_id: str) -> Agent:
        agent = await self._agents.get(agent_id)
        if agent is None:
            raise agent_not_found(agent_id)
        return agent

    def _open_resources(self) -> "HostResources":
        from frontdesk.agents.embedded.resources import HostResources  # noqa: PLC0415 - once it is loaded

        return HostResources(self._database, self._agents, self._access, self._tool_binder(), self._own_tools)


async def _require_conversation(
    resources: "HostResources", agent_id: str, conversation_id: str | None, user_id: PersonFilter
) -> str:
    conversation = conversation_id or first_conversation_id(agent_id, None if user_id is EVERYONE else user_id)
    await resources.conversations.require(agent_id, conversation, user_id)
    return conversation


def _is_owner(agent: Agent, user_id: PersonFilter) -> bool:
    return agent.owner is not None and agent.owner == user_id


def _held_tool(tool: AttachedTool) -> HeldTool:
    return HeldTool(
        tool.name, tool.description, tool.needs_approval, tool.server, tool.remote_name, dict(tool.parameters)
    )


def _check_tool(name: str, server: str, remote: str) -> None:
    if not server or not remote:
        raise Invalid(f"'{name}' is not a tool of an MCP server; built-in agents take only those")
    if not API_NAME.fullmatch(name):
        raise Invalid(f"No model takes a tool named '{name}'; use letters, digits, - and _, at most 64")
    if len(remote) > NAME_LENGTH or not is_storable(remote):
        raise Invalid(f"The tool's own name cannot be stored; it may have {NAME_LENGTH} characters, all of them valid")


def _check_new_agent(new: NewAgent) -> None:
    if not new.name.strip() or len(new.name) > NAME_LENGTH:
        raise Invalid(f"An agent's name must have 1 to {NAME_LENGTH} characters")
    if new.model is not None and len(new.model) > NAME_LENGTH:
        raise Invalid(f"A model's name must have at most {NAME_LENGTH} characters")
    if not all(map(is_storable, (new.name, new.description, new.model or ""))):
        raise Invalid("A text has characters that cannot be stored; remove NUL and broken Unicode")
