"""Gathers what an MCP request says about who sends it."""

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from frontdesk.identity.model import Signals
from frontdesk.surfaces.visit import Visit, request_id, visit_of

Context = ServerRequestContext[Any, Request]

MAX_NAME = 200
MAX_CAPABILITIES = 50


def visit_for(ctx: Context) -> Visit:
    """The visit that the gate made; over stdio there is no gate, and a new one."""
    return visit_of(ctx.request.scope) if ctx.request is not None else Visit(request_id(None))


def gather(ctx: Context, visit: Visit, arguments: Mapping[str, object]) -> Signals:
    """Every signal of one `tools/call`."""
    headers = visit.said
    return Signals(
        request_id=visit.request_id,
        header=headers.get("x-agent-id"),
        parameter=arguments.get("agent_id"),
        metadata=_metadata(ctx.params or {}),
        credential=visit.credential,
        forwarded=visit.forwarded,
        name=_printable(headers.get("x-agent-name")),
        capabilities=_capabilities(headers.get("x-agent-capabilities")),
    )


def _metadata(params: Mapping[str, object]) -> Mapping[str, object]:
    meta, beside = params.get("_meta"), params.get("metadata")
    found = cast("Mapping[str, object]", meta if isinstance(meta, Mapping) else {})
    if isinstance(beside, Mapping) and "metadata" not in found:
        return {**found, "metadata": cast("Mapping[str, object]", beside)}
    return found


def _capabilities(text: str | None) -> tuple[str, ...]:
    """A JSON list or a comma list of words."""
    if not text:
        return ()
    words: list[object] = list(text.split(","))
    if text.startswith("["):
        try:
            words = json.loads(text)
        except (ValueError, RecursionError):
            return ()
    named = (_printable(word.strip()) for word in words if isinstance(word, str))
    return tuple(word for word in named if word)[:MAX_CAPABILITIES]


def _printable(text: str | None) -> str | None:
    if not text:
        return None
    return "".join(char for char in text if char.isprintable())[:MAX_NAME] or None
