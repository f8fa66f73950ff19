"""Builds the MCP server of a door from the tools it offers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.identity import rights
from frontdesk.loop.text import closest
from frontdesk.surfaces.mcp.calls import caller_of
from frontdesk.surfaces.mcp.core import CORE
from frontdesk.surfaces.mcp.memory.specs import MEMORY
from frontdesk.surfaces.mcp.schedule.specs import SCHEDULE
from frontdesk.surfaces.mcp.signals import Context, exchange_of
from frontdesk.surfaces.mcp.straight import Way
from frontdesk.surfaces.mcp.tool import Door, Offer, ToolSpec
from frontdesk.surfaces.mcp.tools import TOOLS
from frontdesk.surfaces.visit import Visit

Arrive = Callable[[], Awaitable[Visit]]

TITLE = "Frontdesk"
DESCRIPTION = "Knows who is calling, hands out tools, wakes agents on time, keeps each person's memory."
INSTRUCTIONS = (
    "Name yourself with the x-agent-id header, the agent_id argument or a key of your own; "
    "call whoami to see who you are taken for."
)
OF_MEMORY = (
    "The tasks, memories, activities and time of one person: the one whose key or token comes with the requests. "
    "Look before you make something that may be there already; ids are in the answers; days and times are on the "
    "person's own clock."
)
# What is at /mcp; every other tool is at its own door alone.
SPECS: tuple[ToolSpec, ...] = (*CORE, *TOOLS, *SCHEDULE)
EVERY: tuple[ToolSpec, ...] = (*SPECS, *MEMORY)
# Tools that are many, and a person's own: among them nobody would find the others.
APART = frozenset({Door.MEMORY})
# What the tools of each capability ask of a credential that is limited by scopes.
NEEDED: Mapping[Door, tuple[str, ...]] = {
    Door.CORE: rights.CORE_SCOPES,
    Door.TOOLS: (rights.TOOLS_ATTACH, rights.TOOLS_CALL),
    Door.SCHEDULE: rights.SCHEDULE_SCOPES,
    Door.MEMORY: rights.PERSON_SCOPES,
}
# A client may keep the list this long; it is the same for everybody.
LIST_TTL_MS = 60_000


def doors(specs: Iterable[ToolSpec] = EVERY) -> Mapping[str, tuple[ToolSpec, ...]]:
    """Path → tools: what does not stand apart at /mcp, and each capability at its own address, with the core."""
    every = tuple(specs)
    found = {path_of(Door.CORE): tuple(spec for spec in every if spec.door not in APART)}
    for door in Door:
        if door is not Door.CORE and any(spec.door is door for spec in every):
            found[path_of(door)] = tuple(spec for spec in every if spec.door in (door, Door.CORE))
    return found


def path_of(door: Door) -> str:
    """The address of a door."""
    return f"/mcp/{door}".rstrip("/")


def scopes_at(path: str) -> tuple[str, ...]:
    """What a credential needs for all tools at an MCP address."""
    own = next((door for door in Door if path_of(door) == path), Door.CORE)
    every = [door for door in Door if door not in APART] if own is Door.CORE else [Door.CORE, own]
    return tuple(scope for door in every for scope in NEEDED[door])


def offers(app: App, specs: Iterable[ToolSpec], path: str, arrive: Arrive | None = None) -> dict[str, Offer]:
    """The tools of a door, ready to be called, in a fixed order; `arrive` makes the visit where no gate does."""
    challenge = challenge_for(app, path)
    hides = path == path_of(Door.MEMORY) and not app.settings.list_all_memory_tools
    return {spec.name: _offer(app, spec, challenge, arrive, listed=not (hides and _is_ours(spec))) for spec in specs}


def _is_ours(spec: ToolSpec) -> bool:
    """Whether a tool of the memory room's address is none of zmemory's: its clients hand on all that is listed."""
    return spec.beside or spec.door is Door.CORE


def _offer(app: App, spec: ToolSpec, challenge: str, arrive: Arrive | None, *, listed: bool) -> Offer:
    describe = None if isinstance(spec.description, str) else partial(spec.description, app)
    walk = caller_of(spec, app, challenge)

    async def call(ctx: Context, arguments: Mapping[str, Any]) -> HandlerResult:
        return await walk(exchange_of(ctx, None if arrive is None else await arrive()), arguments)

    return Offer(spec.definition(app), call, describe, walk, listed)


def straight_ways(offered: Mapping[str, Offer]) -> Mapping[str, Way]:
    """The tools of a door that can be called without the SDK."""
    return {name: offer.straight for name, offer in offered.items() if offer.straight is not None}


class Listing:
    """The tools of a door as clients list them, made anew only when one describes itself differently."""

    def __init__(self, offered: Iterable[Offer]) -> None:
        self._offered = list(offered)
        self._told: list[str | None] = []
        self._listed = types.ListToolsResult(tools=[])

    def now(self) -> types.ListToolsResult:
        told = [offer.describe() if offer.describe else None for offer in self._offered]
        if told != self._told:
            tools = [
                offer.definition if said is None else offer.definition.model_copy(update={"description": said})
                for offer, said in zip(self._offered, told, strict=True)
            ]
            self._told, self._listed = told, types.ListToolsResult(tools=tools)
        return self._listed


def build_server(offered: Mapping[str, Offer], path: str = "/mcp") -> Server[Any]:
    """A low-level MCP server; what it costs to call a tool does not grow with their number."""
    listing = Listing(offer for offer in offered.values() if offer.listed)
    schemas = {name: offer.definition.input_schema for name, offer in offered.items()}

    async def list_tools(_ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listing.now()

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        offer = offered.get(params.name)
        if offer is None:
            meant = closest(params.name, [name for name, one in offered.items() if one.listed])
            near = f"; did you mean '{meant}'?" if meant else ""
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}{near}")
        return await offer.call(ctx, params.arguments or {})

    server = Server[Any](
        "frontdesk",
        version=__version__,
        title=TITLE,
        description=DESCRIPTION,
        instructions=OF_MEMORY if path == path_of(Door.MEMORY) else INSTRUCTIONS,
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        cache_hints={"tools/list": CacheHint(LIST_TTL_MS, "public")},
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    return server


def challenge_for(app: App, path: str) -> str:
    """The Bearer challenge that points a client at the metadata of a door."""
    return f'Bearer resource_metadata="{base_url(app.settings)}/.well-known/oauth-protected-resource{path}"'
