"""Who may use what, who used what, and what is remembered of it, over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from frontdesk.app import App
from frontdesk.identity import rights
from frontdesk.journal.store import UseQuery
from frontdesk.surfaces.rest.calls import Who
from frontdesk.surfaces.rest.shapes import Done
from frontdesk.surfaces.rest.tools.asked import Asked, RuleAsked
from frontdesk.surfaces.rest.tools.callers import admin_of, is_admin
from frontdesk.surfaces.rest.tools.finding import REFUSED
from frontdesk.surfaces.rest.tools.told import RuleList, RuleShape, UseList, UseShape
from frontdesk.tools.learning.model import tenant_of
from frontdesk.tools.rights.model import Effect

MOST = 1000


def add_house(router: APIRouter, app: App) -> None:
    """The routes about rules, usage and memory of use."""
    _add_rights(router, app)

    @router.get("/usage", responses=REFUSED, summary="Which agents use which tools, how often and how well")
    async def tool_usage(
        caller: Who,
        request: Request,
        agent_id: str | None = None,
        tool: str | None = None,
        days: Annotated[int, Query(ge=1, le=3650)] = 30,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> UseList:
        rights.require(caller, rights.TOOLS_READ)
        since = datetime.now(UTC) - timedelta(days=days)
        query = UseQuery(agent_id, None, tool, since, limit)
        if not is_admin(app, request):
            # Everybody sees what they did themselves; who is nobody in particular did nothing.
            own = (caller.agent_id, caller.user_id)
            query = UseQuery(*(own if any(own) else ("", "")), tool, since, limit)
        return UseList(uses=[UseShape.of(use) for use in await app.journal.tool_use(query)])

    @router.post("/forget", responses=REFUSED, summary="Forget which tools were of use to the caller")
    async def forget_uses(caller: Who, _asked: Asked | None = None) -> Done:
        rights.require(caller, rights.TOOLS_ATTACH)
        await app.tools.learning.forget(tenant_of(caller))
        return Done()


def _add_rights(router: APIRouter, app: App) -> None:
    allowed, admin = app.tools.allowed, [Depends(admin_of(app))]

    @router.get("/rights", responses=REFUSED, dependencies=admin, summary="The rules about who may use which tools")
    async def list_rights() -> RuleList:
        return RuleList(rules=[RuleShape.of(rule) for rule in await allowed.rules()])

    @router.post("/rights", responses=REFUSED, dependencies=admin, summary="Add a rule")
    async def add_right(asked: RuleAsked) -> RuleShape:
        return RuleShape.of(await allowed.add(asked.subject, Effect(asked.effect), asked.pattern))

    @router.delete("/rights/{rule_id}", responses=REFUSED, dependencies=admin, summary="Take a rule away")
    async def remove_right(rule_id: str) -> Done:
        await allowed.remove(rule_id)
        return Done()
