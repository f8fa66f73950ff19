"""Defines what can be asked about tools: over MCP, over the HTTP API, and by the built-in agents."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from frontdesk.coercion import (
    DEFAULT_LIMIT,
    DEFAULT_MIN_SCORE,
    MAX_LIMIT,
    coerce_flag,
    coerce_limit,
    coerce_min_score,
    coerce_tool_names,
    loose_field,
)
from frontdesk.errors import Denied, Invalid
from frontdesk.operations import OperationRequest
from frontdesk.text import storable
from frontdesk.tools.model import ReviewStatus, ToolKind
from frontdesk.tools.servers import VARIABLE_REFERENCE, ServerSpec, Transport
from frontdesk.tools.service import FindToolsQuery

MAX_TOOLS = 500
MAX_USES = 1000


class FindToolsRequest(OperationRequest):
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


class CallToolRequest(OperationRequest):
    """The arguments of call_tool."""

    name: str = Field(max_length=300, description="The tool's name or id (server::tool).")
    arguments: object = loose_field(
        "object", "Its arguments, as find_tools named them.", default={}, additionalProperties=True
    )

    @property
    def tool_arguments(self) -> Mapping[str, Any]:
        return parse_arguments(self.arguments)


def parse_arguments(value: object) -> Mapping[str, Any]:
    """The arguments of `call_tool`: an object, or JSON text of an object, which many models send."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError) as error:
            raise Invalid(f"`arguments` must be a JSON object, and is text that is no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise Invalid('`arguments` must be a JSON object: {"argument": value, …}')
    return cast("Mapping[str, Any]", value)


class FindToolsArguments(OperationRequest):
    """The arguments of find_tools."""

    query: str = Field(min_length=1, max_length=2000, description="What the tool should do, in plain words")
    limit: int = Field(5, ge=1, le=25, description="At most so many tools")
    min_score: float = Field(50, ge=0, le=100, description="How well one must fit, from 0 to 100")
    keep_tools: list[str] = Field(default_factory=list[str], max_length=100, description="Tools that must stay")


class CallToolArguments(OperationRequest):
    """The arguments of call_tool."""

    name: str = Field(min_length=1, max_length=300, description="The tool's id or name")
    arguments: Annotated[Mapping[str, Any], BeforeValidator(parse_arguments)] = Field(
        default_factory=dict[str, Any], description="Its arguments"
    )


EXAMPLE_QUERY = "file an issue about the broken login"
OptionalAgentId = Annotated[
    Any,
    WithJsonSchema({"type": "string"}),
    Field(description="The agent; not needed where the x-agent-id header or the credential names it."),
]
Limit = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT})]
Score = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})]
Share = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
Flag = Annotated[Any, WithJsonSchema({"type": "boolean"})]
NameList = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
    Field(description="A list, or comma separated."),
]
QueryText = Annotated[str, Field(max_length=20_000, examples=[EXAMPLE_QUERY])]
ShortName = Annotated[str, Field(min_length=1, max_length=300)]


class ToolsApiRequest(BaseModel):
    """Unknown fields are ignored: older clients send more than is needed."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    agent_id: OptionalAgentId = None


class SearchToolsRequest(ToolsApiRequest):
    """A search for tools."""

    query: QueryText
    limit: Limit = DEFAULT_LIMIT
    min_score: Score = Field(0, description="What a tool must reach; nothing, unless it is said.")
    servers: NameList = ()
    detailed: Flag = Field(False, description="Give each tool's whole schema too.")


class AttachToolsRequest(ToolsApiRequest):
    """The task for which an agent needs tools."""

    query: QueryText
    limit: Limit = DEFAULT_LIMIT
    keep_tools: NameList = ()
    min_score: Score = DEFAULT_MIN_SCORE
    servers: NameList = ()
    dry_run: Flag = False
    request_heartbeat: Flag = Field(False, description="Call on the agent once its run is over.")

    @property
    def find_query(self) -> FindToolsQuery:
        return FindToolsQuery(
            self.query,
            coerce_tool_names(self.keep_tools),
            coerce_limit(self.limit),
            coerce_min_score(self.min_score),
            coerce_flag(self.dry_run),
            coerce_flag(self.request_heartbeat),
            frozenset(coerce_tool_names(self.servers)),
        )


class PruneToolsRequest(ToolsApiRequest):
    """The task for which an agent keeps only fitting tools."""

    user_prompt: QueryText
    drop_rate: Share = Field(None, description="The share of its tools to let go; DEFAULT_DROP_RATE unless said.")
    keep_tool_ids: NameList = ()
    dry_run: Flag = False


class RunToolRequest(ToolsApiRequest):
    """The tool to run, and its arguments."""

    name: Annotated[ShortName, Field(examples=["github::create_issue"])]
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class PickToolRequest(ToolsApiRequest):
    """The tool that was chosen from the results of a search."""

    name: ShortName


class ExplainSearchRequest(ToolsApiRequest):
    """Why a search for this finds that tool, or does not."""

    query: QueryText
    tool: ShortName
    limit: Limit = DEFAULT_LIMIT
    min_score: Score = DEFAULT_MIN_SCORE


class ReviewToolRequest(ToolsApiRequest):
    """The review of a changed tool."""

    accept: bool


class RefreshServersRequest(ToolsApiRequest):
    """The servers to ask for their tools; all servers if none are named."""

    servers: list[ShortName] | None = None


class AccessRuleRequest(ToolsApiRequest):
    """An access rule."""

    subject: Annotated[str, Field(max_length=300, description="agent:ID, user:ID, or * for everybody")]
    effect: Literal["allow", "deny"]
    pattern: Annotated[str, Field(max_length=300, description="server::tool, where * stands for anything")]


class AddServerRequest(BaseModel):
    """A tool server with an address. A server that is a command can only be added on the machine itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: Annotated[str, Field(max_length=100)]
    url: Annotated[str, Field(max_length=2000, examples=["https://tools.example.com/mcp"])] = ""
    transport: Literal["http", "sse", "stdio"] = "http"
    headers: dict[str, str] = Field(default_factory=dict[str, str], description="Kept, and not shown again.")
    user_token: bool = Field(False, description="Send it the token of the person that a call is for.")
    description: Annotated[str, Field(max_length=2000)] = ""
    hold_changes: bool | None = Field(None, description="Hold back a tool that changes; else as the settings say.")
    force: bool = Field(False, description="Keep it although it does not answer, and in place of one of its name.")
    command: Any = Field(None, description="Never taken here: it would run on the server's machine.")

    @property
    def spec(self) -> ServerSpec:
        if self.command is not None or self.transport == "stdio":
            raise Denied(
                "A server that is a command runs on this machine, so it is added there and not from here: "
                "frontdesk tools add NAME -- COMMAND, or FRONTDESK_MCP_SERVERS"
            )
        if any(VARIABLE_REFERENCE.search(text) for text in (self.url, *self.headers.values())):
            raise Denied(
                "${…} would be read from the server's environment, so it is taken from settings, a manifest and "
                "`frontdesk tools add` alone; send the value itself"
            )
        return ServerSpec(
            self.name,
            Transport(self.transport),
            self.url,
            headers=self.headers,
            user_token=self.user_token,
            description=self.description,
            hold_changes=self.hold_changes,
        )


class ToolListQuery(BaseModel):
    """Which tools of the catalogue."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    server: str | None = None
    kind: ToolKind | None = None
    standing: ReviewStatus | None = None
    changed: bool = Field(False, description="Only those that changed since they were approved.")
    after: Annotated[str, Field(max_length=300, description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_TOOLS)] = 100


class ToolUseListQuery(BaseModel):
    """Whose uses of which tools, and how far back."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    agent_id: str | None = None
    tool: str | None = None
    days: Annotated[int, Field(ge=1, le=3650)] = 30
    limit: Annotated[int, Field(ge=1, le=MAX_USES)] = 100


class ServerName(OperationRequest):
    """A tool server."""

    name: str


class AccessRuleId(OperationRequest):
    """An access rule."""

    rule_id: str


class ToolName(OperationRequest):
    """A tool, by its id or name."""

    tool_id: str
