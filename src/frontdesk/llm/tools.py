"""Defines the tools of a turn, checks their arguments, and runs them within a time limit."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import anyio
import structlog
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from frontdesk.errors import FrontdeskError
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.llm.events import Event

DEFINITIONS_KEY = "$defs"
REFERENCE_PREFIX = "#/$defs/"
# In these, each key is the name of a schema and not a keyword.
SCHEMA_MAP_KEYS = ("properties", "patternProperties")
# These contain data, in which a key may have the name of a keyword.
DATA_KEYS = ("default", "const", "enum", "examples")

Schema = Mapping[str, Any]


def inline_definitions(schema: Schema) -> dict[str, Any]:
    """The schema with its definitions inlined, and without titles.

    A definition that contains itself becomes `{}`, which accepts anything.
    """
    definitions: Mapping[str, Schema] = schema.get(DEFINITIONS_KEY, {})
    return _inline_schema({key: value for key, value in schema.items() if key != DEFINITIONS_KEY}, definitions, ())


def _inline_schema(schema: Schema, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    if reference.startswith(REFERENCE_PREFIX):
        name = reference.removeprefix(REFERENCE_PREFIX)
        meant: Schema = {} if name in within else definitions[name]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _inline_schema({**meant, **beside}, definitions, (*within, name))
    return {key: _inline_value(key, value, definitions, within) for key, value in schema.items() if key != "title"}


def _inline_value(key: str, value: object, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> object:
    match value:
        case dict() if key in SCHEMA_MAP_KEYS:
            named = cast("Mapping[str, Schema]", value)
            return {name: _inline_schema(one, definitions, within) for name, one in named.items()}
        case dict() if key not in DATA_KEYS:
            return _inline_schema(cast("Schema", value), definitions, within)
        case list() if key not in DATA_KEYS:
            return [
                _inline_schema(cast("Schema", one), definitions, within) if isinstance(one, dict) else one
                for one in cast("list[object]", value)
            ]
        case _:
            return value


TOOL_SECONDS = 120

log = structlog.get_logger("frontdesk.llm")


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a tool: text for the model, whether it worked, and events to show."""

    text: str
    ok: bool = True
    events: Sequence[Event] = ()


# Whether a call with these arguments changes nothing.
ReadsOnly = Callable[[Mapping[str, Any]], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model can call.

    `run_call`, if set, is used instead of `run`, and also gets the id of the call. `seconds` limits its time.
    `reads_only` affects only the order of calls, since a server's statements about its tools prove nothing. `scope` is
    the scope that the turn's credential needs; None if every turn may use the tool.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]
    needs_approval: bool = False
    run_call: Callable[[str, Mapping[str, Any]], Awaitable[ToolOutcome]] | None = None
    seconds: float = TOOL_SECONDS
    reads_only: bool | ReadsOnly = False
    scope: str | None = None


# Gives tools for a caller, with the person's token if there is one.
ToolProvider = Callable[[Caller, SecretStr | None], Sequence[Tool]]


C = TypeVar("C")


async def group_calls(
    calls: Sequence[C], described: Callable[[C], tuple[Tool | None, Mapping[str, Any] | None]]
) -> AsyncGenerator[Sequence[C]]:
    """Groups of calls that run one group after another: a single call, or several that only read.

    `described` gives the tool and the arguments of a call, or None. A group is formed after the one before has run,
    since that run may have changed what a tool does.
    """
    reading: list[C] = []
    for call in calls:
        tool, arguments = described(call)
        if tool is not None and await _reads_only(tool, arguments or {}):
            reading.append(call)
            continue
        if reading:
            yield reading
            reading = []
        yield [call]
    if reading:
        yield reading


async def _reads_only(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    return tool.reads_only if isinstance(tool.reads_only, bool) else await tool.reads_only(arguments)


async def run_tool(tool: Tool, arguments: Mapping[str, Any], call_id: str = "") -> ToolOutcome:
    """Run a tool; an error in it becomes a result for the model, and does not stop the turn."""
    try:
        with anyio.fail_after(tool.seconds):
            if tool.run_call is not None:
                return await tool.run_call(call_id, arguments)
            return await tool.run(arguments)
    except TimeoutError:
        return ToolOutcome(f"No answer in {tool.seconds:g} s; the tool was stopped", ok=False)
    except FrontdeskError as error:
        return ToolOutcome(f"Error: {error.public_message}", ok=False)
    except Exception as error:  # noqa: BLE001 - a tool is other people's code, and the model can often react to the error
        log.debug("tool_failed", tool=tool.name, error=type(error).__name__)
        return ToolOutcome(f"Error: {error}" if str(error) else f"Error: {type(error).__name__}", ok=False)


class ToolInput(BaseModel):
    """The arguments of one of our own tools; unknown arguments are refused."""

    model_config = ConfigDict(extra="forbid")


G = TypeVar("G", bound=ToolInput)


def typed_tool(
    name: str,
    description: str,
    arguments: type[G],
    run: Callable[[G], Awaitable[ToolOutcome]],
    scope: str | None = None,
    *,
    reads_only: bool | ReadsOnly = False,
) -> Tool:
    """A tool with checked arguments; a `FrontdeskError` becomes its result."""

    async def call(given: Mapping[str, Any]) -> ToolOutcome:
        try:
            return await run(arguments.model_validate(given))
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {describe_validation_errors(error)}", ok=False)
        except FrontdeskError as error:
            return ToolOutcome(error.public_message, ok=False)

    return Tool(name, description, _input_schema(arguments), call, reads_only=reads_only, scope=scope)


def permitted_tools(tools: Sequence[Tool], caller: Caller) -> Sequence[Tool]:
    """The tools that a caller's credential allows."""
    return [tool for tool in tools if tool.scope is None or rights.allows_scope(caller.scopes, tool.scope)]


@cache
def _input_schema(arguments: type[ToolInput]) -> Mapping[str, Any]:
    schema = inline_definitions(arguments.model_json_schema())
    return {key: schema[key] for key in schema if key != "description"}


def describe_validation_errors(error: ValidationError) -> str:
    """The mistakes in arguments, in words for a model, without the values."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg'].removeprefix('Value error, ')}"
        for problem in problems
    )
