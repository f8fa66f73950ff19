"""Defines a tool as a turn uses it, checks its arguments, and runs it within its time."""

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
# In these each key is somebody's name for a schema, and no word of the schema itself.
SCHEMA_MAP_KEYS = ("properties", "patternProperties")
# In these there is data, in which a key may be called like a word of a schema.
DATA_KEYS = ("default", "const", "enum", "examples")

Schema = Mapping[str, Any]


def inline_definitions(schema: Schema) -> dict[str, Any]:
    """The schema with each definition where it is referred to, and without the names that classes and fields have.

    Where a definition holds itself, anything is taken: no schema can be written out that has no end.
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
    """What a tool answered: text for the model, whether it worked, and what else those who watch should see."""

    text: str
    ok: bool = True
    events: Sequence[Event] = ()


# Whether a call with these arguments changes nothing.
ReadsOnly = Callable[[Mapping[str, Any]], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A name, a JSON schema, and what runs.

    `run_call`, where there is one, runs instead, and is told the id of the call. `seconds` is how long it may take.
    `reads_only` decides the order of calls and nothing else: what a server says of its own tools proves nothing.
    `scope` is what the credential needs that asked for the turn; None where any turn may use it.
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


# The tools that somebody has for a caller, and for the person behind it whose token comes along.
ToolProvider = Callable[[Caller, SecretStr | None], Sequence[Tool]]


C = TypeVar("C")


async def group_calls(
    calls: Sequence[C], described: Callable[[C], tuple[Tool | None, Mapping[str, Any] | None]]
) -> AsyncGenerator[Sequence[C]]:
    """The calls in groups, to be run one group after the other; those in one group change nothing.

    `described` gives the tool and the arguments of a call, or None. A group is formed when the one before has run,
    since a change may have altered what a tool does.
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
    """What a tool answers; whatever goes wrong in it is told to the model, and stops nothing else."""
    try:
        with anyio.fail_after(tool.seconds):
            if tool.run_call is not None:
                return await tool.run_call(call_id, arguments)
            return await tool.run(arguments)
    except TimeoutError:
        return ToolOutcome(f"No answer in {tool.seconds:g} s; the tool was stopped", ok=False)
    except FrontdeskError as error:
        return ToolOutcome(f"Error: {error.public_message}", ok=False)
    except Exception as error:  # noqa: BLE001 - a tool is foreign code, and the model can often do something about it
        log.debug("tool_failed", tool=tool.name, error=type(error).__name__)
        return ToolOutcome(f"Error: {error}" if str(error) else f"Error: {type(error).__name__}", ok=False)


class ToolInput(BaseModel):
    """The arguments of one of our own tools; what is not known is refused."""

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
    """A tool whose arguments are checked; what it raises on purpose is told to the model."""

    async def call(given: Mapping[str, Any]) -> ToolOutcome:
        try:
            return await run(arguments.model_validate(given))
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {describe_validation_errors(error)}", ok=False)
        except FrontdeskError as error:
            return ToolOutcome(error.public_message, ok=False)

    return Tool(name, description, _input_schema(arguments), call, reads_only=reads_only, scope=scope)


def permitted_tools(tools: Sequence[Tool], caller: Caller) -> Sequence[Tool]:
    """Those of the tools that a caller's credential allows."""
    return [tool for tool in tools if tool.scope is None or rights.allows_scope(caller.scopes, tool.scope)]


@cache
def _input_schema(arguments: type[ToolInput]) -> Mapping[str, Any]:
    schema = inline_definitions(arguments.model_json_schema())
    return {key: schema[key] for key in schema if key != "description"}


def describe_validation_errors(error: ValidationError) -> str:
    """What does not fit in arguments, in words for a model; nothing that was sent is repeated."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg'].removeprefix('Value error, ')}"
        for problem in problems
    )
