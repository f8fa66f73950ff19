"""Offers the declared operations to built-in agents as tools of their turns."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Caller
from frontdesk.llm.tools import Tool, ToolOutcome, describe_validation_errors, inline_definitions
from frontdesk.operations import Answer, BoundOperation, BuiltinAgentTool, Call, Effect


class OperationTools:
    """Gives the tools of a turn. The agent host gets this before the services are open; `open` completes it."""

    def __init__(self) -> None:
        self._load: Callable[[], Sequence[BoundOperation]] | None = None
        self._offered: Sequence[tuple[BoundOperation, BuiltinAgentTool]] | None = None

    def open(self, load: Callable[[], Sequence[BoundOperation]]) -> None:
        """Take the operations from `load` when the first turn needs them."""
        self._load = load

    def for_caller(self, caller: Caller, token: SecretStr | None) -> Sequence[Tool]:
        """The tools for the agent and the person of this turn."""
        if self._load is None:
            return ()
        if self._offered is None:
            self._offered = [(one, one.operation.agents) for one in self._load() if one.operation.agents is not None]
        return [
            _bind_tool(bound, tool, caller, token)
            for bound, tool in self._offered
            if tool.available(bound.service, caller)
        ]


def _bind_tool(bound: BoundOperation, tool: BuiltinAgentTool, caller: Caller, token: SecretStr | None) -> Tool:
    operation = bound.operation
    model, acting = tool.request or operation.request, tool.act_as(caller) if tool.act_as else caller

    async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
        try:
            bound.check(acting)
            answer = await (tool.run or operation.run)(
                bound.service, Call(acting, token), model.model_validate(arguments)
            )
        except ValidationError as error:
            return ToolOutcome(f"Invalid arguments: {describe_validation_errors(error)}", ok=False)
        except FrontdeskError as error:
            return ToolOutcome(error.public_message, ok=False)
        return _outcome(answer)

    return Tool(
        tool.name or operation.name,
        tool.description,
        _input_schema(model),
        run,
        reads_only=partial(tool.reads_only, bound.service) if tool.reads_only else operation.effect is Effect.READS,
        scope=operation.scopes[0] if operation.scopes else None,
    )


def _outcome(answer: Answer | BaseModel) -> ToolOutcome:
    if isinstance(answer, Answer):
        return ToolOutcome(answer.text, ok=answer.ok)
    return ToolOutcome(answer.model_dump_json())


@cache
def _input_schema(model: type[BaseModel]) -> Mapping[str, Any]:
    schema = inline_definitions(model.model_json_schema())
    return {key: schema[key] for key in schema if key != "description"}
