"""A tool as a turn uses it, wherever it comes from: handed to the turn, never registered on a model."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from frontdesk.agents.events import Event
from frontdesk.errors import FrontdeskError


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool answered: text for the model, whether it worked, and what else those who watch should see."""

    text: str
    ok: bool = True
    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A name, a JSON schema, and what runs."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]
    needs_approval: bool = False


class Given(BaseModel):
    """The arguments of one of our own tools; what is not known is refused."""

    model_config = ConfigDict(extra="forbid")


G = TypeVar("G", bound=Given)


def typed_tool(name: str, description: str, arguments: type[G], run: Callable[[G], Awaitable[ToolOutcome]]) -> Tool:
    """A tool whose arguments are checked; what it raises on purpose is told to the model."""

    async def call(given: Mapping[str, Any]) -> ToolOutcome:
        try:
            return await run(arguments.model_validate(given))
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {_told(error)}", ok=False)
        except FrontdeskError as error:
            return ToolOutcome(str(error), ok=False)

    return Tool(name, description, _schema(arguments), call)


@cache
def _schema(arguments: type[Given]) -> Mapping[str, Any]:
    schema = arguments.model_json_schema()
    return {key: schema[key] for key in schema if key not in ("title", "description")}


def _told(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
