"""Declares what can be asked about tools: search, attach, call, and for administrators servers, rules and reviews."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from frontdesk.coercion import coerce_drop_rate, coerce_flag, coerce_limit, coerce_min_score, coerce_tool_names
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TOOLS_ADMIN, TOOLS_ATTACH, TOOLS_CALL, TOOLS_READ
from frontdesk.journal.store import ToolUseQuery
from frontdesk.operations import (
    Answer,
    BuiltinAgentTool,
    Call,
    Effect,
    EmptyQuery,
    IdentifyBy,
    McpPath,
    McpTool,
    NoArguments,
    Operation,
    Requires,
    RestInput,
    RestRoute,
    SuccessResponse,
)
from frontdesk.text import one_line
from frontdesk.tools.access import AccessEffect
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.finder import SearchTools
from frontdesk.tools.requests import (
    AccessRuleId,
    AccessRuleRequest,
    AddServerRequest,
    AttachToolsRequest,
    CallToolArguments,
    CallToolRequest,
    ExplainSearchRequest,
    FindToolsArguments,
    FindToolsRequest,
    PickToolRequest,
    PruneToolsRequest,
    RefreshServersRequest,
    ReviewToolRequest,
    RunToolRequest,
    SearchToolsRequest,
    ServerName,
    ToolListQuery,
    ToolName,
    ToolsApiRequest,
    ToolUseListQuery,
)
from frontdesk.tools.responses import (
    AccessRuleListResponse,
    AccessRuleResponse,
    AgentToolChanges,
    ExplainSearchResponse,
    RefreshServersResponse,
    RunToolResponse,
    SearchToolsResponse,
    ServerCrawlResponse,
    ServerListResponse,
    ServerResponse,
    ToolDetailsResponse,
    ToolPageResponse,
    ToolResponse,
    ToolSelectionResponse,
    ToolUseListResponse,
    ToolUseResponse,
    call_answer,
    describe_found_tools,
)
from frontdesk.tools.servers import ServerState
from frontdesk.tools.service import (
    FindToolsQuery,
    ToolService,
    explain_search,
    get_permitted_tool,
    list_permitted_servers,
    list_permitted_tools,
)

PATH = "/v1/tools"
NAMED_CHARACTERS = 1000
ABOUT_CHARACTERS = 100
RULES_NOTE = "apply_rules=false has no effect: the limits on an agent's tools always hold"
FIND_TOOLS_DESCRIPTION = (
    "Find tools for what you are about to do, and get them attached to you. Say what you want done in a sentence. "
    "The answer names what fits, how well and why, with the arguments it takes; call_tool runs any of it at once. "
    "Use it whenever none of your own tools does the job."
)
CALL_TOOL_DESCRIPTION = (
    "Run any tool of the catalogue now, by the name or id that find_tools gave, whether it is attached to you or not. "
    "The answer is the tool's own."
)
# The built-in agents use what was found in the same turn.
AGENT_FIND_TOOLS_DESCRIPTION = (
    "Find tools for a task in the catalogue and get them attached. Say what you want to do in a sentence; "
    "what is found can be used at once."
)
AGENT_CALL_TOOL_DESCRIPTION = (
    "Call any tool of the catalogue by the name or id that find_tools gave, without attaching it."
)


async def find_tools(tools: ToolService, call: Call, request: FindToolsRequest) -> Answer:
    query, detailed = request.find_query, coerce_flag(request.detailed_response)
    result = await tools.find(call.caller, query)
    text = describe_found_tools(result, detailed=detailed, min_score=query.min_score)
    if not coerce_flag(request.apply_rules, default=True):
        text = f"{text}\n\n{RULES_NOTE}."
    data = ToolSelectionResponse.of_result(result, detailed=detailed).model_dump(mode="json", exclude_none=True)
    return Answer(text, data)


async def find_tools_for_agent(tools: ToolService, call: Call, request: FindToolsArguments) -> Answer:
    query = FindToolsQuery(request.query, request.keep_tools, request.limit, request.min_score)
    result = await tools.find(call.caller, query)
    return Answer(describe_found_tools(result, min_score=request.min_score, at_once=True))


async def attach_tools(
    tools: ToolService, call: Call, given: RestInput[EmptyQuery, AttachToolsRequest]
) -> ToolSelectionResponse:
    return ToolSelectionResponse.of_result(await tools.find(call.caller, given.body.find_query))


def describe_find_tools(tools: ToolService) -> str:
    """The description of `find_tools`, with the names of the servers: agents ignore a general promise."""
    states = sorted(tools.catalogue.servers(), key=lambda state: (-state.tools, state.name))
    named, said = [_server_label(state) for state in states if state.tools], ""
    for number, name in enumerate(named):
        if said and len(said) + len(name) > NAMED_CHARACTERS:
            return f"{FIND_TOOLS_DESCRIPTION} There are tools of: {said}, and {len(named) - number} more servers."
        said = f"{said}, {name}" if said else name
    return f"{FIND_TOOLS_DESCRIPTION} There are tools of: {said}." if said else FIND_TOOLS_DESCRIPTION


def _server_label(state: ServerState) -> str:
    about = one_line(state.spec.description, ABOUT_CHARACTERS).rstrip(".")
    return f"{state.name} ({about})" if about else state.name


async def call_tool(tools: ToolService, call: Call, request: CallToolRequest) -> Answer:
    result = await tools.dispatcher.call(
        call.caller, request.name, request.tool_arguments, token=call.token, progress=call.progress
    )
    return call_answer(result)


async def call_tool_for_agent(tools: ToolService, call: Call, request: CallToolArguments) -> Answer:
    result = await tools.dispatcher.call(call.caller, request.name, request.arguments, token=call.token)
    return Answer(result.text, ok=result.ok)


async def call_tool_over_http(
    tools: ToolService, call: Call, given: RestInput[EmptyQuery, RunToolRequest]
) -> RunToolResponse:
    name, arguments = given.body.name, given.body.arguments
    return RunToolResponse.of(await tools.dispatcher.call(call.caller, name, arguments, token=call.token))


async def only_reads(tools: ToolService, arguments: Mapping[str, Any]) -> bool:
    name = arguments.get("name")
    return isinstance(name, str) and await tools.dispatcher.reads_only(name)


def has_tools(tools: ToolService, _caller: Caller) -> bool:
    return bool(len(tools.catalogue.index))


async def search_tools(tools: ToolService, call: Call, request: SearchToolsRequest) -> SearchToolsResponse:
    names = frozenset(coerce_tool_names(request.servers))
    search = SearchTools(request.query, coerce_limit(request.limit), coerce_min_score(request.min_score), names)
    return SearchToolsResponse.of(await tools.search(call.caller, search), detailed=coerce_flag(request.detailed))


async def prune_tools(tools: ToolService, call: Call, request: PruneToolsRequest) -> AgentToolChanges:
    default = tools.selector.default_drop_rate
    rate = None if request.drop_rate is None else coerce_drop_rate(request.drop_rate, default)
    keep, dry_run = coerce_tool_names(request.keep_tool_ids), coerce_flag(request.dry_run)
    return AgentToolChanges.of(
        await tools.prune(call.caller, request.user_prompt, drop_rate=rate, keep=keep, dry_run=dry_run)
    )


async def pick_tool(tools: ToolService, call: Call, request: PickToolRequest) -> ToolResponse:
    return ToolResponse.of(await tools.pick(call.caller, request.name))


async def explain_tool(tools: ToolService, call: Call, request: ExplainSearchRequest) -> ExplainSearchResponse:
    limit, least = coerce_limit(request.limit), coerce_min_score(request.min_score)
    return ExplainSearchResponse.of(
        await explain_search(tools, call.caller, request.query, request.tool, limit=limit, min_score=least)
    )


async def list_servers(tools: ToolService, call: Call, _request: NoArguments) -> ServerListResponse:
    shapes = [ServerResponse.of(state) for state in await list_permitted_servers(tools, call.caller)]
    progress = tools.catalogue.progress()
    return ServerListResponse(servers=shapes, tools=progress.tools, read=progress.embedded)


async def add_server(tools: ToolService, call: Call, request: AddServerRequest) -> ServerCrawlResponse:
    return ServerCrawlResponse.of(await tools.administration.add_server(call.caller, request.spec, force=request.force))


async def remove_server(tools: ToolService, call: Call, request: ServerName) -> SuccessResponse:
    await tools.administration.remove_server(call.caller, request.name)
    return SuccessResponse()


async def refresh_tools(tools: ToolService, call: Call, request: RefreshServersRequest) -> RefreshServersResponse:
    steps = await tools.administration.refresh(call.caller, request.servers)
    return RefreshServersResponse(servers=[ServerCrawlResponse.of(step) for step in steps])


async def tool_usage(tools: ToolService, call: Call, request: ToolUseListQuery) -> ToolUseListResponse:
    since = datetime.now(UTC) - timedelta(days=request.days)
    query = ToolUseQuery(request.agent_id, None, request.tool, since, request.limit)
    return ToolUseListResponse(
        uses=[ToolUseResponse.of(use) for use in await tools.administration.usage(call.caller, query)]
    )


async def forget_uses(tools: ToolService, call: Call, _request: ToolsApiRequest) -> SuccessResponse:
    await tools.administration.forget(call.caller)
    return SuccessResponse()


async def list_rights(tools: ToolService, call: Call, _request: NoArguments) -> AccessRuleListResponse:
    rules = await tools.administration.rules(call.caller)
    return AccessRuleListResponse(rules=[AccessRuleResponse.of(rule) for rule in rules])


async def add_right(tools: ToolService, call: Call, request: AccessRuleRequest) -> AccessRuleResponse:
    effect = AccessEffect(request.effect)
    return AccessRuleResponse.of(
        await tools.administration.add_rule(call.caller, request.subject, effect, request.pattern)
    )


async def remove_right(tools: ToolService, call: Call, request: AccessRuleId) -> SuccessResponse:
    await tools.administration.remove_rule(call.caller, request.rule_id)
    return SuccessResponse()


async def list_tools(tools: ToolService, call: Call, request: ToolListQuery) -> ToolPageResponse:
    return ToolPageResponse.of(await list_permitted_tools(tools, call.caller, ToolFilter(**request.model_dump())))


async def review_tool(
    tools: ToolService, call: Call, given: RestInput[EmptyQuery, ReviewToolRequest]
) -> ToolDetailsResponse:
    tool = await tools.administration.review(call.caller, given.path["tool_id"], accept=given.body.accept)
    return ToolDetailsResponse.with_other_version(tool, await tools.catalogue.other_version(tool.id))


async def show_tool(tools: ToolService, call: Call, request: ToolName) -> ToolDetailsResponse:
    tool = await get_permitted_tool(tools, call.caller, request.tool_id)
    return ToolDetailsResponse.with_other_version(tool, await tools.catalogue.other_version(tool.id))


# Agents call the routes too, and are identified as over MCP. Routes with a tool's id come last: it may look like any
# path.
TOOL_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="search_tools",
        summary="Find tools by what they should do",
        request=SearchToolsRequest,
        run=search_tools,
        scopes=(TOOLS_READ,),
        rest=RestRoute(method="POST", path=f"{PATH}/search", response=SearchToolsResponse, identify_by=IdentifyBy.BODY),
    ),
    Operation(
        name="attach_tools",
        summary="Find tools for an agent, and attach them to it",
        request=FindToolsRequest,
        run=find_tools,
        scopes=(TOOLS_ATTACH,),
        requires=Requires.AGENT,
        effect=Effect.ADDS,
        mcp=McpTool(
            name="find_tools",
            title="Find tools",
            description=describe_find_tools,
            path=McpPath.TOOLS,
            response=ToolSelectionResponse,
            plain_errors=True,
        ),
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/attach",
            body=AttachToolsRequest,
            response=ToolSelectionResponse,
            run=attach_tools,
            identify_by=IdentifyBy.BODY,
        ),
        agents=BuiltinAgentTool(
            name="find_tools",
            description=AGENT_FIND_TOOLS_DESCRIPTION,
            request=FindToolsArguments,
            run=find_tools_for_agent,
            available=has_tools,
        ),
    ),
    Operation(
        name="prune_tools",
        summary="Take from an agent the tools that fit a prompt least",
        request=PruneToolsRequest,
        run=prune_tools,
        scopes=(TOOLS_ATTACH,),
        requires=Requires.AGENT,
        effect=Effect.CHANGES,
        rest=RestRoute(method="POST", path=f"{PATH}/prune", response=AgentToolChanges, identify_by=IdentifyBy.BODY),
    ),
    Operation(
        name="call_tool",
        summary="Run a tool now",
        request=CallToolRequest,
        run=call_tool,
        scopes=(TOOLS_CALL,),
        effect=Effect.CHANGES,
        mcp=McpTool(
            title="Call a tool",
            description=CALL_TOOL_DESCRIPTION,
            path=McpPath.TOOLS,
            open_world=True,
            plain_errors=True,
            requires=Requires.AGENT_OR_PERSON,
        ),
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/call",
            body=RunToolRequest,
            response=RunToolResponse,
            run=call_tool_over_http,
            identify_by=IdentifyBy.BODY,
        ),
        agents=BuiltinAgentTool(
            description=AGENT_CALL_TOOL_DESCRIPTION,
            request=CallToolArguments,
            run=call_tool_for_agent,
            available=has_tools,
            reads_only=only_reads,
        ),
    ),
    Operation(
        name="pick_tool",
        summary="Say which of the tools found was the right one",
        request=PickToolRequest,
        run=pick_tool,
        scopes=(TOOLS_READ,),
        effect=Effect.ADDS,
        rest=RestRoute(method="POST", path=f"{PATH}/pick", response=ToolResponse, identify_by=IdentifyBy.BODY),
    ),
    Operation(
        name="explain_tool",
        summary="Why a search finds a tool, or does not",
        request=ExplainSearchRequest,
        run=explain_tool,
        scopes=(TOOLS_READ,),
        rest=RestRoute(
            method="POST", path=f"{PATH}/explain", response=ExplainSearchResponse, identify_by=IdentifyBy.BODY
        ),
    ),
    Operation(
        name="list_servers",
        summary="Where tools come from, and how each server is",
        request=NoArguments,
        run=list_servers,
        scopes=(TOOLS_READ,),
        rest=RestRoute(method="GET", path=f"{PATH}/servers", response=ServerListResponse),
    ),
    Operation(
        name="add_server",
        summary="Add a server, and ask it for its tools",
        request=AddServerRequest,
        run=add_server,
        admin_scope=TOOLS_ADMIN,
        effect=Effect.ADDS,
        rest=RestRoute(
            method="POST", path=f"{PATH}/servers", response=ServerCrawlResponse, identify_by=IdentifyBy.BODY
        ),
    ),
    Operation(
        name="remove_server",
        summary="Take off a server that was added",
        request=ServerName,
        run=remove_server,
        admin_scope=TOOLS_ADMIN,
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="DELETE", path=f"{PATH}/servers/{{name}}", response=SuccessResponse, identify_by=IdentifyBy.BODY
        ),
    ),
    Operation(
        name="refresh_tools",
        summary="Ask servers for their tools now",
        request=RefreshServersRequest,
        run=refresh_tools,
        admin_scope=TOOLS_ADMIN,
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/refresh",
            response=RefreshServersResponse,
            body_required=False,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="tool_usage",
        summary="Which agents use which tools, how often and how well",
        request=ToolUseListQuery,
        run=tool_usage,
        scopes=(TOOLS_READ,),
        rest=RestRoute(method="GET", path=f"{PATH}/usage", response=ToolUseListResponse),
    ),
    Operation(
        name="forget_uses",
        summary="Forget which tools were of use to the caller",
        request=ToolsApiRequest,
        run=forget_uses,
        scopes=(TOOLS_ATTACH,),
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/forget",
            response=SuccessResponse,
            body_required=False,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="list_rights",
        summary="The rules about who may use which tools",
        request=NoArguments,
        run=list_rights,
        admin_scope=TOOLS_ADMIN,
        rest=RestRoute(method="GET", path=f"{PATH}/rights", response=AccessRuleListResponse),
    ),
    Operation(
        name="add_right",
        summary="Add a rule",
        request=AccessRuleRequest,
        run=add_right,
        admin_scope=TOOLS_ADMIN,
        effect=Effect.ADDS,
        rest=RestRoute(method="POST", path=f"{PATH}/rights", response=AccessRuleResponse, identify_by=IdentifyBy.BODY),
    ),
    Operation(
        name="remove_right",
        summary="Take a rule away",
        request=AccessRuleId,
        run=remove_right,
        admin_scope=TOOLS_ADMIN,
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="DELETE", path=f"{PATH}/rights/{{rule_id}}", response=SuccessResponse, identify_by=IdentifyBy.BODY
        ),
    ),
    Operation(
        name="list_tools",
        summary="The tools that the caller may use, in the order of their ids",
        request=ToolListQuery,
        run=list_tools,
        scopes=(TOOLS_READ,),
        rest=RestRoute(method="GET", path=PATH, response=ToolPageResponse, slash_too=True),
    ),
    Operation(
        name="review_tool",
        summary="Accept or refuse how a tool changed",
        request=ReviewToolRequest,
        run=review_tool,
        admin_scope=TOOLS_ADMIN,
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/{{tool_id:path}}/review",
            body=ReviewToolRequest,
            response=ToolDetailsResponse,
            run=review_tool,
            identify_by=IdentifyBy.BODY,
        ),
    ),
    Operation(
        name="show_tool",
        summary="A tool with its schema, and the change to review",
        request=ToolName,
        run=show_tool,
        scopes=(TOOLS_READ,),
        rest=RestRoute(method="GET", path=f"{PATH}/{{tool_id:path}}", response=ToolDetailsResponse),
    ),
)
