"""The model that is there when no other is: it says so, and can act out a script."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
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

from frontdesk.loop.access import OFFLINE
from frontdesk.loop.media import words_of
from frontdesk.loop.script import MARKED, Step, argument_pieces, pieces, steps

Piece = str | DeltaToolCalls | DeltaThinkingCalls
HONEST = (
    "I am Frontdesk's offline stand-in, not a language model, so I cannot answer that. "
    "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or for an endpoint of your own OPENAI_BASE_URL together with "
    "FRONTDESK_MODEL, and start Frontdesk again; your conversations and memory stay. "
    'Until then I can act out a script: @@[{"text": "hello"}]@@'
)
SCRIPT_DONE = "The script has no more steps."
UNREADABLE = (
    "I cannot read that script. It is a JSON list of steps between @@ and @@, each with text, reasoning, tool, args "
    "or tools."
)


Due = Callable[[Sequence[ModelMessage]], Step]


class ScriptedModel(FunctionModel):
    """Acts out the step that is `due` by what was said so far."""

    def __init__(self, due: Due, name: str) -> None:
        def speak(messages: list[ModelMessage], _info: AgentInfo) -> AsyncGenerator[Piece]:
            return acted(due(messages), name)

        super().__init__(stream_function=speak, model_name=name)
        self._due = due

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
            if not self._due(messages).cut:
                stream.finish_reason = "stop"
            yield stream


def offline_model() -> FunctionModel:
    return ScriptedModel(scripted, OFFLINE)


async def acted(step: Step, model: str) -> AsyncGenerator[Piece]:
    """One step as a model of this name would stream it."""
    await anyio.sleep(step.delay)
    if step.error:
        raise ModelHTTPError(step.error, model)
    if not step.reasoning:
        # Something has to be said, if only nothing; before a thought it would stand as the first part of the answer.
        yield ""
    for piece in pieces(step.reasoning):
        yield {0: DeltaThinkingPart(content=piece)}
        await anyio.sleep(step.chunk_delay)
    for piece in pieces(step.text):
        yield piece
        await anyio.sleep(step.chunk_delay)
    for number, call in enumerate(step.calls, 1):
        yield {number: DeltaToolCall(call.name, "")}
        for piece in argument_pieces(call.text):
            yield {number: DeltaToolCall(json_args=piece)}
            await anyio.sleep(step.chunk_delay)
    if step.drop:
        raise ModelAPIError(model, "The script says so")


def scripted(messages: Sequence[ModelMessage]) -> Step:
    """The step that is due in the script that the person's last words hold."""
    said, answers = heard(messages)
    script = steps(said)
    if script is None:
        return Step(text=UNREADABLE if MARKED.search(said) else HONEST)
    return script[answers] if answers < len(script) else Step(text=SCRIPT_DONE)


def heard(messages: Sequence[ModelMessage]) -> tuple[str, int]:
    """The person's last words, and how many answers have been given since: so many steps are done."""
    said, answers = "", 0
    for message in messages:
        if isinstance(message, ModelResponse):
            answers += 1
        elif (text := _words(message)) is not None:
            said, answers = text, 0
    return said, answers


def _words(message: ModelRequest) -> str | None:
    said = [words_of(part) for part in message.parts if isinstance(part, UserPromptPart)]
    # What an interrupted turn left unanswered stands before it in the same request.
    return said[-1] if said else None
