"""The tools of Letta's agents: which they hold, and how they come to hold others."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import anyio
from letta_client.types import AgentState
from letta_client.types import Tool as LettaTool

from frontdesk.agents.host import HeldTool, ToolChange
from frontdesk.agents.letta.handed.model import Handed
from frontdesk.agents.letta.handed.registrar import Registrar, Registration
from frontdesk.agents.letta.handed.schema import readable
from frontdesk.agents.letta.server import Server
from frontdesk.agents.letta.words import server_of
from frontdesk.errors import Conflict, FrontdeskError, NotFound

AT_ONCE = 4
PAGE = 100
# Less than the tools room waits: cut off by it, nobody would know what was done by then.
CHANGE_SECONDS = 12
LATE = f"Letta did not do it within {CHANGE_SECONDS} s; look at what the agent holds, and try again"
OF_MCP_SERVERS = "external_mcp"


class AgentTools:
    """A tool with a server and parameters is the catalogue's; others are Letta's, or of MCP servers that it knows."""

    def __init__(self, server: Server, registrar: Registrar) -> None:
        self._server = server
        self._client = server.client
        self._registrar = registrar

    async def held(self, agent_id: str) -> Sequence[HeldTool]:
        state = await self._state(agent_id)
        tools = state.tools or []
        asked = {rule.tool_name for rule in state.tool_rules or () if rule.type == "requires_approval"}
        handed = await self._handed(tools)
        return [_held(tool, tool.name in asked, handed.get(tool.name or "")) for tool in tools]

    async def offered(self) -> Sequence[HeldTool]:
        with self._server.asking("tools"):
            # Ascending always: the default order repeats rows across pages.
            pages = self._client.tools.list(order="asc", limit=PAGE, exclude_tool_types=[OF_MCP_SERVERS])
            return [_own(tool) async for tool in pages if server_of(tool) is None]

    async def attach(self, agent_id: str, tool: HeldTool) -> None:
        await self._give(agent_id, tool, await self._find([tool]))
        if not tool.needs_approval:
            # Letta remembers the word on a tool that was attached before.
            await self._set_approval(agent_id, tool.name, needed=False)

    async def detach(self, agent_id: str, name: str) -> None:
        await self._take(agent_id, name, await self._state(agent_id))

    async def change(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        outcome = Outcome()
        with anyio.move_on_after(CHANGE_SECONDS):
            state = await self._state(agent_id)
            async with anyio.create_task_group() as tasks:
                for name in detach:
                    tasks.start_soon(outcome.note, name, outcome.detached, partial(self._take, agent_id, name, state))
                tasks.start_soon(self._give_all, agent_id, [tool for tool in attach if _is_catalogues(tool)], outcome)
                tasks.start_soon(
                    self._give_all, agent_id, [tool for tool in attach if not _is_catalogues(tool)], outcome
                )
        return outcome.told([*(tool.name for tool in attach), *detach])

    async def _give_all(self, agent_id: str, tools: Sequence[HeldTool], outcome: "Outcome") -> None:
        if not tools:
            return
        try:
            found = await self._find(tools)
        except FrontdeskError as error:
            outcome.failed.update({tool.name: error.public for tool in tools})
            return
        async with anyio.create_task_group() as tasks:
            for tool in tools:
                tasks.start_soon(outcome.note, tool.name, outcome.attached, partial(self._give, agent_id, tool, found))

    async def _find(self, tools: Sequence[HeldTool]) -> "Found":
        """What Letta has under these names, and, for what is of the catalogue, a place to register it."""
        names = [tool.name for tool in tools]
        with self._server.asking(f"tools {', '.join(names)}"):
            page = await self._client.tools.list(names=names, limit=len(names), order="asc")
        ours = [_handed_of(tool) for tool in tools if _is_catalogues(tool)]
        registration = await self._registrar.open(self._server, ours) if ours else None
        return Found({tool.name or "": tool for tool in page.items}, registration)

    async def _give(self, agent_id: str, tool: HeldTool, found: "Found") -> None:
        letta_tool = await found.get(tool)
        with self._server.asking(_about(agent_id)):
            await self._client.agents.tools.attach(letta_tool.id, agent_id=agent_id)
        if tool.needs_approval:
            await self._set_approval(agent_id, tool.name, needed=True)

    async def _take(self, agent_id: str, name: str, state: AgentState) -> None:
        held = next((tool for tool in state.tools or () if tool.name == name), None)
        if held is None:
            raise NotFound(f"Agent '{agent_id}' has no tool '{name}'; give a name that its list of tools shows")
        with self._server.asking(_about(agent_id)):
            await self._client.agents.tools.detach(held.id, agent_id=agent_id)

    async def _set_approval(self, agent_id: str, name: str, *, needed: bool) -> None:
        with self._server.asking(_about(agent_id)):
            await self._client.agents.tools.update_approval(name, agent_id=agent_id, body_requires_approval=needed)

    async def _state(self, agent_id: str) -> AgentState:
        """The agent with its tools: a listing of them repeats rows from page to page."""
        with self._server.asking(_about(agent_id)):
            return await self._client.agents.retrieve(agent_id, include=["agent.tools"])

    async def _handed(self, tools: Iterable[LettaTool]) -> Mapping[str, Handed]:
        """Of these the ones that Frontdesk handed out: what the catalogue calls them."""
        owners = {tool.name or "": owner for tool in tools if (owner := server_of(tool)) is not None}
        if not owners:
            return {}
        known = await self._registrar.store.named(owners)
        return {name: handed for name, handed in known.items() if handed.registered_as == owners[name]}


@dataclass(slots=True)
class Outcome:
    """What came of a change so far; what is not told of at its end was not done in time."""

    attached: list[str] = field(default_factory=list[str])
    detached: list[str] = field(default_factory=list[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    places: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(AT_ONCE))

    async def note(self, name: str, done: list[str], work: Callable[[], Awaitable[None]]) -> None:
        async with self.places:
            try:
                await work()
            except FrontdeskError as error:
                self.failed[name] = error.public
            else:
                done.append(name)

    def told(self, wanted: Iterable[str]) -> ToolChange:
        known = {*self.attached, *self.detached, *self.failed}
        return ToolChange(
            self.attached, self.detached, {name: LATE for name in wanted if name not in known} | self.failed
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Tools as Letta has them by name; names are unique on a Letta server, so each must be the one that is meant."""

    known: Mapping[str, LettaTool]
    registration: Registration | None

    async def get(self, wanted: HeldTool) -> LettaTool:
        found = self.known.get(wanted.name)
        if self.registration is not None and _is_catalogues(wanted):
            return await self.registration.register(wanted.name, found)
        if found is None:
            raise NotFound(f"The Letta server has no tool '{wanted.name}'; register its MCP server there first")
        if wanted.server is not None and server_of(found) != wanted.server:
            raise Conflict(f"The Letta server's tool '{wanted.name}' is not of the MCP server '{wanted.server}'")
        return found


def _is_catalogues(tool: HeldTool) -> bool:
    return tool.server is not None and tool.parameters is not None


def _handed_of(tool: HeldTool) -> Handed:
    parameters = readable(tool.parameters or {})
    return Handed(tool.name, tool.server or "", tool.remote_name or "", tool.description, parameters)


def _held(tool: LettaTool, needs_approval: bool, handed: Handed | None) -> HeldTool:
    name, description, tags = tool.name or "", tool.description or "", tuple(tool.tags or ())
    if handed is not None:
        return HeldTool(name, description, needs_approval, handed.server, handed.remote_name, tags=tags)
    server = server_of(tool)
    return HeldTool(name, description, needs_approval, server, name if server else None, tags=tags)


def _own(tool: LettaTool) -> HeldTool:
    schema = cast("Mapping[str, Any]", (tool.json_schema or {}).get("parameters") or {})
    approval = bool(tool.default_requires_approval)
    tags = tuple(tool.tags or ())
    return HeldTool(tool.name or "", tool.description or "", approval, parameters=schema, tags=tags)


def _about(agent_id: str) -> str:
    return f"agent '{agent_id}'"
