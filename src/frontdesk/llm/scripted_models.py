"""Provides models that need no provider: the offline model, and one with canned replies for demos."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingCalls,
    DeltaThinkingPart,
    DeltaToolCall,
    DeltaToolCalls,
    FunctionModel,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from typing_extensions import override

from frontdesk.llm.access import OFFLINE
from frontdesk.llm.messages import CHARACTERS_PER_TOKEN, estimate_tokens, prompt_text
from frontdesk.llm.script import SCRIPT_MARK, ScriptStep, parse_script, split_arguments, split_words

StreamPiece = str | DeltaToolCalls | DeltaThinkingCalls
OFFLINE_ANSWER = (
    "I am Frontdesk's offline stand-in, not a language model, so I cannot answer that. "
    "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or for an endpoint of your own OPENAI_BASE_URL together with "
    "FRONTDESK_MODEL, and start Frontdesk again; your conversations and memory stay. "
    'Until then I can act out a script: @@[{"text": "hello"}]@@'
)
SCRIPT_DONE = "The script has no more steps."
UNREADABLE_SCRIPT = (
    "I cannot read that script. It is a JSON list of steps between @@ and @@, each with text, reasoning, tool, args "
    "or tools."
)


ChooseStep = Callable[[Sequence[ModelMessage]], ScriptStep]


class ScriptedModel(FunctionModel):
    """Plays the step that `due` chooses by the messages so far."""

    def __init__(self, due: ChooseStep, name: str) -> None:
        def speak(messages: list[ModelMessage], _info: AgentInfo) -> AsyncGenerator[StreamPiece]:
            return play_step(due(messages), name)

        super().__init__(stream_function=speak, model_name=name)
        self._choose_step = due

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
            if not self._choose_step(messages).cut:
                stream.finish_reason = "stop"
            yield stream


def offline_model() -> FunctionModel:
    return ScriptedModel(next_script_step, OFFLINE)


async def play_step(step: ScriptStep, model: str) -> AsyncGenerator[StreamPiece]:
    """Stream one step as a model of this name would."""
    await anyio.sleep(step.delay)
    if step.error:
        raise ModelHTTPError(step.error, model)
    if not step.reasoning:
        # The library needs a first piece, even an empty one; before a thought, that piece would become a part of the
        # answer.
        yield ""
    for piece in split_words(step.reasoning):
        yield {0: DeltaThinkingPart(content=piece)}
        await anyio.sleep(step.chunk_delay)
    for piece in split_words(step.text):
        yield piece
        await anyio.sleep(step.chunk_delay)
    for number, call in enumerate(step.calls, 1):
        yield {number: DeltaToolCall(call.name, "")}
        for piece in split_arguments(call.text):
            yield {number: DeltaToolCall(json_args=piece)}
            await anyio.sleep(step.chunk_delay)
    if step.drop:
        raise ModelAPIError(model, "The script says so")


def next_script_step(messages: Sequence[ModelMessage]) -> ScriptStep:
    """The next step of the script in the person's last message."""
    said, answers = last_prompt(messages)
    script = parse_script(said)
    if script is None:
        return ScriptStep(text=UNREADABLE_SCRIPT if SCRIPT_MARK.search(said) else OFFLINE_ANSWER)
    return script[answers] if answers < len(script) else ScriptStep(text=SCRIPT_DONE)


def last_prompt(messages: Sequence[ModelMessage]) -> tuple[str, int]:
    """The person's last message, and the number of responses since, which is the number of steps done."""
    said, answers = "", 0
    for message in messages:
        if isinstance(message, ModelResponse):
            answers += 1
        elif (text := _request_prompt(message)) is not None:
            said, answers = text, 0
    return said, answers


def _request_prompt(message: ModelRequest) -> str | None:
    said = [prompt_text(part) for part in message.parts if isinstance(part, UserPromptPart)]
    # Results of an interrupted turn may come before it in the same request.
    return said[-1] if said else None


CANNED_MODEL = "rehearsed"

CannedReplies = Mapping[str, Sequence[ScriptStep]]


class CannedModel(ScriptedModel):
    """Plays the reply for the last line of the message; a scheduled prompt has a header before that line."""

    def __init__(self, lines: CannedReplies) -> None:
        super().__init__(partial(next_canned_step, lines), CANNED_MODEL)

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
            stream.usage.input_tokens = _estimate_input_tokens(messages, model_request_parameters)
            yield stream


def next_canned_step(lines: CannedReplies, messages: Sequence[ModelMessage]) -> ScriptStep:
    """The next step of the canned reply."""
    said, answers = last_prompt(messages)
    steps = next((steps for line, steps in lines.items() if said.endswith(line)), None)
    if steps is None:
        return ScriptStep(text=OFFLINE_ANSWER)
    return steps[answers] if answers < len(steps) else ScriptStep(text=SCRIPT_DONE)


def _estimate_input_tokens(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int:
    """An estimate of the input tokens of a real model, with instructions and tools."""
    told = [part.content for part in parameters.instruction_parts or ()]
    tools = [
        f"{tool.name}{tool.description}{json.dumps(tool.parameters_json_schema)}" for tool in parameters.function_tools
    ]
    return sum(map(estimate_tokens, messages)) + sum(map(len, (*told, *tools))) // CHARACTERS_PER_TOKEN
