"""Defines the requests and responses of the tools API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from frontdesk.errors import Denied
from frontdesk.interfaces.coercion import (
    DEFAULT_LIMIT,
    DEFAULT_MIN_SCORE,
    MAX_LIMIT,
    coerce_flag,
    coerce_limit,
    coerce_min_score,
    coerce_tool_names,
)
from frontdesk.interfaces.responses import FoundTool
from frontdesk.journal.store import ToolUse
from frontdesk.tools.access import AccessRule
from frontdesk.tools.calls import CallResult
from frontdesk.tools.crawler import CrawlStage, CrawlStep
from frontdesk.tools.finder import ToolSearchResults
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.servers import VARIABLE_REFERENCE, ServerSpec, ServerState, Transport
from frontdesk.tools.service import FindToolsQuery, SearchExplanation, ToolPage

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

    model_config = ConfigDict(frozen=True)

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

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class ToolsApiModel(BaseModel):
    """JSON as the contract has it: snake_case."""

    model_config = ConfigDict(frozen=True)


class SearchToolsResponse(ToolsApiModel):
    """The found tools, the best first."""

    found: list[FoundTool]
    nothing_relevant: bool
    best_score: float | None = Field(None, description="Also of one below the score that was asked for.")
    by_meaning: bool
    searched: int = Field(description="How many tools there are.")
    unknown: list[str] = Field(description="Which of the servers that were named there are not.")

    @classmethod
    def of(cls, results: ToolSearchResults, *, detailed: bool) -> "SearchToolsResponse":
        return cls(
            found=[FoundTool.of(one, detailed=detailed) for one in results.findings],
            nothing_relevant=results.nothing_relevant,
            best_score=None if results.best is None else round(results.best, 1),
            by_meaning=results.by_meaning,
            searched=results.searched,
            unknown=list(results.unknown),
        )


class ToolResponse(ToolsApiModel):
    """A tool of the catalogue."""

    id: str
    name: str = Field(description="What to call it by.")
    server: str
    kind: str
    description: str
    required: list[str]
    optional: list[str]
    standing: str = Field(description="ready, or held: it changed, and waits for a review.")
    change: str = Field(description="What changed since it was approved; empty where nothing did.")
    stale: bool = Field(description="Its server did not answer lately.")
    seen_at: datetime | None = None
    changed_at: datetime | None = None

    @staticmethod
    def fields_of(tool: CatalogueTool) -> dict[str, Any]:
        required, optional = tool.parameter_names
        same = ("id", "server", "kind", "description", "standing", "change", "stale", "seen_at", "changed_at")
        named = {"name": tool.api_name, "required": required, "optional": optional}
        return {field: getattr(tool, field) for field in same} | named

    @classmethod
    def of(cls, tool: CatalogueTool) -> "ToolResponse":
        return cls(**cls.fields_of(tool))


class ToolDetailsResponse(ToolResponse):
    """A tool with everything that is known of it. `other` is the version that is not in use, if it changed."""

    parameters: Mapping[str, Any]
    annotations: Mapping[str, Any]
    other: Mapping[str, Any] | None = None

    @classmethod
    def with_other_version(cls, tool: CatalogueTool, other: Mapping[str, Any] | None) -> "ToolDetailsResponse":
        return cls(**cls.fields_of(tool), parameters=tool.parameters, annotations=tool.annotations, other=other)


class ToolPageResponse(ToolsApiModel):
    """A page of tools; `next` goes into `after`."""

    tools: list[ToolResponse]
    next: str | None = None

    @classmethod
    def of(cls, page: ToolPage) -> "ToolPageResponse":
        return cls(tools=[ToolResponse.of(tool) for tool in page.tools], next=page.next)


class RunToolResponse(ToolsApiModel):
    """The result of a tool, with the server's own blocks and structured content."""

    ok: bool
    content: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None
    error: str | None = None

    @classmethod
    def of(cls, result: CallResult) -> "RunToolResponse":
        return cls(ok=result.ok, content=result.content, structured=result.structured, error=result.error)


class ServerCrawlResponse(ToolsApiModel):
    """How a server answered when it was asked for its tools."""

    server: str
    ok: bool
    tools: int
    told: str

    @classmethod
    def of(cls, step: CrawlStep) -> "ServerCrawlResponse":
        return cls(server=step.server, ok=step.stage is not CrawlStage.FAILED, tools=step.tools, told=step.message)


class RefreshServersResponse(ToolsApiModel):
    """How each server answered."""

    servers: list[ServerCrawlResponse]


class ServerChangeNote(ToolsApiModel):
    """A change that a server made to its tools."""

    at: datetime
    what: str


class ServerResponse(ToolsApiModel):
    """A tool server and its state, without secrets."""

    name: str
    transport: str
    place: str
    origin: str
    description: str
    user_token: bool
    hold_changes: bool | None
    status: str
    error: str
    problems: list[str]
    changes: list[ServerChangeNote]
    tools: int
    crawled_at: datetime | None = None
    answered_at: datetime | None = None

    @classmethod
    def of(cls, state: ServerState) -> "ServerResponse":
        of_spec = ("name", "transport", "place", "origin", "description", "user_token", "hold_changes")
        of_state = ("status", "error", "tools", "crawled_at", "answered_at")
        return cls(
            **{field: getattr(state.spec, field) for field in of_spec},
            **{field: getattr(state, field) for field in of_state},
            problems=list(state.problems),
            changes=[ServerChangeNote(at=one.at, what=one.what) for one in state.changes],
        )


class ServerListResponse(ToolsApiModel):
    """The tool servers."""

    servers: list[ServerResponse]
    tools: int = Field(description="Tools that are found by their words.")
    read: int = Field(description="Of these, tools that are found by meaning as well; the model is reading the others.")


class ExplainSearchResponse(ToolsApiModel):
    """Why a tool is found, or is not."""

    tool: ToolResponse
    verdict: str
    place: int | None = Field(None, description="Its place among all tools; nothing where it is far down.")
    score: float
    reason: str
    words: list[str]
    meaning: float
    past_use: float
    searched: int
    by_meaning: bool

    @classmethod
    def of(cls, results: SearchExplanation) -> "ExplainSearchResponse":
        one = results.finding
        return cls(
            tool=ToolResponse.of(results.tool),
            verdict=results.verdict,
            place=results.place,
            score=round(one.score, 1) if one else 0,
            reason=one.reason if one else "nothing speaks for it",
            words=list(one.words) if one else [],
            meaning=round(one.meaning, 1) if one else 0,
            past_use=round(one.past_use, 1) if one else 0,
            searched=results.searched,
            by_meaning=results.by_meaning,
        )


class ToolUseResponse(ToolsApiModel):
    """How an agent used a tool."""

    agent_id: str | None
    tool: str
    calls: int
    failed: int
    mean_ms: float
    last_at: datetime

    @classmethod
    def of(cls, use: ToolUse) -> "ToolUseResponse":
        return cls(
            agent_id=use.agent_id,
            tool=use.tool,
            calls=use.calls,
            failed=use.failed,
            mean_ms=use.mean_us / 1000,
            last_at=use.last_at,
        )


class ToolUseListResponse(ToolsApiModel):
    """The most used first."""

    uses: list[ToolUseResponse]


class AccessRuleResponse(ToolsApiModel):
    """Who may, or may not, use which tools."""

    id: str
    subject: str
    effect: str
    pattern: str

    @classmethod
    def of(cls, rule: AccessRule) -> "AccessRuleResponse":
        return cls(id=rule.id, subject=rule.subject, effect=rule.effect, pattern=rule.pattern)


class AccessRuleListResponse(ToolsApiModel):
    """Every rule, the oldest first."""

    rules: list[AccessRuleResponse]
