"""Defines how a tool is declared: name, models of input and output, and how it reports errors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import HandlerResult
from pydantic import BaseModel, ConfigDict, Field

from frontdesk.app import App, McpPath
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.mcp.context import CallContext, SdkContext
from frontdesk.llm.tools import inline_definitions

# Clients send these with any call. Tools do not use them.
IGNORED_ARGUMENTS = frozenset({"agent_id", "mcp_server_id", "mcp_server_name", "request_heartbeat", "heartbeat"})
AGENT_ID_SCHEMA = {
    "type": "string",
    "description": "Your agent id; not needed when the x-agent-id header or a key carries it.",
}


class ErrorFormat(StrEnum):
    """How a tool reports errors.

    With `RPC`, missing or malformed agent ids are JSON-RPC errors. With `RESULT`, a missing one is a result with
    `isError` and `{"error": …}`, like other mistakes. With `ANSWER`, all errors are `{"error": …}` without `isError`,
    as the tools of PromptYoSelf answer: its clients look for `error`, and do not see results with `isError`.
    """

    RPC = "rpc"
    RESULT = "result"
    ANSWER = "answer"


class McpToolInput(BaseModel):
    """The base of every tool's arguments. Unknown arguments are refused, not dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def loose_field(kind: str, description: str, *, needed: bool = False, **more: object) -> object:
    """An argument that is taken in any form, with the schema that clients see."""
    promised: dict[str, Any] = {"type": kind, **more}

    def promise(schema: dict[str, Any]) -> None:
        schema.pop("default", None)
        schema.update(promised)

    return Field(... if needed else None, description=description, json_schema_extra=promise)


class McpToolOutput(BaseModel):
    """The base of every tool's structured answer."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class McpToolResult:
    """The result of a tool in content blocks of its own. An `McpToolOutput` is sent as JSON instead."""

    content: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None
    ok: bool = True


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The declaration of a tool: its name, input, output, and the service call behind it.

    `run` takes the app, the caller and the arguments, and the `CallContext` too where the tool `needs_context`. A
    description that depends on the installation is a function of the app. A tool without `answer` promises no output
    schema. `plain_errors` sends errors as text, otherwise they are JSON. An `agent_id` among a tool's own arguments
    names the agent that the call is about, and not the caller. `handed_to_agents`: connected agents get the tool.
    `outside_contract`: the tool is listed beside the tools of a contract only if a setting says so.
    `accepts_any_agent_id`: a malformed agent id is ignored. `after_failure` runs after a call that failed.
    """

    name: str
    title: str
    description: str | Callable[[App], str]
    arguments: type[BaseModel]
    answer: type[BaseModel] | None
    run: Callable[..., Awaitable[McpToolOutput | McpToolResult]]
    mcp_path: McpPath = McpPath.CORE
    for_agent: bool = True
    error_format: ErrorFormat = ErrorFormat.RPC
    read_only: bool = True
    destructive: bool | None = None
    open_world: bool = False
    needs_context: bool = False
    plain_errors: bool = False
    handed_to_agents: bool = True
    outside_contract: bool = False
    accepts_any_agent_id: bool = False
    after_failure: Callable[[App, RequestContext], Awaitable[None]] | None = None

    def definition(self, app: App) -> types.Tool:
        answer = self.answer
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.describe(app),
            input_schema=self.input_schema(),
            output_schema=self.output_schema(answer) if answer else None,
            annotations=types.ToolAnnotations(
                read_only_hint=self.read_only, destructive_hint=self.destructive, open_world_hint=self.open_world
            ),
        )

    def output_schema(self, answer: type[BaseModel]) -> dict[str, Any]:
        """The output schema. Clients that check results must find errors in it where an error is a result too."""
        schema = dict(_model_schema(answer, "serialization"))
        if self.error_format is not ErrorFormat.ANSWER:
            return schema
        properties = {**schema.get("properties", {}), "error": {"type": "string", "description": "What went wrong."}}
        promised = [{"required": schema.pop("required", [])}, {"required": ["error"]}]
        return {**schema, "properties": properties, "anyOf": promised}

    def describe(self, app: App) -> str:
        return self.description if isinstance(self.description, str) else self.description(app)

    @property
    def ignored_arguments(self) -> frozenset[str]:
        """The arguments that clients send although this tool does not have them."""
        return IGNORED_ARGUMENTS - self.arguments.model_fields.keys()

    @property
    def about_agent(self) -> bool:
        return "agent_id" in self.arguments.model_fields

    def input_schema(self) -> dict[str, Any]:
        schema = dict(_model_schema(self.arguments, "validation"))
        if self.for_agent:
            schema["properties"] = {**schema.get("properties", {}), "agent_id": AGENT_ID_SCHEMA}
        return schema


@cache
def _model_schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Mapping[str, Any]:
    """The schema without references and without the docstring of the class, which is of no use to a model. Cached."""
    return {
        key: value
        for key, value in inline_definitions(model.model_json_schema(mode=mode)).items()
        if key != "description"
    }


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that a server offers: its definition, and the function that answers calls through the SDK.

    `describe` gives a description that may change. `handler` answers calls without the SDK. A tool that is not `listed`
    can still be called.
    """

    definition: types.Tool
    call: Callable[[SdkContext, Mapping[str, Any]], Awaitable[HandlerResult]]
    describe: Callable[[], str] | None = None
    handler: Callable[[CallContext, Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    listed: bool = True


class NoArguments(McpToolInput):
    """No arguments."""
