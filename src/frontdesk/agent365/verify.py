"""Lists the tools of a manifest's live servers, and compares them with the declared tools."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from itertools import islice
from typing import Any, cast
from urllib.parse import urlsplit

import anyio

from frontdesk.agent365.environment import build_mcp_server_url
from frontdesk.agent365.headers import TOKEN_VARIABLE, development_token, server_headers, token_variable_of
from frontdesk.agent365.manifest.model import DeclaredServer, DeclaredTool, nearest_name, quote_name
from frontdesk.agent365.model import MCPServerConfig, ToolOptions, resolve_token_scope_for_server
from frontdesk.errors import FrontdeskError
from frontdesk.mcp_client.model import McpServer, McpServerUnavailable, McpUnauthorized, RemoteTool
from frontdesk.mcp_client.pool import McpClientPool


class ToolState(StrEnum):
    """How a declared tool and a live one compare; UNDECLARED is reported, but is not an error."""

    FOUND = "found"
    DRIFTED = "drifted"
    MISSING = "missing"
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """One tool and its differences."""

    state: ToolState
    tool: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class ServerVerification:
    """The result for one server; `failure` says why it gave no listing, and what to do."""

    server: str
    url: str
    findings: Sequence[ToolFinding] = ()
    failure: str | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None and not any(
            one.state in (ToolState.DRIFTED, ToolState.MISSING) for one in self.findings
        )

    def tools_in_state(self, state: ToolState) -> Sequence[str]:
        """The tools in this state."""
        return [one.tool for one in self.findings if one.state is state]


JsonSchema = Mapping[str, Any]

DEEPEST_SCHEMA = 8
# With any of these keys a schema defines its properties elsewhere.
COMPOSING_KEYS = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas")


def schema_differences(declared: JsonSchema, live: JsonSchema, most: int) -> list[str]:
    """The differences that matter to a caller, up to `most`; a declaration without properties has none."""
    return list(islice(_differences(declared, live, "", DEEPEST_SCHEMA), most))


def _differences(declared: JsonSchema, live: JsonSchema, where: str, depth: int) -> Iterator[str]:
    ours, theirs = _properties(declared), _properties(live)
    if ours is None or depth == 0:
        return
    required, open_ended = _required(declared), any(word in live for word in COMPOSING_KEYS)
    for name, part in ours.items():
        path = f"{where}{name}"
        if theirs is not None and name in theirs:
            yield from _part_differences(part, theirs[name], path, depth)
        elif not open_ended:
            also = ", though the declaration requires it" if name in required else ""
            yield f"the server has no argument {quote_name(path)}{also}"
    for name in _required(live):
        if name not in required:
            how = "declared as optional" if name in ours else "not declared"
            yield f"the server requires {quote_name(where + name)}, which is {how}"


def _part_differences(declared: object, live: object, path: str, depth: int) -> Iterator[str]:
    if not isinstance(declared, dict) or not isinstance(live, dict):
        return
    ours, theirs = cast("JsonSchema", declared), cast("JsonSchema", live)
    said, taken = _value_types(ours, DEEPEST_SCHEMA), _value_types(theirs, DEEPEST_SCHEMA)
    if said and taken and not all(kind in taken or (kind == "integer" and "number" in taken) for kind in said):
        yield f"{quote_name(path)} is {_either(taken)} there, and declared as {_either(said)}"
        return
    yield from _differences(ours, theirs, f"{path}.", depth - 1)
    if depth > 1:
        yield from _part_differences(ours.get("items"), theirs.get("items"), f"{path}[]", depth - 1)


def _value_types(schema: JsonSchema, depth: int) -> frozenset[str]:
    """The types that a part of a schema accepts; empty where that is unknown. Null is ignored."""
    kind: object = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind}) - {"null"}
    if isinstance(kind, list):
        return frozenset(one for one in cast("list[object]", kind) if isinstance(one, str)) - {"null"}
    choices: object = schema.get("anyOf") or schema.get("oneOf")
    if depth == 0 or not isinstance(choices, list):
        return frozenset()
    parts = [
        _value_types(cast("JsonSchema", one), depth - 1)
        for one in cast("list[object]", choices)
        if isinstance(one, dict) and cast("JsonSchema", one).get("type") != "null"
    ]
    return frozenset[str]().union(*parts) if all(parts) else frozenset()


def _properties(schema: JsonSchema) -> Mapping[str, object] | None:
    found: object = schema.get("properties")
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def _required(schema: JsonSchema) -> Sequence[str]:
    found: object = schema.get("required")
    named = cast("list[object]", found) if isinstance(found, list) else []
    return [name for name in named if isinstance(name, str)]


def _either(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds))


MOST_GUESSES = 50
MOST_DIFFERENCES = 10


def compare_tools(declared: Sequence[DeclaredTool], live: Sequence[RemoteTool]) -> tuple[ToolFinding, ...]:
    """A finding for each tool that is declared and not disabled, then one for each tool that is only live."""
    offered = {tool.name: tool for tool in live}
    wanted = {tool.name: tool for tool in declared if tool.enabled}
    named = {tool.name for tool in declared}
    unknown = [name for name in offered if name not in named]
    found = [_compare_tool(tool, offered[name]) for name, tool in wanted.items() if name in offered]
    missing = [name for name in wanted if name not in offered]
    return (
        *found,
        *_missing_findings(missing, unknown, offered),
        *(ToolFinding(ToolState.UNDECLARED, name) for name in unknown),
    )


def _compare_tool(declared: DeclaredTool, live: RemoteTool) -> ToolFinding:
    differences = schema_differences(declared.input_schema, live.parameters, MOST_DIFFERENCES)
    return ToolFinding(ToolState.DRIFTED if differences else ToolState.FOUND, declared.name, "; ".join(differences))


def _missing_findings(
    missing: Sequence[str], unknown: Sequence[str], offered: Mapping[str, object]
) -> Iterator[ToolFinding]:
    """A finding for each missing tool, with the live name that it may have now, preferably an undeclared one."""
    for number, name in enumerate(missing):
        near = (nearest_name(name, unknown) or nearest_name(name, offered)) if number < MOST_GUESSES else None
        yield ToolFinding(ToolState.MISSING, name, f"the server has {quote_name(near)}" if near else "")


SERVERS_AT_ONCE = 8
VERIFY_SECONDS = 30.0


async def verify_servers(
    servers: Sequence[DeclaredServer], environ: Mapping[str, str], seconds: float = VERIFY_SECONDS
) -> Sequence[ServerVerification]:
    """Verify each server, in order, with tokens for development."""
    found: dict[int, ServerVerification] = {}
    turn = anyio.Semaphore(SERVERS_AT_ONCE)
    clients = McpClientPool(timeout=seconds)

    async def one(number: int, server: DeclaredServer) -> None:
        async with turn:
            found[number] = await _verify_server(server, environ, clients)

    try:
        async with anyio.create_task_group() as asking:
            for number, server in enumerate(servers):
                asking.start_soon(one, number, server)
    finally:
        await clients.close()
    return [found[number] for number in sorted(found)]


async def _verify_server(
    server: DeclaredServer, environ: Mapping[str, str], clients: McpClientPool
) -> ServerVerification:
    url = server.url or ""
    _, token = development_token(server.name, environ)
    try:
        url = url or build_mcp_server_url(server.name, environ)
        known = MCPServerConfig(server.name, server.unique_name, url, None, server.audience, server.scope)
        headers = server_headers(known, token, ToolOptions(), None, environ)
        live = await clients.client(McpServer(server.name, url, headers), None, None).tools()
    except FrontdeskError as error:
        told = str(error).replace(token, "[token]") if token else str(error)
        return ServerVerification(
            server.name, redact_url(url), failure=f"{told}{_token_advice(server, error, environ)}"
        )
    return ServerVerification(server.name, redact_url(url), compare_tools(server.tools or (), live))


def _token_advice(server: DeclaredServer, error: FrontdeskError, environ: Mapping[str, str]) -> str:
    """What to set, where the server needs another token than it got."""
    forbidden = isinstance(error, McpServerUnavailable) and error.status == HTTPStatus.FORBIDDEN
    if not forbidden and not isinstance(error, McpUnauthorized):
        return ""
    config = MCPServerConfig(server.name, server.unique_name, audience=server.audience, scope=server.scope)
    scope, own = resolve_token_scope_for_server(config, environ), token_variable_of(server.name)
    variable, token = development_token(server.name, environ)
    if token is None:
        return f"; no token was sent: set {own} or {TOKEN_VARIABLE} to one for {scope}"
    return f"; the token of {variable} was sent: set {own} to one for {scope}"


def redact_url(url: str) -> str:
    """An address without its parts that may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
