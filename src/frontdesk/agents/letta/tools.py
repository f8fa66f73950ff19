"""Lists, attaches and detaches the tools of Letta agents, and registers the catalogue's tools with Letta."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import quote

import anyio
from letta_client import omit
from letta_client.types import AgentState, StreamableHTTPMcpServer
from letta_client.types import Tool as LettaTool

from frontdesk.agents.host import HeldTool, ToolChange
from frontdesk.agents.letta.convert import mcp_server_of
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH, HandedTool, HandedToolStore
from frontdesk.agents.letta.server import (
    REGISTRATION_AGENT,
    LettaFailure,
    LettaServer,
    explain_unreachable,
    find_working_key,
    key_from_headers,
)
from frontdesk.errors import Conflict, FrontdeskError, NotFound, Unavailable
from frontdesk.identity.store import KeyStore

SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def without_boolean_schemas(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace the schemas `true` and `false`: with one of them in it, Letta cannot read a list of tools at all.

    The arguments of a call are still checked against the original schema.
    """
    return {key: _convert_keyword(key, value) for key, value in schema.items()}


def _convert_keyword(key: str, value: object) -> object:
    if key in SCHEMA_MAPS and isinstance(value, Mapping):
        return {name: _convert_schema(part) for name, part in cast("Mapping[str, object]", value).items()}
    if key in SCHEMA_LISTS and isinstance(value, Sequence):
        return [_convert_schema(part) for part in cast("Sequence[object]", value)]
    return (
        without_boolean_schemas(cast("Mapping[str, Any]", value))
        if key in SINGLE_SCHEMAS and isinstance(value, Mapping)
        else value
    )


def _convert_schema(part: object) -> object:
    if isinstance(part, bool):
        return {}
    return without_boolean_schemas(cast("Mapping[str, Any]", part)) if isinstance(part, Mapping) else part


MCP_ENDPOINT = re.compile(r"/mcp(/\w+)?/?$")
REGISTERED_NAME = "frontdesk"
# Letta finds a tool's server by a tag, in which a colon ends the name.
UNUSABLE_CHARACTER = ":"


@dataclass(frozen=True, slots=True)
class McpRegistration:
    """The registration of an MCP server at Letta."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def matches(self, known: StreamableHTTPMcpServer) -> bool:
        return known.server_url == self.url and (known.custom_headers or {}) == self.headers


def choose_registration(
    connected: Sequence[StreamableHTTPMcpServer], names: Collection[str], base_url: str
) -> McpRegistration:
    """The registration to use: next to one of `frontdesk letta connect`, whose address works, else at our own address.

    Of several, one is preferred that already has such an entry next to it (`names` are all that Letta has): tools that
    were handed out before are known under that entry.
    """
    usable = [known for known in connected if _is_usable(known)]
    usable.sort(key=lambda known: handed_tools_name(known.server_name) not in names)
    if not usable:
        return McpRegistration(handed_tools_name(REGISTERED_NAME), f"{base_url.rstrip('/')}{HANDED_TOOLS_PATH}")
    first = usable[0]
    return McpRegistration(
        handed_tools_name(first.server_name), handed_tools_url(first.server_url), first.custom_headers or {}
    )


def handed_tools_url(endpoint: str) -> str:
    """The address of the handed tools, derived from another MCP address of the same installation."""
    return MCP_ENDPOINT.sub(HANDED_TOOLS_PATH, endpoint)


def handed_tools_name(name: str) -> str:
    return f"{name}-held"


def _is_usable(known: StreamableHTTPMcpServer) -> bool:
    endpoint = MCP_ENDPOINT.search(known.server_url)
    return (
        endpoint is not None
        and not known.server_url.endswith(HANDED_TOOLS_PATH)
        and UNUSABLE_CHARACTER not in known.server_name
    )


# Letta takes a quarter of a second for one tool; for a new entry it reads all tools that were handed out before.
REGISTER_SECONDS = 30
CREATE_SECONDS = 120


class ToolRegistrar:
    """Registers tools; `base_url` is where Letta reaches Frontdesk if `frontdesk letta connect` registered nothing."""

    def __init__(self, store: HandedToolStore, keys: KeyStore, base_url: str) -> None:
        self.store = store
        self._keys = keys
        self._base_url = base_url
        self._one_at_a_time = anyio.Lock()

    async def open(self, server: LettaServer, tools: Sequence[HandedTool]) -> "ToolRegistration":
        """Make sure that Letta knows the address of the handed tools, and list the tools there."""
        # The entry comes first: Letta reads a new MCP server as a whole, and these tools are then read one by one.
        async with self._one_at_a_time:
            entry = await self._entry(server)
        before = await self.store.named(tool.name for tool in tools)
        free = [tool for tool in tools if tool.name not in before or before[tool.name].identity == tool.identity]
        return ToolRegistration(server, self.store, entry, await self.store.put(free, datetime.now(UTC)))

    async def _entry(self, server: LettaServer) -> McpRegistration:
        with server.translating_errors("MCP servers"):
            found = await server.client.mcp_servers.list()
        ours = [one for one in found if isinstance(one, StreamableHTTPMcpServer) and await self._is_ours(one)]
        entry = choose_registration(ours, {one.server_name for one in found}, self._base_url)
        known = next((one for one in found if one.server_name == entry.name), None)
        if known is None:
            await _create_server(server, entry)
        elif not isinstance(known, StreamableHTTPMcpServer):
            raise Conflict(f"The Letta server has another kind of MCP server named '{entry.name}'; rename it there")
        elif not entry.matches(known):
            await _update_server(server, known.id or "", entry)
        return entry

    async def _is_ours(self, known: StreamableHTTPMcpServer) -> bool:
        found = key_from_headers(known.custom_headers)
        return (
            found is not None
            and await find_working_key(self._keys, found, REGISTRATION_AGENT, datetime.now(UTC)) is not None
        )


@dataclass(frozen=True, slots=True)
class ToolRegistration:
    """Tools that our endpoint lists, and the server entry under which Letta registers them."""

    server: LettaServer
    store: HandedToolStore
    server_entry: McpRegistration
    kept: Mapping[str, HandedTool]

    async def register(self, name: str, known: LettaTool | None) -> LettaTool:
        """The tool as Letta has it; `known` is the tool that has this name there, and must be ours."""
        if name not in self.kept:
            raise Conflict(f"The name '{name}' belongs to another tool already; rename this tool's server")
        if known is not None:
            self._check(known)
            if self.kept[name].registered_as == self.server_entry.name:
                return known
        made = await self._add(name)
        self._check(made)
        await self.store.mark_registered(name, self.server_entry.name)
        return made

    async def _add(self, name: str) -> LettaTool:
        """Add one tool; Letta's other calls read all tools of a server again, and drop those that are missing."""
        path = f"/v1/tools/mcp/servers/{quote(self.server_entry.name, safe='')}/{quote(name, safe='')}"
        client = self.server.client.with_options(timeout=REGISTER_SECONDS, max_retries=0)
        try:
            with self.server.translating_errors(f"tool '{name}' at {self.server_entry.url}"):
                return await client.post(path, cast_to=LettaTool)
        except Unavailable as error:
            raise LettaFailure(
                f"The Letta server could not read '{name}' at {self.server_entry.url}; check that Frontdesk runs there "
                "and "
                "that Letta reaches it, and see `frontdesk letta connect`"
            ) from error

    def _check(self, tool: LettaTool) -> None:
        """Names are unique on a Letta server, and the present owner of a name keeps it."""
        if (owner := mcp_server_of(tool)) != self.server_entry.name:
            whose = f"of the MCP server '{owner}'" if owner else "that is not Frontdesk's"
            raise Conflict(f"The Letta server has a tool '{tool.name}' {whose}; remove or rename it there first")


async def _create_server(server: LettaServer, entry: McpRegistration) -> None:
    client = server.client.with_options(timeout=CREATE_SECONDS, max_retries=0)
    # A conflict comes from another replica, which creates the same entry.
    with suppress(Conflict), explain_unreachable(entry.url), server.translating_errors(f"MCP server '{entry.name}'"):
        await client.mcp_servers.create(
            server_name=entry.name,
            config={
                "mcp_server_type": "streamable_http",
                "server_url": entry.url,
                "custom_headers": dict(entry.headers),
            },
        )


async def _update_server(server: LettaServer, server_id: str, entry: McpRegistration) -> None:
    with explain_unreachable(entry.url), server.translating_errors(f"MCP server '{entry.name}'"):
        await server.client.mcp_servers.update(
            server_id,
            config={
                "mcp_server_type": "streamable_http",
                "server_url": entry.url,
                # None would leave the present headers.
                "custom_headers": dict(entry.headers),
            },
        )


CHANGES_AT_ONCE = 4
TOOL_PAGE = 100
# Shorter than the limit in `tools/agent_tools.py`: a change cut off by that one could not report what was done.
CHANGE_SECONDS = 12
NOT_IN_TIME = f"Letta did not do it within {CHANGE_SECONDS} s; look at what the agent holds, and try again"
OF_MCP_SERVERS = "external_mcp"


class LettaAgentTools:
    """Reads and changes an agent's tools.

    A tool with a server and parameters comes from the catalogue; others are Letta's own, or come from MCP servers that
    Letta knows.
    """

    def __init__(self, server: LettaServer, registrar: ToolRegistrar) -> None:
        self._server = server
        self._client = server.client
        self._registrar = registrar

    async def held(self, agent_id: str) -> Sequence[HeldTool]:
        state = await self._state(agent_id)
        tools = state.tools or []
        asked = {rule.tool_name for rule in state.tool_rules or () if rule.type == "requires_approval"}
        handed = await self._handed(tools)
        return [_held_tool(tool, tool.name in asked, handed.get(tool.name or "")) for tool in tools]

    async def host_tools(self) -> Sequence[HeldTool]:
        with self._server.translating_errors("tools"):
            # The order is always ascending: the default order repeats rows on later pages.
            pages = self._client.tools.list(order="asc", limit=TOOL_PAGE, exclude_tool_types=[OF_MCP_SERVERS])
            return [_letta_tool(tool) async for tool in pages if mcp_server_of(tool) is None]

    async def attach(self, agent_id: str, tool: HeldTool) -> None:
        await self._give(agent_id, tool, await self._find([tool]))
        if not tool.needs_approval:
            # Letta remembers the approval setting of a tool that was attached before.
            await self._set_approval(agent_id, tool.name, needed=False)

    async def detach(self, agent_id: str, name: str) -> None:
        await self._take(agent_id, name, await self._state(agent_id))

    async def change(self, agent_id: str, attach: Sequence[HeldTool], detach: Sequence[str]) -> ToolChange:
        outcome = ToolChangeProgress()
        with anyio.move_on_after(CHANGE_SECONDS):
            state = await self._state(agent_id)
            async with anyio.create_task_group() as tasks:
                for name in detach:
                    tasks.start_soon(outcome.run, name, outcome.detached, partial(self._take, agent_id, name, state))
                tasks.start_soon(self._give_all, agent_id, [tool for tool in attach if _is_of_catalogue(tool)], outcome)
                tasks.start_soon(
                    self._give_all, agent_id, [tool for tool in attach if not _is_of_catalogue(tool)], outcome
                )
        return outcome.result([*(tool.name for tool in attach), *detach])

    async def _give_all(self, agent_id: str, tools: Sequence[HeldTool], outcome: "ToolChangeProgress") -> None:
        if not tools:
            return
        try:
            found = await self._find(tools)
        except FrontdeskError as error:
            outcome.failed.update({tool.name: error.public_message for tool in tools})
            return
        async with anyio.create_task_group() as tasks:
            for tool in tools:
                tasks.start_soon(outcome.run, tool.name, outcome.attached, partial(self._give, agent_id, tool, found))

    async def _find(self, tools: Sequence[HeldTool]) -> "LettaToolLookup":
        """The tools that Letta has under these names, and a registration for those from the catalogue."""
        names = [tool.name for tool in tools]
        with self._server.translating_errors(f"tools {', '.join(names)}"):
            page = await self._client.tools.list(names=names, limit=len(names), order="asc")
        ours = [_handed_tool(tool) for tool in tools if _is_of_catalogue(tool)]
        registration = await self._registrar.open(self._server, ours) if ours else None
        return LettaToolLookup({tool.name or "": tool for tool in page.items}, registration)

    async def _give(self, agent_id: str, tool: HeldTool, found: "LettaToolLookup") -> None:
        letta_tool = await found.get(tool)
        with self._server.translating_errors(_about(agent_id)):
            await self._client.agents.tools.attach(letta_tool.id, agent_id=agent_id)
        if tool.needs_approval:
            await self._set_approval(agent_id, tool.name, needed=True)

    async def _take(self, agent_id: str, name: str, state: AgentState) -> None:
        held = next((tool for tool in state.tools or () if tool.name == name), None)
        if held is None:
            raise NotFound(f"Agent '{agent_id}' has no tool '{name}'; give a name that its list of tools shows")
        with self._server.translating_errors(_about(agent_id)):
            await self._client.agents.tools.detach(held.id, agent_id=agent_id)

    async def _set_approval(self, agent_id: str, name: str, *, needed: bool) -> None:
        with self._server.translating_errors(_about(agent_id)):
            await self._client.agents.tools.update_approval(name, agent_id=agent_id, body_requires_approval=needed)

    async def _state(self, agent_id: str) -> AgentState:
        """The agent with its tools; a separate listing of the tools repeats rows from page to page."""
        with self._server.translating_errors(_about(agent_id)):
            return await self._client.agents.retrieve(agent_id, include=["agent.tools"])

    async def _handed(self, tools: Iterable[LettaTool]) -> Mapping[str, HandedTool]:
        """Those of these tools that Frontdesk handed out, as the catalogue has them."""
        owners = {tool.name or "": owner for tool in tools if (owner := mcp_server_of(tool)) is not None}
        if not owners:
            return {}
        known = await self._registrar.store.named(owners)
        return {name: handed for name, handed in known.items() if handed.registered_as == owners[name]}


@dataclass(slots=True)
class ToolChangeProgress:
    """The progress of a change; tools without a result at its end were not changed in time."""

    attached: list[str] = field(default_factory=list[str])
    detached: list[str] = field(default_factory=list[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    places: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(CHANGES_AT_ONCE))

    async def run(self, name: str, done: list[str], work: Callable[[], Awaitable[None]]) -> None:
        async with self.places:
            try:
                await work()
            except FrontdeskError as error:
                self.failed[name] = error.public_message
            else:
                done.append(name)

    def result(self, wanted: Iterable[str]) -> ToolChange:
        known = {*self.attached, *self.detached, *self.failed}
        return ToolChange(
            self.attached, self.detached, {name: NOT_IN_TIME for name in wanted if name not in known} | self.failed
        )


@dataclass(frozen=True, slots=True)
class LettaToolLookup:
    """Finds Letta's tools by name; names are unique on a Letta server, so each is checked to be the wanted tool."""

    known: Mapping[str, LettaTool]
    registration: ToolRegistration | None

    async def get(self, tool: HeldTool) -> LettaTool:
        found = self.known.get(tool.name)
        if self.registration is not None and _is_of_catalogue(tool):
            return await self.registration.register(tool.name, found)
        if found is None:
            raise NotFound(f"The Letta server has no tool '{tool.name}'; register its MCP server there first")
        if tool.server is not None and mcp_server_of(found) != tool.server:
            raise Conflict(f"The Letta server's tool '{tool.name}' is not of the MCP server '{tool.server}'")
        return found


def _is_of_catalogue(tool: HeldTool) -> bool:
    return tool.server is not None and tool.parameters is not None


def _handed_tool(tool: HeldTool) -> HandedTool:
    parameters = without_boolean_schemas(tool.parameters or {})
    return HandedTool(tool.name, tool.server or "", tool.remote_name or "", tool.description, parameters)


def _held_tool(tool: LettaTool, needs_approval: bool, handed: HandedTool | None) -> HeldTool:
    name, description, tags = tool.name or "", tool.description or "", tuple(tool.tags or ())
    if handed is not None:
        return HeldTool(name, description, needs_approval, handed.server, handed.remote_name, tags=tags)
    server = mcp_server_of(tool)
    return HeldTool(name, description, needs_approval, server, name if server else None, tags=tags)


def _letta_tool(tool: LettaTool) -> HeldTool:
    schema = cast("Mapping[str, Any]", (tool.json_schema or {}).get("parameters") or {})
    approval = bool(tool.default_requires_approval)
    tags = tuple(tool.tags or ())
    return HeldTool(tool.name or "", tool.description or "", approval, parameters=schema, tags=tags)


def _about(agent_id: str) -> str:
    return f"agent '{agent_id}'"


async def upload_tool(server: LettaServer, source_code: str, description: str | None) -> tuple[str, str | None]:
    """Upload a tool, and replace a tool of the same name; returns its id and the name of its function."""
    with server.translating_errors("this tool"):
        made = await server.client.tools.upsert(source_code=source_code, description=description or omit)
    return made.id, made.name
