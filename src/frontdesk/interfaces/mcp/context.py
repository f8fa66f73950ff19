"""Collects what an MCP call says of its sender, and what its tool may use: progress, token, session."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from pydantic import SecretStr
from starlette.requests import Request

from frontdesk.identity.model import Signals
from frontdesk.interfaces.http.context import RequestContext, ensure_request_id, request_context

SdkContext = ServerRequestContext[Any, Request]

MAX_NAME_CHARACTERS = 200
MAX_CAPABILITIES = 50
# (done, of how much, in words)
ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One `tools/call` as its tool sees it, whichever way it came; `progress` is None where nobody asked for it."""

    request_context: RequestContext
    version: str
    params: Mapping[str, Any]
    progress: ReportProgress | None = None


def tool_request(ctx: SdkContext, arrived: RequestContext | None = None) -> ToolRequest:
    """A call that came through the SDK; without middleware that made a context, it has `arrived`, or gets a new one."""
    context = (
        request_context(ctx.request.scope)
        if ctx.request is not None
        else arrived or RequestContext(ensure_request_id(None))
    )
    wanted = ctx.meta is not None and ctx.meta.get("progress_token") is not None
    return ToolRequest(context, ctx.protocol_version, ctx.params or {}, ctx.session.report_progress if wanted else None)


def gather_signals(exchange: ToolRequest, arguments: Mapping[str, object]) -> Signals:
    """Every signal of one `tools/call`."""
    context = exchange.request_context
    headers = context.headers
    return Signals(
        request_id=context.request_id,
        header=headers.get("x-agent-id"),
        parameter=arguments.get("agent_id"),
        metadata=request_metadata(exchange.params),
        credential=context.credential,
        forwarded=context.forwarded,
        name=_printable(headers.get("x-agent-name")),
        capabilities=_capabilities(headers.get("x-agent-capabilities")),
    )


def request_metadata(params: Mapping[str, object]) -> Mapping[str, object]:
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
    return "".join(char for char in text if char.isprintable())[:MAX_NAME_CHARACTERS] or None


@dataclass(frozen=True, slots=True)
class CallContext:
    """`progress` is None where the client did not ask for it; `token` is None where it showed a key, or nothing.

    `version` is the revision of the protocol that the client speaks, `params` all that the call said. `session_id` is
    the session in which it came, `proof` what proved the person or agent, `trusted` whether the client may name people,
    `only_for` the one person whom it may name although it is not, `carried` whether the person was proven by what came
    with this very call. `passed_over` says what was wrong with an agent id that was taken for none.
    """

    version: str
    progress: ReportProgress | None = None
    token: SecretStr | None = None
    params: Mapping[str, object] = field(default_factory=dict[str, object])
    session_id: str | None = None
    proof: SecretStr | None = None
    trusted: bool = False
    only_person: str | None = None
    person_in_request: bool = False
    ignored_agent_id: str | None = None

    @property
    def metadata(self) -> Mapping[str, object]:
        return request_metadata(self.params)


def call_context(exchange: ToolRequest) -> CallContext:
    """The line of one `tools/call`."""
    context = exchange.request_context
    return CallContext(
        exchange.version,
        exchange.progress,
        context.token,
        exchange.params,
        context.session_id,
        context.proof,
        context.trusted,
        context.only_person,
        context.person_in_request,
    )
