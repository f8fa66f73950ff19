"""Search, attach, prune, call: what agents and people do with tools over HTTP."""

from fastapi import APIRouter

from frontdesk.app import App
from frontdesk.surfaces import given
from frontdesk.surfaces.findings import Changed, Selected
from frontdesk.surfaces.rest.calls import Token, Who
from frontdesk.surfaces.rest.shapes import REFUSED
from frontdesk.surfaces.rest.tools.asked import (
    AttachAsked,
    CallAsked,
    ExplainAsked,
    PickAsked,
    PruneAsked,
    SearchAsked,
)
from frontdesk.surfaces.rest.tools.told import Called, Explained, Results, ToolShape
from frontdesk.tools.finding import Search
from frontdesk.tools.looking import explain


def add_finding(router: APIRouter, app: App) -> None:
    """The routes that look for tools and use them."""
    tools = app.tools

    @router.post("/search", responses=REFUSED, summary="Find tools by what they should do")
    async def search_tools(asked: SearchAsked, caller: Who) -> Results:
        names = frozenset(given.tool_names(asked.servers))
        search = Search(asked.query, given.limit(asked.limit), given.min_score(asked.min_score), names)
        return Results.of(await tools.search(caller, search), detailed=given.flag(asked.detailed))

    @router.post("/attach", responses=REFUSED, summary="Find tools for an agent, and attach them to it")
    async def attach_tools(asked: AttachAsked, caller: Who) -> Selected:
        app.identity.require_agent(caller)
        return Selected.made(await tools.find(caller, asked.wanted))

    @router.post("/prune", responses=REFUSED, summary="Take from an agent the tools that fit a prompt least")
    async def prune_tools(asked: PruneAsked, caller: Who) -> Changed:
        app.identity.require_agent(caller)
        rate = None if asked.drop_rate is None else given.drop_rate(asked.drop_rate, app.settings.default_drop_rate)
        keep, dry_run = given.tool_names(asked.keep_tool_ids), given.flag(asked.dry_run)
        return Changed.of(await tools.prune(caller, asked.user_prompt, drop_rate=rate, keep=keep, dry_run=dry_run))

    @router.post("/call", responses=REFUSED, summary="Run a tool now")
    async def call_tool(asked: CallAsked, caller: Who, token: Token) -> Called:
        result = await tools.calling.call(caller, asked.name, asked.arguments, token=token)
        return Called.of(result)

    @router.post("/pick", responses=REFUSED, summary="Say which of the tools found was the right one")
    async def pick_tool(asked: PickAsked, caller: Who) -> ToolShape:
        return ToolShape.of(await tools.pick(caller, asked.name))

    @router.post("/explain", responses=REFUSED, summary="Why a search finds a tool, or does not")
    async def explain_tool(asked: ExplainAsked, caller: Who) -> Explained:
        limit, least = given.limit(asked.limit), given.min_score(asked.min_score)
        return Explained.of(await explain(tools, caller, asked.query, asked.tool, limit=limit, min_score=least))
