"""The built-in host: agents that live in Frontdesk's own database and think with a model of your choice."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio

from frontdesk.agents import blocks
from frontdesk.agents.embedded.model import AttachedTool, first_conversation, lane_of
from frontdesk.agents.embedded.store import AgentStore, no_agent
from frontdesk.agents.embedded.toolbox import Toolbox
from frontdesk.agents.host import (
    EVERYONE,
    Agent,
    Block,
    BlockVersion,
    Conversation,
    HeldTool,
    ModelChoice,
    NewAgent,
    Prompt,
    Said,
    ToolChange,
    Traits,
    Whose,
)
from frontdesk.agents.summaries import compacted_of
from frontdesk.agents.turns.model import NewTurn, TurnRecord
from frontdesk.agents.turns.service import Turns
from frontdesk.db.engine import Database
from frontdesk.errors import Denied, FrontdeskError, Invalid, NotFound, Unavailable
from frontdesk.identity.authority import Authority
from frontdesk.identity.rights import runs_installation
from frontdesk.loop.access import ModelAccess
from frontdesk.loop.events import ApprovalRequest, Compacted, Event
from frontdesk.loop.mcp.names import TAKEN_BY_APIS
from frontdesk.loop.text import is_storable, storable
from frontdesk.loop.tools import OwnTools

if TYPE_CHECKING:
    from frontdesk.agents.embedded.stage import Stage

STAGE = "frontdesk.agents.embedded.stage"
NAME_LENGTH = 200


class EmbeddedHost:
    """An `AgentHost` with nothing else to start. `own_tools` says what every agent has, whatever it holds."""

    def __init__(
        self,
        database: Database,
        turns: Turns,
        access: ModelAccess,
        toolbox: Toolbox,
        own_tools: OwnTools = lambda _caller, _token: (),
    ) -> None:
        self._database = database
        self._agents = AgentStore(database)
        self._turns = turns
        self._access = access
        self._toolbox = toolbox
        self._own_tools = own_tools
        self._stage: Stage | None = None

    async def stage(self) -> "Stage":
        """Where turns are taken. It takes a second or more to import: aside, and only where agents are talked with."""
        if self._stage is None:
            await anyio.to_thread.run_sync(import_module, STAGE)
            self._stage = self._stage or self._set_stage()
        return self._stage

    async def warm_up(self) -> None:
        """Load what turns need, aside, so that the first one need not wait; where there are no agents, nothing."""
        with suppress(Unavailable):
            if await self._agents.list(1):
                await self.stage()
                for module in self._access.libraries:
                    await anyio.to_thread.run_sync(import_module, module)

    async def find(self, agent_id: str) -> Agent | None:
        return await self._agents.get(agent_id)

    async def list(self, limit: int) -> Sequence[Agent]:
        return await self._agents.list(limit)

    async def names(self, ids: Collection[str]) -> Mapping[str, str]:
        return await self._agents.names(ids)

    async def create(self, new: NewAgent) -> Agent:
        _check_names(new)
        memory = blocks.starting(new.name, new.blocks)
        if new.model is not None:
            await (await self.stage()).models.open(new.model)
        agent = Agent(f"agent-{uuid4()}", new.name, new.description, new.model, new.owner)
        await self._agents.add(agent, memory, datetime.now(UTC))
        return agent

    async def delete(self, agent_id: str) -> None:
        await self._turns.cancel_all(agent_id)
        if not await self._agents.delete(agent_id):
            raise no_agent(agent_id)

    async def serving(self, agent_id: str, user_id: str | None) -> str:  # noqa: ARG002 - the port's
        return agent_id

    async def others(self, user_id: str) -> Collection[str]:  # noqa: ARG002 - the port's
        return ()

    async def converse(self, agent_id: str, user_id: str | None = None, title: str = "") -> Conversation:
        await self._require(agent_id)
        conversation = Conversation(f"conv-{uuid4()}", agent_id, datetime.now(UTC), title[:NAME_LENGTH], user_id)
        await (await self.stage()).talk.add(conversation)
        return conversation

    async def conversations(self, agent_id: str, limit: int, user_id: Whose = EVERYONE) -> Sequence[Conversation]:
        await self._require(agent_id)
        return await (await self.stage()).talk.of_agent(agent_id, limit, user_id)

    async def send(self, prompt: Prompt) -> AsyncGenerator[Event]:
        conversation = prompt.conversation_id or first_conversation(prompt.agent_id, prompt.caller.user_id)
        lane = lane_of(conversation)
        if prompt.approvals:
            prompt = await self._going_on(prompt, lane, conversation)
        caller = prompt.caller
        ids = (f"turn-{uuid4()}", lane, prompt.agent_id, conversation)
        new = NewTurn(*ids, caller.user_id, prompt.otid, Authority.of(caller))
        work = (await self.stage()).work(prompt, new, self._turns.hold)
        async with aclosing(self._turns.take(new, work)) as events:
            async for event in events:
                yield event

    async def _going_on(self, prompt: Prompt, lane: str, conversation: str) -> Prompt:
        """The prompt in the name of whom the turn was for that waited; what cannot go on any more is given up."""
        runs = prompt.runs or runs_installation(prompt.caller)
        whose = EVERYONE if runs else prompt.caller.user_id
        await _thread(await self.stage(), prompt.agent_id, conversation, whose)
        try:
            return prompt.going_on(await self._turns.going_on(lane, conversation, prompt.caller))
        except Denied:
            await self.cancel(prompt.agent_id, conversation, whose)
            raise

    async def cancel(self, agent_id: str, conversation_id: str | None = None, user_id: Whose = EVERYONE) -> bool:
        stage = await self.stage()
        conversation = await _thread(stage, agent_id, conversation_id, user_id)
        stopped = await self._turns.cancel(lane_of(conversation), conversation)
        return await stage.talk.drop_pending(conversation) or stopped

    async def pending(
        self, agent_id: str, conversation_id: str | None = None, user_id: Whose = EVERYONE
    ) -> Sequence[ApprovalRequest]:
        stage = await self.stage()
        return await stage.talk.pending(await _thread(stage, agent_id, conversation_id, user_id))

    async def history(
        self, agent_id: str, conversation_id: str | None = None, *, limit: int = 200, user_id: Whose = EVERYONE
    ) -> Sequence[Said]:
        stage = await self.stage()
        conversation = await _thread(stage, agent_id, conversation_id, user_id)
        await self._turns.recover(lane_of(conversation))
        return await stage.recall(conversation, limit)

    async def retell(self, turn: TurnRecord) -> Sequence[Said]:
        stage = await self.stage()
        await self._turns.recover(turn.lane)
        return await stage.retell(turn.conversation_id, turn.id)

    async def blocks(self, agent_id: str, user_id: Whose = None, *, runs: bool = True) -> Sequence[Block]:
        agent = await self._require(agent_id)
        return await self._agents.blocks(agent_id, user_id, runs=runs or _owns(agent, user_id))

    async def write_block(
        self,
        agent_id: str,
        label: str,
        value: str,
        seen: str | None = None,
        user_id: Whose = None,
        *,
        runs: bool = True,
    ) -> Block:
        agent, change = await self._require(agent_id), blocks.replacing(label, value, seen)
        may, now = runs or _owns(agent, user_id), datetime.now(UTC)
        _, after = await self._agents.edit_block(agent_id, label, change, now, user_id, runs=may)
        return after

    async def block_versions(self, agent_id: str, label: str, user_id: Whose = None) -> Sequence[BlockVersion]:
        await self._require(agent_id)
        return await self._agents.versions(agent_id, label, user_id)

    async def set_block(
        self, agent_id: str, label: str, *, per_person: bool | None = None, people_write: bool | None = None
    ) -> Block:
        await self._require(agent_id)
        said = {"per_person": per_person, "people_write": people_write}
        return await self._agents.set_block(
            agent_id, label, {name: value for name, value in said.items() if value is not None}
        )

    async def people(self, agent_id: str) -> Sequence[str]:
        await self._require(agent_id)
        return await self._agents.people(agent_id)

    async def tools(self, agent_id: str) -> Sequence[HeldTool]:
        return [_held(tool) for tool in await self._agents.tools(agent_id)]

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
                failed[tool.name] = error.public

        async with anyio.create_task_group() as tasks:
            for number, tool in enumerate(attach):
                tasks.start_soon(describe, number, tool)
        new = {found[number].name: found[number] for number in sorted(found)}
        gone = await self._agents.change_tools(agent_id, list(new.values()), detach, datetime.now(UTC))
        had_not = {name: "the agent does not hold it" for name in detach if name not in gone and name not in new}
        return ToolChange(list(new), gone, had_not | failed)

    async def offered(self) -> Sequence[HeldTool]:
        """None: what a built-in agent has of itself, every one of them has."""
        return ()

    @property
    def traits(self) -> Traits:
        return Traits(asks=True, steers=True, rewinds=True, keeps_turns=True)

    async def models(self) -> Sequence[ModelChoice]:
        stage = await self.stage()
        # Aside: to look at a model, its provider's library is imported.
        return await anyio.to_thread.run_sync(stage.choices)

    async def fork(self, agent_id: str, conversation_id: str | None, user_id: str | None = None) -> Conversation:
        threads, source = (await self.stage()).threads, conversation_id or first_conversation(agent_id, user_id)
        return await threads.fork(agent_id, source, f"conv-{uuid4()}", user_id, datetime.now(UTC))

    async def forget(self, agent_id: str, conversation_id: str, user_id: Whose = EVERYONE) -> None:
        if conversation_id == first_conversation(agent_id):
            return
        stage = await self.stage()
        with suppress(NotFound):
            await stage.talk.require(agent_id, conversation_id, user_id)
            await self._turns.cancel(lane_of(conversation_id), conversation_id)
            await stage.threads.delete(agent_id, conversation_id)

    async def rewind(self, agent_id: str, conversation_id: str | None, turns: int, user_id: Whose = EVERYONE) -> int:
        if turns < 1:
            raise Invalid("Say how many turns to forget: one, or more")
        stage = await self.stage()
        conversation = await _thread(stage, agent_id, conversation_id, user_id)
        await self._turns.recover(lane_of(conversation))
        return await stage.threads.rewind(conversation, turns)

    async def compact(self, agent_id: str, conversation_id: str | None, user_id: Whose = EVERYONE) -> Compacted | None:
        stage, everyone = await self.stage(), user_id is EVERYONE
        person = None if user_id is EVERYONE else user_id
        conversation = conversation_id or first_conversation(agent_id, person)
        new = NewTurn(f"turn-{uuid4()}", lane_of(conversation), agent_id, conversation, person)
        async with aclosing(self._turns.take(new, stage.making_room(new, everyone=everyone))) as events:
            return compacted_of([event async for event in events])

    async def close(self) -> None:
        if self._stage is not None:
            await self._stage.models.close()

    async def _described(self, tool: HeldTool) -> AttachedTool:
        """A tool with all that a model is told of it; what is not known is asked of its server."""
        if tool.parameters is None:
            return await self._toolbox.look_up(tool)
        server, remote = tool.server or "", tool.remote_name or ""
        _check_tool(tool.name, server, remote)
        text = storable(tool.description)
        return AttachedTool(tool.name, text, tool.parameters, server, remote, tool.needs_approval)

    async def _require(self, agent_id: str) -> Agent:
        agent = await self._agents.get(agent_id)
        if agent is None:
            raise no_agent(agent_id)
        return agent

    def _set_stage(self) -> "Stage":
        from frontdesk.agents.embedded.stage import Stage  # noqa: PLC0415 - once it is loaded

        return Stage(self._database, self._agents, self._access, self._toolbox, self._own_tools)


async def _thread(stage: "Stage", agent_id: str, conversation_id: str | None, user_id: Whose) -> str:
    conversation = conversation_id or first_conversation(agent_id, None if user_id is EVERYONE else user_id)
    await stage.talk.require(agent_id, conversation, user_id)
    return conversation


def _owns(agent: Agent, user_id: Whose) -> bool:
    return agent.owner is not None and agent.owner == user_id


def _held(tool: AttachedTool) -> HeldTool:
    return HeldTool(
        tool.name, tool.description, tool.needs_approval, tool.server, tool.remote_name, dict(tool.parameters)
    )


def _check_tool(name: str, server: str, remote: str) -> None:
    if not server or not remote:
        raise Invalid(f"'{name}' is not a tool of an MCP server; built-in agents take only those")
    if not TAKEN_BY_APIS.fullmatch(name):
        raise Invalid(f"No model takes a tool named '{name}'; use letters, digits, - and _, at most 64")
    if len(remote) > NAME_LENGTH or not is_storable(remote):
        raise Invalid(f"The tool's own name cannot be stored; it may have {NAME_LENGTH} characters, all of them valid")


def _check_names(new: NewAgent) -> None:
    if not new.name.strip() or len(new.name) > NAME_LENGTH:
        raise Invalid(f"An agent's name must have 1 to {NAME_LENGTH} characters")
    if new.model is not None and len(new.model) > NAME_LENGTH:
        raise Invalid(f"A model's name must have at most {NAME_LENGTH} characters")
    if not all(map(is_storable, (new.name, new.description, new.model or ""))):
        raise Invalid("A text has characters that cannot be stored; remove NUL and broken Unicode")
