"""The straight way to a tool: the plain `tools/call`, which is nearly every one, answered without the SDK's machinery.

The SDK checks a request twice and its result once against models of every revision, which costs a call more than all
that Frontdesk does for it. What is plainly well-formed needs none of that; all else still goes by the SDK.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from frontdesk.surfaces.mcp import frames
from frontdesk.surfaces.mcp.signals import Exchange
from frontdesk.surfaces.visit import Visit

METHOD = "tools/call"
SAID = frozenset({"name", "arguments", "_meta"})
# Of these a request's metadata says something that the SDK acts on.
SDK_META = frozenset({"progressToken", "traceparent", "tracestate", "io.modelcontextprotocol/logLevel"})
# Revisions whose results may have structured content.
STRUCTURED = frozenset({"2025-06-18", "2025-11-25", *MODERN_PROTOCOL_VERSIONS})

Way = Callable[[Exchange, Mapping[str, Any]], Awaitable[dict[str, Any]]]

tracer = trace.get_tracer("frontdesk")


@dataclass(frozen=True, slots=True)
class Plain:
    """A call that needs no closer look."""

    number: int | str
    name: str
    arguments: Mapping[str, Any]
    exchange: Exchange
    way: Way


@dataclass(frozen=True, slots=True)
class Straight:
    """The tools of a door that can be called straight, and how the server of that door names itself."""

    ways: Mapping[str, Way]
    server_info: Mapping[str, Any]

    def look(self, call: frames.Call, version: str, visit: Visit) -> Plain | None:
        """The call, if it is one of ours and as plain as can be."""
        params = call.params
        if call.method != METHOD or params is None or version not in STRUCTURED or not params.keys() <= SAID:
            return None
        name, arguments, meta = params.get("name"), cast("object", params.get("arguments")), params.get("_meta")
        way = self.ways.get(name) if isinstance(name, str) else None
        if way is None or not (arguments is None or isinstance(arguments, dict)):
            return None
        if meta is not None and not (isinstance(meta, dict) and SDK_META.isdisjoint(cast("dict[str, object]", meta))):
            return None
        given = cast("dict[str, Any]", arguments or {})
        return Plain(call.id, str(name), given, Exchange(visit, version, params), way)

    async def answer(self, call: Plain) -> dict[str, Any]:
        """The result as it goes on the wire."""
        version = call.exchange.version
        with tracer.start_as_current_span(
            f"{METHOD} {call.name}",
            kind=SpanKind.SERVER,
            attributes={
                "mcp.method.name": METHOD,
                "mcp.protocol.version": version,
                "jsonrpc.request.id": str(call.number),
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
            },
            # What goes wrong may quote what was said.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call.way(call.exchange, call.arguments)
            except MCPError as error:
                span.set_attributes({"error.type": str(error.error.code)})
                span.set_status(StatusCode.ERROR, error.error.message)
                raise
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(StatusCode.ERROR)
                raise
            if result.get("isError"):
                span.set_attribute("error.type", "tool_error")
                span.set_status(StatusCode.ERROR)
        return self.on_the_wire(result, version)

    def on_the_wire(self, result: dict[str, Any], version: str) -> dict[str, Any]:
        """A result as this revision has it."""
        modern = version in MODERN_PROTOCOL_VERSIONS
        if not all(map(_is_text, result["content"])):
            result = serialize_server_result(METHOD, version, result)
        elif not modern:
            del result["resultType"]
        if modern:
            result["_meta"] = {SERVER_INFO_META_KEY: self.server_info}
        return result


def _is_text(block: Mapping[str, Any]) -> bool:
    return len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str)
