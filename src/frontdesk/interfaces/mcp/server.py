"""Builds the MCP server of each path, its tool list, and the documents that describe it to clients."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.identity import rights
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.mcp.context import SdkContext, call_context
from frontdesk.interfaces.mcp.tools import (
    OfferedTool,
    ToolHandler,
    described,
    make_tool_handler,
    mcp_tool,
    tool_definition,
    tool_name,
)
from frontdesk.operations import BoundOperation, McpPath, Operation
from frontdesk.text import closest_name

GetRequestContext = Callable[[], Awaitable[RequestContext]]

TITLE = "Frontdesk"
DESCRIPTION = "Knows who is calling, hands out tools, wakes agents on time, keeps each person's memory."
INSTRUCTIONS = (
    "Name yourself with the x-agent-id header, the agent_id argument or a key of your own; "
    "call whoami to see who you are taken for."
)
MEMORY_INSTRUCTIONS = (
    "The tasks, memories, activities and time of one person: the one whose key or token comes with the requests. "
    "Look before you make something that may be there already; ids are in the answers; days and times are on the "
    "person's own clock."
)
# Paths with many tools for one person's records, which would hide all other tools.
SEPARATE_PATHS = frozenset({McpPath.MEMORY})
# The scopes that the tools of each path need.
SCOPES_BY_PATH: Mapping[McpPath, tuple[str, ...]] = {
    McpPath.CORE: rights.CORE_SCOPES,
    McpPath.TOOLS: (rights.TOOLS_ATTACH, rights.TOOLS_CALL),
    McpPath.SCHEDULE: rights.SCHEDULE_SCOPES,
    McpPath.MEMORY: rights.PERSON_SCOPES,
}
# A client may keep the list for this long; it is the same for everybody.
LIST_TTL_MS = 60_000


def main_tools(operations: Iterable[Operation]) -> Sequence[Operation]:
    """The operations whose tools are at /mcp. Every other tool is only at its own path."""
    return [one for one in operations if one.mcp is not None and one.mcp.path not in SEPARATE_PATHS]


def tools_by_path(operations: Iterable[BoundOperation]) -> Mapping[str, Sequence[BoundOperation]]:
    """The tools of each path: at /mcp all that are not separate, and at each other path its own with the core tools."""
    tools = [(bound.operation.mcp.path, bound) for bound in operations if bound.operation.mcp is not None]
    found = {url_path(McpPath.CORE): [bound for path, bound in tools if path not in SEPARATE_PATHS]}
    for mcp_path in McpPath:
        if mcp_path is not McpPath.CORE and any(path is mcp_path for path, _ in tools):
            found[url_path(mcp_path)] = [bound for path, bound in tools if path in (mcp_path, McpPath.CORE)]
    return found


def url_path(mcp_path: McpPath) -> str:
    """The path of an MCP endpoint."""
    return f"/mcp/{mcp_path}".rstrip("/")


def scopes_at_path(path: str) -> tuple[str, ...]:
    """The scopes that all tools at an MCP path need."""
    own = next((mcp_path for mcp_path in McpPath if url_path(mcp_path) == path), McpPath.CORE)
    every = (
        [mcp_path for mcp_path in McpPath if mcp_path not in SEPARATE_PATHS]
        if own is McpPath.CORE
        else [McpPath.CORE, own]
    )
    return tuple(scope for mcp_path in every for scope in SCOPES_BY_PATH[mcp_path])


def offer_tools(
    app: App, operations: Iterable[BoundOperation], path: str, arrive: GetRequestContext | None = None
) -> dict[str, OfferedTool]:
    """The tools of a path, ready to be called, in a fixed order. `arrive` makes the request context on stdio."""
    challenge = bearer_challenge(app, path)
    hides = path == url_path(McpPath.MEMORY) and not app.settings.list_all_memory_tools
    return {
        tool_name(bound.operation): _offer_tool(
            app, bound, challenge, arrive, listed=not (hides and _is_outside_contract(bound.operation))
        )
        for bound in operations
    }


def _is_outside_contract(operation: Operation) -> bool:
    """Whether a tool at the memory path is not one of zmemory's: zmemory's clients pass on every listed tool."""
    tool = mcp_tool(operation)
    return tool.outside_contract or tool.path is McpPath.CORE


def _offer_tool(
    app: App, bound: BoundOperation, challenge: str, arrive: GetRequestContext | None, *, listed: bool
) -> OfferedTool:
    description = described(bound)
    describe = None if isinstance(description, str) else description
    handle = make_tool_handler(bound, app, challenge)

    async def call(ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
        return await handle(call_context(ctx, None if arrive is None else await arrive()), arguments)

    def define() -> types.Tool:
        return tool_definition(bound.operation, description if isinstance(description, str) else description())

    return OfferedTool(define, call, describe, handle, listed)


def fast_handlers(offered: Mapping[str, OfferedTool]) -> Mapping[str, ToolHandler]:
    """The tools of a path that can be called without the SDK."""
    return {name: offer.handler for name, offer in offered.items() if offer.handler is not None}


class ToolList:
    """The tools of a path as clients list them. Built again only when a description changes."""

    def __init__(self, offered: Iterable[OfferedTool]) -> None:
        self._offered = list(offered)
        self._told: list[str | None] = []
        self._listed = types.ListToolsResult(tools=[])

    def current(self) -> types.ListToolsResult:
        told = [offer.describe() if offer.describe else None for offer in self._offered]
        if told != self._told:
            tools = [
                offer.definition if said is None else offer.definition.model_copy(update={"description": said})
                for offer, said in zip(self._offered, told, strict=True)
            ]
            self._told, self._listed = told, types.ListToolsResult(tools=tools)
        return self._listed


def build_server(offered: Mapping[str, OfferedTool], path: str = "/mcp") -> Server[Any]:
    """A low-level MCP server. The cost of a call does not grow with the number of tools."""
    listing = ToolList(offer for offer in offered.values() if offer.listed)

    def input_schema(name: str) -> dict[str, Any] | None:
        offer = offered.get(name)
        return None if offer is None else offer.definition.input_schema

    async def list_tools(_ctx: SdkContext, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listing.current()

    async def call_tool(ctx: SdkContext, params: types.CallToolRequestParams) -> HandlerResult:
        offer = offered.get(params.name)
        if offer is None:
            meant = closest_name(params.name, [name for name, one in offered.items() if one.listed])
            near = f"; did you mean '{meant}'?" if meant else ""
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}{near}")
        return await offer.call(ctx, params.arguments or {})

    server = Server[Any](
        "frontdesk",
        version=__version__,
        title=TITLE,
        description=DESCRIPTION,
        instructions=MEMORY_INSTRUCTIONS if path == url_path(McpPath.MEMORY) else INSTRUCTIONS,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        cache_hints={"tools/list": CacheHint(LIST_TTL_MS, "public")},
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    return server


def bearer_challenge(app: App, path: str) -> str:
    """The Bearer challenge that points a client at the metadata of a path."""
    return f'Bearer resource_metadata="{base_url(app.settings)}/.well-known/oauth-protected-resource{path}"'


CARD_TYPE = "application/mcp-server-card+json"
CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
PUBLIC_HEADERS = {"access-control-allow-origin": "*", "cache-control": "public, max-age=3600"}
RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"


def card_routes(app: App, paths: Iterable[str]) -> list[Route]:
    """The server card of each path, and the catalogue that lists them."""
    cards = {path: server_card(app, path) for path in paths}
    routes = [_document_route(f"{path}/server-card", document, CARD_TYPE) for path, document in cards.items()]
    catalogue = {
        "specVersion": "1.0",
        "entries": [
            {
                "identifier": f"urn:mcp:server:{document['name']}",
                "displayName": document["title"],
                "mediaType": CARD_TYPE,
                "url": f"{base_url(app.settings)}{path}/server-card",
            }
            for path, document in cards.items()
        ],
    }
    return [*routes, _document_route("/.well-known/mcp/catalog.json", catalogue, "application/json")]


def server_card(app: App, path: str) -> dict[str, Any]:
    remote: dict[str, Any] = {
        "type": "streamable-http",
        "url": f"{base_url(app.settings)}{path}",
        "supportedProtocolVersions": [*MODERN_PROTOCOL_VERSIONS, *reversed(HANDSHAKE_PROTOCOL_VERSIONS)],
    }
    if app.settings.auth_required:
        remote["headers"] = [{"name": "Authorization", "isRequired": True, "isSecret": True}]
    return {
        "$schema": CARD_SCHEMA,
        "name": f"dev.frontdesk{path}",
        "title": TITLE,
        "description": DESCRIPTION,
        "version": __version__,
        "remotes": [remote],
    }


def metadata_routes(app: App, paths: Iterable[str]) -> list[Route]:
    """The authorization servers that clients may use, for each path and at the root."""
    paths = list(paths)
    per_path = [
        _document_route(f"{RESOURCE_METADATA_PATH}{path}", _resource_metadata(app, path), "application/json")
        for path in paths
    ]
    return [*per_path, _document_route(RESOURCE_METADATA_PATH, _resource_metadata(app, paths[0]), "application/json")]


def _resource_metadata(app: App, path: str) -> dict[str, Any]:
    ours = [app.identity.oauth.config.issuer] if app.identity.oauth.has_clients else []
    issuers = [*ours, *(issuer.issuer for issuer in app.settings.trusted_issuers)]
    return {
        "resource": f"{base_url(app.settings)}{path}",
        "resource_name": TITLE,
        **({"authorization_servers": issuers} if issuers else {}),
        "scopes_supported": list(scopes_at_path(path)),
        "bearer_methods_supported": ["header"],
    }


def _document_route(path: str, document: dict[str, Any], media_type: str) -> Route:
    async def serve(_request: Request) -> JSONResponse:
        return JSONResponse(document, headers=PUBLIC_HEADERS, media_type=media_type)

    return Route(path, serve, methods=["GET"])
