"""Gathers what an MCP request says about who sends it."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from frontdesk.identity.model import Signals
from frontdesk.surfaces.visit import Visit, request_id, visit_of

Context = ServerRequestContext[Any, Request]

MAX_NAME = 200
MAX_CAPABILITIES = 50
# (done, of how much, in words)
Progress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One `tools/call` as its tool sees it, whichever way it came; `progress` is None where nobody asked for it."""

    visit: Visit
    version: str
    params: Mapping[str, Any]
    progress: Progress | None = None


def exchange_of(ctx: Context, arrived: Visit | None = None) -> Exchange:
    """A call that came by the SDK; where there is no gate that made a visit, it has `arrived`, or gets a new one."""
    visit = visit_of(ctx.request.scope) if ctx.request is not None else arrived or Visit(request_id(None))
    wanted = ctx.meta is not None and ctx.meta.get("progress_token") is not None
    return Exchange(visit, ctx.protocol_version, ctx.params or {}, ctx.session.report_progress if wanted else None)


def gather(exchange: Exchange, arguments: Mapping[str, object]) -> Signals:
    """Every signal of one `tools/call`."""
    visit = exchange.visit
    headers = visit.said
    return Signals(
        request_id=visit.request_id,
        header=headers.get("x-agent-id"),
        parameter=arguments.get("agent_id"),
        metadata=metadata_of(exchange.params),
        credential=visit.credential,
        forwarded=visit.forwarded,
        name=_printable(headers.get("x-agent-name")),
        capabilities=_capabilities(headers.get("x-agent-capabilities")),
    )


def metadata_of(params: Mapping[str, object]) -> Mapping[str, object]:
    """What a client says besides, in `_meta` or, as older ones do, in `metadata` beside it."""
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
