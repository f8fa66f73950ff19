"""Defines the context of a tool call, and collects the facts in it that identify the caller."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from frontdesk.identity.model import Signals
from frontdesk.interfaces.http.context import RequestContext, ensure_request_id, request_context
from frontdesk.operations import ReportProgress

SdkContext = ServerRequestContext[Any, Request]

MAX_NAME_CHARACTERS = 200
MAX_CAPABILITIES = 50


@dataclass(frozen=True, slots=True)
class CallContext:
    """One `tools/call`: the HTTP request that it came with, the client's protocol revision, and all its parameters.

    `progress` is None if the client did not ask for it.
    """

    request_context: RequestContext
    version: str
    params: Mapping[str, Any]
    progress: ReportProgress | None = None

    @property
    def metadata(self) -> Mapping[str, object]:
        """The request's metadata: `_meta`, or `metadata` beside it, as older clients send it."""
        meta, beside = self.params.get("_meta"), self.params.get("metadata")
        found = cast("Mapping[str, object]", meta if isinstance(meta, Mapping) else {})
        if isinstance(beside, Mapping) and "metadata" not in found:
            return {**found, "metadata": cast("Mapping[str, object]", beside)}
        return found


def call_context(ctx: SdkContext, default: RequestContext | None = None) -> CallContext:
    """The context of a call that came through the SDK. `default` is used where it came without HTTP (stdio)."""
    request = (
        request_context(ctx.request.scope)
        if ctx.request is not None
        else default or RequestContext(ensure_request_id(None))
    )
    wanted = ctx.meta is not None and ctx.meta.get("progress_token") is not None
    return CallContext(request, ctx.protocol_version, ctx.params or {}, ctx.session.report_progress if wanted else None)


def gather_signals(call: CallContext, arguments: Mapping[str, object]) -> Signals:
    """Collect every fact that identifies the caller."""
    request = call.request_context
    headers = request.headers
    return Signals(
        request_id=request.request_id,
        header=headers.get("x-agent-id"),
        parameter=arguments.get("agent_id"),
        metadata=call.metadata,
        credential=request.credential,
        forwarded=request.forwarded,
        name=_printable(headers.get("x-agent-name")),
        capabilities=_capabilities(headers.get("x-agent-capabilities")),
    )


def _capabilities(text: str | None) -> tuple[str, ...]:
    """Capabilities from a JSON list, or from words with commas between them."""
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
