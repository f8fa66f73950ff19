"""Who calls the tools API: an agent, named as at the MCP door, or a person, or whoever sits at this machine."""

from collections.abc import Callable
from typing import cast

from fastapi import Request

from frontdesk.app import App
from frontdesk.errors import MissingScope
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.rights import TOOLS_ADMIN, require, require_granted
from frontdesk.surfaces.gate import needs_credential
from frontdesk.surfaces.rest.calls import CALLER
from frontdesk.surfaces.visit import visit_of


async def identify(app: App, request: Request) -> Caller:
    """The caller by the one rule: credential, `x-agent-id` header, `agent_id` in the body."""
    visit = visit_of(request.scope)
    signals = Signals(
        visit.request_id,
        header=visit.said.get("x-agent-id"),
        parameter=await _parameter(request),
        credential=visit.credential,
        forwarded=visit.forwarded,
    )
    return await app.identity.identify(signals)


async def _parameter(request: Request) -> object:
    """The agent that the request itself names; a body that is none is told about later."""
    if request.method == "GET":
        return None
    try:
        body: object = await request.json()
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", body).get("agent_id") if isinstance(body, dict) else None


def admin_of(app: App) -> Callable[[Request], Caller]:
    """The caller, if it may change the house: whoever is at this machine, elsewhere only who was granted it by name."""

    def admin(request: Request) -> Caller:
        caller: Caller = request.scope[CALLER]
        check = require_granted if needs_credential(app, visit_of(request.scope)) else require
        check(caller, TOOLS_ADMIN)
        return caller

    return admin


def is_admin(app: App, request: Request) -> bool:
    try:
        admin_of(app)(request)
    except MissingScope:
        return False
    return True
