"""Offers `find_tools` and `call_tool` to MCP clients."""

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_types.methods import serialize_server_result
from pydantic import Field, ValidationError

from frontdesk.app import App, McpPath
from frontdesk.identity.model import Caller
from frontdesk.interfaces.coercion import (
    DEFAULT_LIMIT,
    DEFAULT_MIN_SCORE,
    MAX_LIMIT,
    coerce_flag,
    coerce_limit,
    coerce_min_score,
    coerce_tool_names,
)
from frontdesk.interfaces.mcp.context import CallContext
from frontdesk.interfaces.mcp.tool_spec import McpToolInput, McpToolResult, ToolSpec, loose_field
from frontdesk.interfaces.responses import ToolSelectionResponse
from frontdesk.mcp_client.wire import result_text
from frontdesk.text import one_line, storable
from frontdesk.tools.calls import CallResult
from frontdesk.tools.operations import describe_found_tools, parse_arguments
from frontdesk.tools.servers import ServerState
from frontdesk.tools.service import FindToolsQuery


def relay_result(result: CallResult, version: str) -> McpToolResult:
    """The result in its own content blocks. A block that the client's revision does not know becomes text."""
    content = [block if _is_known_block(block, version) else _as_text_block(block) for block in result.content]
    if not content and result.error:
        content = [{"type": "text", "text": result.error}]
    # Only the newest revision allows structured content that is not an object. Its text is among the blocks.
    structured = cast("Mapping[str, Any]", result.structured) if isinstance(result.structured, dict) else None
    return McpToolResult(content, structured, result.ok)


def _is_known_block(block: Mapping[str, Any], version: str) -> bool:
    # Nearly every block is only text, and a closer look at those would double the cost of this function.
    if len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str):
        return True
    try:
        # For a result with an unknown block, the newest revision drops the content; the others refuse it.
        shaped = serialize_server_result("tools/call", version, {"resultType": "complete", "content": [block]})
    except ValidationError:
        return False
    return "content" in shaped


def _as_text_block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "text", "text": result_text({"content": [block]})}


FIND_TOOLS_DESCRIPTION = (
    "Find tools for what you are about to do, and get them attached to you. Say what you want done in a sentence. "
    "The answer names what fits, how well and why, with the arguments it takes; call_tool runs any of it at once. "
    "Use it whenever none of your own tools does the job."
)
CALL_TOOL_DESCRIPTION = (
    "Run any tool of the catalogue now, by the name or id that find_tools gave, whether it is attached to you or not. "
    "The answer is the tool's own."
)
NAMED_CHARACTERS = 1000
ABOUT_CHARACTERS = 100
RULES_NOTE = "apply_rules=false has no effect: the limits on an agent's tools always hold"


class McpFindToolsInput(McpToolInput):
    """The arguments of find_tools. Values are corrected, not refused."""

    query: object = loose_field("string", "What you want done, in plain words, or a tool's name.", needed=True)
    keep_tools: object = loose_field("string", "Names or ids of tools that must stay, comma separated.", default="")
    limit: object = loose_field(
        "integer", "How many to find at most.", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIMIT
    )
    min_score: object = loose_field(
        "number", "How well one must fit.", default=DEFAULT_MIN_SCORE, minimum=0, maximum=100
    )
    servers: object = loose_field("string", "Look only among these servers, comma separated.", default="")
    dry_run: object = loose_field("boolean", "Only say what would be attached and detached.", default=False)
    detailed_response: object = loose_field("boolean", "Give each tool's whole schema too.", default=False)
    follow_up: object = loose_field("boolean", "Be called on again once this run is over.", default=False)
    request_heartbeat: object = loose_field("boolean", "Another word for follow_up.", default=False)
    apply_rules: object = loose_field("boolean", "Accepted for older clients: the rules always apply.", default=True)

    @property
    def find_query(self) -> FindToolsQuery:
        return FindToolsQuery(
            query=_query_text(self.query),
            keep=coerce_tool_names(self.keep_tools),
            limit=coerce_limit(self.limit),
            min_score=coerce_min_score(self.min_score),
            dry_run=coerce_flag(self.dry_run),
            follow_up=coerce_flag(self.follow_up) or coerce_flag(self.request_heartbeat),
            servers=frozenset(coerce_tool_names(self.servers)),
        )


def _query_text(query: object) -> str:
    """The query as text. Half characters, which JSON can carry, are replaced."""
    text = query if isinstance(query, str) else "" if query is None else json.dumps(query)
    return storable(text)


class McpCallToolInput(McpToolInput):
    """The arguments of call_tool."""

    name: str = Field(max_length=300, description="The tool's name or id (server::tool).")
    arguments: object = loose_field(
        "object", "Its arguments, as find_tools named them.", default={}, additionalProperties=True
    )

    @property
    def tool_arguments(self) -> Mapping[str, Any]:
        return parse_arguments(self.arguments)


async def find_tools(app: App, caller: Caller, request: McpFindToolsInput) -> McpToolResult:
    app.identity.require_agent(caller)
    query, detailed = request.find_query, coerce_flag(request.detailed_response)
    result = await app.tools.find(caller, query)
    text = describe_found_tools(result, detailed=detailed, min_score=query.min_score)
    if not coerce_flag(request.apply_rules, default=True):
        text = f"{text}\n\n{RULES_NOTE}."
    structured = ToolSelectionResponse.of_result(result, detailed=detailed).model_dump(mode="json", exclude_none=True)
    return McpToolResult([{"type": "text", "text": text}], structured)


async def call_tool(app: App, caller: Caller, request: McpCallToolInput, call: CallContext) -> McpToolResult:
    if caller.user_id is None:
        app.identity.require_agent(caller)
    result = await app.tools.dispatcher.call(
        caller, request.name, request.tool_arguments, token=call.request_context.token, progress=call.progress
    )
    return relay_result(result, call.version)


def describe_find_tools(app: App) -> str:
    """The description of `find_tools`, with the names of the servers: agents ignore a general promise."""
    states = sorted(app.tools.catalogue.servers(), key=lambda state: (-state.tools, state.name))
    named, said = [_server_label(state) for state in states if state.tools], ""
    for number, name in enumerate(named):
        if said and len(said) + len(name) > NAMED_CHARACTERS:
            return f"{FIND_TOOLS_DESCRIPTION} There are tools of: {said}, and {len(named) - number} more servers."
        said = f"{said}, {name}" if said else name
    return f"{FIND_TOOLS_DESCRIPTION} There are tools of: {said}." if said else FIND_TOOLS_DESCRIPTION


def _server_label(state: ServerState) -> str:
    about = one_line(state.spec.description, ABOUT_CHARACTERS).rstrip(".")
    return f"{state.name} ({about})" if about else state.name


CATALOGUE_TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="find_tools",
        title="Find tools",
        description=describe_find_tools,
        arguments=McpFindToolsInput,
        answer=ToolSelectionResponse,
        run=find_tools,
        mcp_path=McpPath.TOOLS,
        read_only=False,
        destructive=False,
        plain_errors=True,
    ),
    ToolSpec(
        name="call_tool",
        title="Call a tool",
        description=CALL_TOOL_DESCRIPTION,
        arguments=McpCallToolInput,
        answer=None,
        run=call_tool,
        mcp_path=McpPath.TOOLS,
        read_only=False,
        destructive=True,
        open_world=True,
        needs_context=True,
        plain_errors=True,
    ),
)
