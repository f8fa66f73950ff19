"""Serves tools under /api/v1/tools: search, selection, calls, servers, rules and usage."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query

from frontdesk.app import App
from frontdesk.interfaces.coercion import (
    coerce_drop_rate,
    coerce_flag,
    coerce_limit,
    coerce_min_score,
    coerce_tool_names,
)
from frontdesk.interfaces.responses import AgentToolChanges, ToolSelectionResponse
from frontdesk.interfaces.rest.chat_models import SuccessResponse
from frontdesk.interfaces.rest.errors import ERROR_RESPONSES
from frontdesk.interfaces.rest.routing import CurrentCaller, CurrentToken, identify_caller, recorded_route
from frontdesk.interfaces.rest.tool_models import (
    AccessRuleListResponse,
    AccessRuleRequest,
    AccessRuleResponse,
    AddServerRequest,
    AttachToolsRequest,
    ExplainSearchRequest,
    ExplainSearchResponse,
    PickToolRequest,
    PruneToolsRequest,
    RefreshServersRequest,
    RefreshServersResponse,
    ReviewToolRequest,
    RunToolRequest,
    RunToolResponse,
    SearchToolsRequest,
    SearchToolsResponse,
    ServerCrawlResponse,
    ServerListResponse,
    ServerResponse,
    ToolDetailsResponse,
    ToolPageResponse,
    ToolResponse,
    ToolsApiRequest,
    ToolUseListResponse,
    ToolUseResponse,
)
from frontdesk.journal.store import ToolUseQuery
from frontdesk.tools.access import AccessEffect
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.finder import SearchTools
from frontdesk.tools.model import ReviewStatus, ToolKind
from frontdesk.tools.service import explain_search, get_permitted_tool, list_permitted_servers, list_permitted_tools


def add_search_routes(router: APIRouter, app: App) -> None:
    """Routes that search and use tools."""
    tools = app.tools

    @router.post("/search", responses=ERROR_RESPONSES, summary="Find tools by what they should do")
    async def search_tools(request: SearchToolsRequest, caller: CurrentCaller) -> SearchToolsResponse:
        names = frozenset(coerce_tool_names(request.servers))
        search = SearchTools(request.query, coerce_limit(request.limit), coerce_min_score(request.min_score), names)
        return SearchToolsResponse.of(await tools.search(caller, search), detailed=coerce_flag(request.detailed))

    @router.post("/attach", responses=ERROR_RESPONSES, summary="Find tools for an agent, and attach them to it")
    async def attach_tools(request: AttachToolsRequest, caller: CurrentCaller) -> ToolSelectionResponse:
        app.identity.require_agent(caller)
        return ToolSelectionResponse.of_result(await tools.find(caller, request.find_query))

    @router.post("/prune", responses=ERROR_RESPONSES, summary="Take from an agent the tools that fit a prompt least")
    async def prune_tools(request: PruneToolsRequest, caller: CurrentCaller) -> AgentToolChanges:
        app.identity.require_agent(caller)
        rate = (
            None if request.drop_rate is None else coerce_drop_rate(request.drop_rate, app.settings.default_drop_rate)
        )
        keep, dry_run = coerce_tool_names(request.keep_tool_ids), coerce_flag(request.dry_run)
        return AgentToolChanges.of(
            await tools.prune(caller, request.user_prompt, drop_rate=rate, keep=keep, dry_run=dry_run)
        )

    @router.post("/call", responses=ERROR_RESPONSES, summary="Run a tool now")
    async def call_tool(request: RunToolRequest, caller: CurrentCaller, token: CurrentToken) -> RunToolResponse:
        result = await tools.dispatcher.call(caller, request.name, request.arguments, token=token)
        return RunToolResponse.of(result)

    @router.post("/pick", responses=ERROR_RESPONSES, summary="Say which of the tools found was the right one")
    async def pick_tool(request: PickToolRequest, caller: CurrentCaller) -> ToolResponse:
        return ToolResponse.of(await tools.pick(caller, request.name))

    @router.post("/explain", responses=ERROR_RESPONSES, summary="Why a search finds a tool, or does not")
    async def explain_tool(request: ExplainSearchRequest, caller: CurrentCaller) -> ExplainSearchResponse:
        limit, least = coerce_limit(request.limit), coerce_min_score(request.min_score)
        return ExplainSearchResponse.of(
            await explain_search(tools, caller, request.query, request.tool, limit=limit, min_score=least)
        )


MAX_TOOLS = 500


def add_server_routes(router: APIRouter, app: App) -> None:
    """Routes about tool servers."""
    tools, administration = app.tools, app.tools.administration

    @router.get("/servers", responses=ERROR_RESPONSES, summary="Where tools come from, and how each server is")
    async def list_servers(caller: CurrentCaller) -> ServerListResponse:
        shapes = [ServerResponse.of(state) for state in await list_permitted_servers(tools, caller)]
        progress = tools.catalogue.progress()
        return ServerListResponse(servers=shapes, tools=progress.tools, read=progress.embedded)

    @router.post("/servers", responses=ERROR_RESPONSES, summary="Add a server, and ask it for its tools")
    async def add_server(request: AddServerRequest, caller: CurrentCaller) -> ServerCrawlResponse:
        return ServerCrawlResponse.of(await administration.add_server(caller, request.spec, force=request.force))

    @router.delete("/servers/{name}", responses=ERROR_RESPONSES, summary="Take off a server that was added")
    async def remove_server(name: str, caller: CurrentCaller) -> SuccessResponse:
        await administration.remove_server(caller, name)
        return SuccessResponse()

    @router.post("/refresh", responses=ERROR_RESPONSES, summary="Ask servers for their tools now")
    async def refresh_tools(
        caller: CurrentCaller, request: RefreshServersRequest | None = None
    ) -> RefreshServersResponse:
        steps = await administration.refresh(caller, request.servers if request else None)
        return RefreshServersResponse(servers=[ServerCrawlResponse.of(step) for step in steps])


def add_catalogue_routes(router: APIRouter, app: App) -> None:
    """Routes about single tools. They come last, since a tool's id may look like any path."""
    tools = app.tools

    @router.get("/", include_in_schema=False)
    @router.get("", responses=ERROR_RESPONSES, summary="The tools that the caller may use, in the order of their ids")
    async def list_tools(
        caller: CurrentCaller,
        server: str | None = None,
        kind: ToolKind | None = None,
        standing: ReviewStatus | None = None,
        *,
        changed: Annotated[bool, Query(description="Only those that changed since they were approved.")] = False,
        after: Annotated[str, Query(max_length=300, description="`next` of the page before.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_TOOLS)] = 100,
    ) -> ToolPageResponse:
        wanted = ToolFilter(server, kind, standing, changed=changed, after=after, limit=limit)
        return ToolPageResponse.of(await list_permitted_tools(tools, caller, wanted))

    @router.post("/{tool_id:path}/review", responses=ERROR_RESPONSES, summary="Accept or refuse how a tool changed")
    async def review_tool(tool_id: str, request: ReviewToolRequest, caller: CurrentCaller) -> ToolDetailsResponse:
        tool = await tools.administration.review(caller, tool_id, accept=request.accept)
        return ToolDetailsResponse.with_other_version(tool, await tools.catalogue.other_version(tool.id))

    @router.get(
        "/{tool_id:path}", responses=ERROR_RESPONSES, summary="A tool with its schema, and the change to review"
    )
    async def show_tool(tool_id: str, caller: CurrentCaller) -> ToolDetailsResponse:
        tool = await get_permitted_tool(tools, caller, tool_id)
        return ToolDetailsResponse.with_other_version(tool, await tools.catalogue.other_version(tool.id))


MAX_USES = 1000


def add_administration_routes(router: APIRouter, app: App) -> None:
    """Routes about access rules, usage and learning."""
    administration = app.tools.administration
    _add_access_rules(router, app)

    @router.get("/usage", responses=ERROR_RESPONSES, summary="Which agents use which tools, how often and how well")
    async def tool_usage(
        caller: CurrentCaller,
        agent_id: str | None = None,
        tool: str | None = None,
        days: Annotated[int, Query(ge=1, le=3650)] = 30,
        limit: Annotated[int, Query(ge=1, le=MAX_USES)] = 100,
    ) -> ToolUseListResponse:
        query = ToolUseQuery(agent_id, None, tool, datetime.now(UTC) - timedelta(days=days), limit)
        return ToolUseListResponse(uses=[ToolUseResponse.of(use) for use in await administration.usage(caller, query)])

    @router.post("/forget", responses=ERROR_RESPONSES, summary="Forget which tools were of use to the caller")
    async def forget_uses(caller: CurrentCaller, _asked: ToolsApiRequest | None = None) -> SuccessResponse:
        await administration.forget(caller)
        return SuccessResponse()


def _add_access_rules(router: APIRouter, app: App) -> None:
    administration = app.tools.administration

    @router.get("/rights", responses=ERROR_RESPONSES, summary="The rules about who may use which tools")
    async def list_rights(caller: CurrentCaller) -> AccessRuleListResponse:
        return AccessRuleListResponse(
            rules=[AccessRuleResponse.of(rule) for rule in await administration.rules(caller)]
        )

    @router.post("/rights", responses=ERROR_RESPONSES, summary="Add a rule")
    async def add_right(request: AccessRuleRequest, caller: CurrentCaller) -> AccessRuleResponse:
        return AccessRuleResponse.of(
            await administration.add_rule(caller, request.subject, AccessEffect(request.effect), request.pattern)
        )

    @router.delete("/rights/{rule_id}", responses=ERROR_RESPONSES, summary="Take a rule away")
    async def remove_right(rule_id: str, caller: CurrentCaller) -> SuccessResponse:
        await administration.remove_rule(caller, rule_id)
        return SuccessResponse()


TOOLS_PATH = "/v1/tools"


def add_tool_routes(api: FastAPI, app: App, prefix: str) -> None:
    """Add the routes; agents call them too, and are identified as over MCP. `prefix` is where the API is mounted."""
    router = APIRouter(prefix=TOOLS_PATH, route_class=recorded_route(app, prefix, identify_caller))
    add_search_routes(router, app)
    add_server_routes(router, app)
    add_administration_routes(router, app)
    add_catalogue_routes(router, app)
    api.include_router(router)
