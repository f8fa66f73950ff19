"""Who calls where agents call too: one that is named as at the MCP door, a person, or whoever sits at this machine."""

from dataclasses import replace
from typing import cast

from fastapi import Request

from frontdesk.app import App
from frontdesk.identity.model import Caller, Signals
from frontdesk.surfaces.visit import visit_of


async def identify(app: App, request: Request) -> Caller:
    """The caller by the one rule: credential, `x-agent-id` header, `agent_id` in the body."""
    return await app.identity.identify(replace(_signals(request), parameter=await _parameter(request)))


async def by_header(app: App, request: Request) -> Caller:
    """The caller by the same rule, where a body names the agent that something is for, and not who calls."""
    return await app.identity.identify(_signals(request))


def _signals(request: Request) -> Signals:
    visit = visit_of(request.scope)
    return Signals(
        visit.request_id,
        header=visit.said.get("x-agent-id"),
        credential=visit.credential,
        forwarded=visit.forwarded,
    )


async def _parameter(request: Request) -> object:
    """The agent that the request itself names; a body that is none is told about later."""
    if request.method == "GET":
        return None
    try:
        body: object = await request.json()
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", body).get("agent_id") if isinstance(body, dict) else None
