"""What the tools API is asked, as its contract writes it; numbers and flags are made fit, not refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from frontdesk.errors import Denied
from frontdesk.surfaces import given
from frontdesk.tools.catalogue.servers import REFERENCE, ServerSpec, Transport
from frontdesk.tools.service import Wanted

QUERY = "file an issue about the broken login"
AgentId = Annotated[
    Any,
    WithJsonSchema({"type": "string"}),
    Field(description="The agent; not needed where the x-agent-id header or the credential names it."),
]
Limit = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": given.MOST})]
Score = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})]
Share = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
Flag = Annotated[Any, WithJsonSchema({"type": "boolean"})]
Names = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
    Field(description="A list, or comma separated."),
]
Query = Annotated[str, Field(max_length=20_000, examples=[QUERY])]
Short = Annotated[str, Field(min_length=1, max_length=300)]


class Asked(BaseModel):
    """What is not known is ignored, as older clients send more than is needed."""

    model_config = ConfigDict(frozen=True)

    agent_id: AgentId = None


class SearchAsked(Asked):
    """What to look for."""

    query: Query
    limit: Limit = given.LIMIT
    min_score: Score = Field(0, description="What a tool must reach; nothing, unless it is said.")
    servers: Names = ()
    detailed: Flag = Field(False, description="Give each tool's whole schema too.")


class AttachAsked(Asked):
    """What an agent should get tools for."""

    query: Query
    limit: Limit = given.LIMIT
    keep_tools: Names = ()
    min_score: Score = given.MIN_SCORE
    servers: Names = ()
    dry_run: Flag = False
    request_heartbeat: Flag = Field(False, description="Call on the agent once its run is over.")

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            self.query,
            given.tool_names(self.keep_tools),
            given.limit(self.limit),
            given.min_score(self.min_score),
            given.flag(self.dry_run),
            given.flag(self.request_heartbeat),
            frozenset(given.tool_names(self.servers)),
        )


class PruneAsked(Asked):
    """What an agent is about to do, and so which of its tools it can do without."""

    user_prompt: Query
    drop_rate: Share = Field(None, description="The share of its tools to let go; DEFAULT_DROP_RATE unless said.")
    keep_tool_ids: Names = ()
    dry_run: Flag = False


class CallAsked(Asked):
    """Which tool to run, with what."""

    name: Annotated[Short, Field(examples=["github::create_issue"])]
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class PickAsked(Asked):
    """Which of the tools that a search found was chosen."""

    name: Short


class ExplainAsked(Asked):
    """Why a search for this finds that tool, or does not."""

    query: Query
    tool: Short
    limit: Limit = given.LIMIT
    min_score: Score = given.MIN_SCORE


class ReviewAsked(Asked):
    """Whether a change of a tool is all right."""

    accept: bool


class RefreshAsked(Asked):
    """Which servers to ask for their tools; all of them, unless some are named."""

    servers: list[Short] | None = None


class RuleAsked(Asked):
    """Who may, or may not, use which tools."""

    subject: Annotated[str, Field(max_length=300, description="agent:ID, user:ID, or * for everybody")]
    effect: Literal["allow", "deny"]
    pattern: Annotated[str, Field(max_length=300, description="server::tool, where * stands for anything")]


class ServerAsked(BaseModel):
    """A server of tools that has an address. One that is a command is set up on the machine itself."""

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
        if any(REFERENCE.search(text) for text in (self.url, *self.headers.values())):
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
