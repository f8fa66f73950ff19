"""Declares operations: what a client can ask of Frontdesk, and how each interface offers it.

An operation is declared once, beside the service that runs it. MCP, the HTTP API and the built-in agents read their
tools and routes from the declaration; `frontdesk.operation_table` lists every operation with its service.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, SecretStr

from frontdesk.errors import MissingScope
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import may_call, require_local_or_granted, require_login, require_person

# (done so far, total, message)
ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls an operation, and what came with the request.

    `token` is the person's token, for tool servers that act for the person. `progress` is None if the client did not
    ask for it. `metadata` is what the client sent beside the arguments. `ignored_agent_id` says what was wrong with an
    agent id that the operation does not need.
    """

    caller: Caller
    token: SecretStr | None = None
    progress: ReportProgress | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    ignored_agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an operation: text for a model or a terminal, and the same as data.

    `content` replaces the text for clients of MCP, where a tool answers with images or other blocks.
    """

    text: str
    data: BaseModel | Mapping[str, Any] | None = None
    ok: bool = True
    content: Sequence[Mapping[str, Any]] | None = None


class Effect(StrEnum):
    """What an operation does to records: it reads them, adds to them, or changes them."""

    READS = "reads"
    ADDS = "adds"
    CHANGES = "changes"


class Requires(StrEnum):
    """Who must call an operation: a person, for their own records; an agent; or one of them.

    LOGIN is a person with all rights to their own records, by a token: a key may not manage keys.
    """

    NOTHING = "nothing"
    PERSON = "person"
    LOGIN = "login"
    AGENT = "agent"
    AGENT_OR_PERSON = "agent or person"


class OperationRequest(BaseModel):
    """The base of requests. Unknown fields are refused, not dropped, so that no limit is lost by a typing error."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class NoArguments(OperationRequest):
    """No arguments."""


class SuccessResponse(BaseModel):
    """The request succeeded."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    success: Literal[True] = True


class McpPath(StrEnum):
    """The capabilities with their own MCP address below /mcp. Every address has the core tools."""

    CORE = ""
    TOOLS = "tools"
    SCHEDULE = "schedule"
    MEMORY = "memory"


class ErrorFormat(StrEnum):
    """How a tool of MCP reports errors.

    With `RPC`, missing or malformed agent ids are JSON-RPC errors. With `RESULT`, a missing one is a result with
    `isError` and `{"error": …}`, like other mistakes. With `ANSWER`, all errors are `{"error": …}` without `isError`,
    as the tools of PromptYoSelf answer: its clients look for `error`, and do not see results with `isError`.
    """

    RPC = "rpc"
    RESULT = "result"
    ANSWER = "answer"


# Runs an operation: the service, the call (`Call`, or what an interface makes of it), and the request.
Run = Callable[[Any, Any, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """How MCP offers an operation.

    `name`, `request`, `run` and `requires` are the operation's own where they are left out. `description` may depend on
    the service. `response` is the model of the structured answer; a tool without it promises no output schema.
    `for_agent`: the arguments may name the calling agent. `handed_to_agents`: agents on a Letta server get the tool.
    `outside_contract`: the tool is listed beside the tools of a contract only if a setting says so. `plain_errors`
    sends errors as text, otherwise they are JSON. `accepts_any_agent_id`: a malformed agent id is ignored.
    `after_failure` runs after a call that failed.
    """

    title: str
    description: str | Callable[[Any], str]
    name: str = ""
    path: McpPath = McpPath.CORE
    request: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    run: Run | None = None
    error_format: ErrorFormat = ErrorFormat.RPC
    requires: Requires | None = None
    for_agent: bool = True
    destructive: bool | None = None
    open_world: bool = False
    plain_errors: bool = False
    handed_to_agents: bool = True
    outside_contract: bool = False
    accepts_any_agent_id: bool = False
    after_failure: Callable[[Any, Call], Awaitable[None]] | None = None


class IdentifyBy(StrEnum):
    """Who calls a route: the person of the credential alone, or an agent too, named by a header or in the body."""

    PERSON = "person"
    HEADER = "header"
    BODY = "body"


QueryT = TypeVar("QueryT")
BodyT = TypeVar("BodyT")


@dataclass(frozen=True, slots=True)
class RestInput(Generic[QueryT, BodyT]):
    """What came with a request of the HTTP API: the parameters in its path, its query, its body and its headers."""

    path: Mapping[str, str]
    query: QueryT
    body: BodyT
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """An answer of the HTTP API with another status, or with headers."""

    value: Any
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class EmptyQuery(BaseModel):
    """No parameters. Unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


# Descriptions of answers by status, as OpenAPI has them.
ResponseDocs = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRoute:
    """How the HTTP API offers an operation, at a path below /api.

    Without `run`, the operation's request is read from the path, the query (for GET and DELETE) and the body, and the
    data of its answer is sent. With `run`, the route has a contract of its own: `body` and `query` are its models, and
    `run` takes the service, the call and a `RestInput`, and gives a value of the type `response`, or a `RestAnswer`.
    `name` is the operation's in OpenAPI, if it is another there.
    """

    method: str
    path: str
    name: str = ""
    body: type[BaseModel] | None = None
    query: type[BaseModel] = EmptyQuery
    response: Any = None
    run: Run | None = None
    status: int = 200
    identify_by: IdentifyBy = IdentifyBy.HEADER
    body_required: bool = True
    omits_nulls: bool = False
    # The same route with a slash at the end, which the description leaves out.
    slash_too: bool = False
    body_example: Mapping[str, Any] | None = None
    # Headers that the description names; `run` reads them from its input.
    header_parameters: Sequence[Mapping[str, Any]] = ()
    responses: ResponseDocs = field(default_factory=dict[int, Mapping[str, Any]])
    # Whether the description has every error with an example.
    detailed_errors: bool = False
    # Whether the body of an error has `success: false`, which clients of some routes read.
    success_field: bool = False


def offered_to_all(_service: object, _caller: Caller) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinAgentTool:
    """How the built-in agents are offered an operation; what is left out is the operation's own.

    `available` says whether a turn has the tool, by the service and the caller. `act_as` changes the caller of a turn
    into the one that the operation sees. `reads_only` tells by the arguments whether a call changes nothing.
    """

    description: str
    name: str = ""
    request: type[BaseModel] | None = None
    run: Run | None = None
    available: Callable[[Any, Caller], bool] = offered_to_all
    act_as: Callable[[Caller], Caller] | None = None
    reads_only: Callable[[Any, Mapping[str, Any]], Awaitable[bool]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """How the command line offers an operation.

    `words` are the command, such as `tools pick`. Its options are the fields of `request`, or of the operation's
    request; the fields in `positional` come without the name of an option. `tools`: whether it calls tools of servers.
    """

    words: str
    request: type[BaseModel] | None = None
    run: Run | None = None
    positional: tuple[str, ...] = ()
    tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that can be asked of Frontdesk.

    Attributes:
        name: Its one name in code, in the journal and in the documentation.
        summary: What it does, in one line.
        request: The model of what is asked, whose fields have descriptions and bounds.
        run: Takes the service, the call and the request; gives an `Answer`, or a model, which is data without text.
        scopes: What a credential with scopes must allow. Without any, everybody may call it.
        admin_scope: What a credential must have by name, unless the caller is at this machine.
        requires: Whether the caller must be a person or an agent.
        effect: What it does to records.
        mcp: How MCP offers it, if it does.
        rest: How the HTTP API offers it, if it does.
        agents: How the built-in agents are offered it, if they are.
        command: How the command line offers it, if it does by this declaration.
    """

    name: str
    summary: str
    request: type[BaseModel]
    run: Run
    scopes: tuple[str, ...] = ()
    admin_scope: str | None = None
    requires: Requires = Requires.NOTHING
    effect: Effect = Effect.READS
    mcp: McpTool | None = None
    rest: RestRoute | None = None
    agents: BuiltinAgentTool | None = None
    command: CommandLine | None = None


@dataclass(frozen=True, slots=True)
class BoundOperation:
    """An operation with the service that runs it. `require_agent` raises an error for a caller without an agent."""

    operation: Operation
    service: Any
    require_agent: Callable[[Caller], None]

    def check(self, caller: Caller, requires: Requires | None = None) -> None:
        """Raise an error if the caller may not call this: the one place where rights are checked for all interfaces."""
        operation = self.operation
        match requires or operation.requires:
            case Requires.PERSON:
                require_person(caller)
            case Requires.LOGIN:
                require_login(caller)
            case Requires.AGENT:
                self.require_agent(caller)
            case Requires.AGENT_OR_PERSON if caller.user_id is None:
                self.require_agent(caller)
            case _:
                pass
        for scope in operation.scopes:
            if not may_call(caller.scopes, scope):
                raise MissingScope(scope)
        if operation.admin_scope is not None:
            require_local_or_granted(caller, operation.admin_scope)
