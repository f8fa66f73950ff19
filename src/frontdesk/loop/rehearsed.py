"""A model that knows its lines: for each thing that is said to it there are steps, which it acts out."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from typing_extensions import override

from frontdesk.loop.messages import CHARACTERS_PER_TOKEN, tokens_in
from frontdesk.loop.offline import HONEST, SCRIPT_DONE, ScriptedModel, heard
from frontdesk.loop.script import Step

NAME = "rehearsed"

Lines = Mapping[str, Sequence[Step]]


class RehearsedModel(ScriptedModel):
    """What is said ends with one of the `lines`: a scheduled prompt comes with a head before it."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(partial(rehearsed, lines), NAME)

    @asynccontextmanager
    @override
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as stream:
            stream.usage.input_tokens = _read(messages, model_request_parameters)
            yield stream


def rehearsed(lines: Lines, messages: Sequence[ModelMessage]) -> Step:
    """The step that is due."""
    said, answers = heard(messages)
    steps = next((steps for line, steps in lines.items() if said.endswith(line)), None)
    if steps is None:
        return Step(text=HONEST)
    return steps[answers] if answers < len(steps) else Step(text=SCRIPT_DONE)


def _read(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int:
    """About how many tokens another model would have been sent, its instructions and tools among them."""
    told = [part.content for part in parameters.instruction_parts or ()]
    tools = [
        f"{tool.name}{tool.description}{json.dumps(tool.parameters_json_schema)}" for tool in parameters.function_tools
    ]
    return sum(map(tokens_in, messages)) + sum(map(len, (*told, *tools))) // CHARACTERS_PER_TOKEN
