"""Who may use what, who used what, and what is remembered of it, over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from frontdesk.app import App
from frontdesk.journal.store import UseQuery
from frontdesk.surfaces.rest.calls import Who
from frontdesk.surfaces.rest.shapes import REFUSED, Done
from frontdesk.surfaces.rest.tools.asked import Asked, RuleAsked
from frontdesk.surfaces.rest.tools.told import RuleList, RuleShape, UseList, UseShape
from frontdesk.tools.rights.model import Effect

MOST = 1000


def add_house(router: APIRouter, app: App) -> None:
    """The routes about rules, usage and memory of use."""
    house = app.tools.house
    _add_rights(router, app)

    @router.get("/usage", responses=REFUSED, summary="Which agents use which tools, how often and how well")
    async def tool_usage(
        caller: Who,
        agent_id: str | None = None,
        tool: str | None = None,
        days: Annotated[int, Query(ge=1, le=3650)] = 30,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> UseList:
        query = UseQuery(agent_id, None, tool, datetime.now(UTC) - timedelta(days=days), limit)
        return UseList(uses=[UseShape.of(use) for use in await house.usage(caller, query)])

    @router.post("/forget", responses=REFUSED, summary="Forget which tools were of use to the caller")
    async def forget_uses(caller: Who, _asked: Asked | None = None) -> Done:
        await house.forget(caller)
        return Done()


def _add_rights(router: APIRouter, app: App) -> None:
    house = app.tools.house

    @router.get("/rights", responses=REFUSED, summary="The rules about who may use which tools")
    async def list_rights(caller: Who) -> RuleList:
        return RuleList(rules=[RuleShape.of(rule) for rule in await house.rules(caller)])

    @router.post("/rights", responses=REFUSED, summary="Add a rule")
    async def add_right(asked: RuleAsked, caller: Who) -> RuleShape:
        return RuleShape.of(await house.add_rule(caller, asked.subject, Effect(asked.effect), asked.pattern))

    @router.delete("/rights/{rule_id}", responses=REFUSED, summary="Take a rule away")
    async def remove_right(rule_id: str, caller: Who) -> Done:
        await house.remove_rule(caller, rule_id)
        return Done()
