"""A tool as Frontdesk declares it, and as the MCP door offers it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Literal

import mcp_types as types
from mcp.server.context import HandlerResult
from pydantic import BaseModel, ConfigDict, Field

from frontdesk.app import App, Door
from frontdesk.loop.schemas import inlined
from frontdesk.surfaces.mcp.signals import Context, Exchange
from frontdesk.surfaces.visit import Visit

# Clients send these along with any call; they say nothing to a tool.
IGNORED = frozenset({"agent_id", "mcp_server_id", "mcp_server_name", "request_heartbeat", "heartbeat"})
AGENT_ID_SCHEMA = {
    "type": "string",
    "description": "Your agent id; not needed when the x-agent-id header or a key carries it.",
}


class ErrorShape(StrEnum):
    """How a tool tells what goes wrong.

    With `RPC`, agent ids that are missing or odd are JSON-RPC errors. With `RESULT` a missing one is a result with
    `isError` and `{"error": …}`, as other mistakes are. With `ANSWER` all are `{"error": …}` without `isError`, as the
    tools of PromptYoSelf answer: its clients look for `error`, and never see what is marked.
    """

    RPC = "rpc"
    RESULT = "result"
    ANSWER = "answer"


class Arguments(BaseModel):
    """The base of every tool's arguments: a misspelt one is refused, not dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def loose(kind: str, description: str, *, needed: bool = False, **more: object) -> object:
    """An argument that is taken in any form, with what the schema promises of it."""
    promised: dict[str, Any] = {"type": kind, **more}

    def promise(schema: dict[str, Any]) -> None:
        schema.pop("default", None)
        schema.update(promised)

    return Field(... if needed else None, description=description, json_schema_extra=promise)


class Answer(BaseModel):
    """The base of every tool's structured answer."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool came to, in blocks of its own; an `Answer` is told as JSON."""

    content: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None
    ok: bool = True


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool: what it is called, what it takes and gives, and the service call behind it.

    `run` is given the app, the caller and the arguments, and where the tool is `on_line` also the `Line` to the caller.
    A description that depends on what is there is a function of the app. Without `answer`, no output is promised; a
    `plain` tool says in words what goes wrong, others as JSON. A tool with an `agent_id` among its own arguments is
    told there which agent it is about, and not who calls. What is `handed` is given to agents that are connected.
    One that is `beside` those of a contract is not listed among them, unless a setting says so. One with `any_id`
    answers whatever agent id was sent, and takes an odd one for none. `after_failure` is done when a call did not go
    well, whatever the reason.
    """

    name: str
    title: str
    description: str | Callable[[App], str]
    arguments: type[BaseModel]
    answer: type[BaseModel] | None
    run: Callable[..., Awaitable[Answer | Result]]
    door: Door = Door.CORE
    for_agent: bool = True
    error_shape: ErrorShape = ErrorShape.RPC
    read_only: bool = True
    destructive: bool | None = None
    open_world: bool = False
    on_line: bool = False
    plain: bool = False
    handed: bool = True
    beside: bool = False
    any_id: bool = False
    after_failure: Callable[[App, Visit], Awaitable[None]] | None = None

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
        """What is promised; where a mistake is an answer too, clients that check answers must find it here."""
        schema = dict(_schema(answer, "serialization"))
        if self.error_shape is not ErrorShape.ANSWER:
            return schema
        properties = {**schema.get("properties", {}), "error": {"type": "string", "description": "What went wrong."}}
        promised = [{"required": schema.pop("required", [])}, {"required": ["error"]}]
        return {**schema, "properties": properties, "anyOf": promised}

    def describe(self, app: App) -> str:
        return self.description if isinstance(self.description, str) else self.description(app)

    @property
    def passed_over(self) -> frozenset[str]:
        """The arguments that are not for this tool, though clients send them."""
        return IGNORED - self.arguments.model_fields.keys()

    @property
    def about_agent(self) -> bool:
        return "agent_id" in self.arguments.model_fields

    def input_schema(self) -> dict[str, Any]:
        schema = dict(_schema(self.arguments, "validation"))
        if self.for_agent:
            schema["properties"] = {**schema.get("properties", {}), "agent_id": AGENT_ID_SCHEMA}
        return schema


@cache
def _schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Mapping[str, Any]:
    """Written out, and without the class's own docstring, which tells a model nothing; made once for each class."""
    return {key: value for key, value in inlined(model.model_json_schema(mode=mode)).items() if key != "description"}


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool on the wire: its definition, what answers a call of it, and how it describes itself by now.

    One that says nothing but its answer also has a way that does without the SDK. What is not `listed` can be called.
    """

    definition: types.Tool
    call: Callable[[Context, Mapping[str, Any]], Awaitable[HandlerResult]]
    describe: Callable[[], str] | None = None
    straight: Callable[[Exchange, Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    listed: bool = True
