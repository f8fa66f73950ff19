"""Takes one turn of a model: request, stream and run tools, repeatedly, until the model calls no more tools."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    UserError,
)
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings, ThinkingEffort
from pydantic_ai.tools import ToolDefinition

from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.llm.events import (
    ApprovalRequest,
    Event,
    Failed,
    FailureKind,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolArguments,
    ToolCall,
    ToolReturn,
    ToolStatus,
    TurnEnd,
    Usage,
    UserText,
)
from frontdesk.llm.messages import (
    add_request,
    clean_response,
    make_tool_return,
    partial_response,
    trim_messages,
    user_message,
)
from frontdesk.llm.models import context_window
from frontdesk.llm.tools import Tool, ToolOutcome, group_calls, run_tool
from frontdesk.text import closest_name, parse_json_object, storable


@dataclass(slots=True)
class UsageTotal:
    """The sum of usage over a turn's requests; the cost is None once a request has no known price.

    `window` is the context window of the model in tokens; 0 if unknown.
    """

    window: int = 0
    total: Usage = field(default_factory=lambda: Usage(0, 0, cost_usd=0.0))

    def add(self, response: ModelResponse) -> Usage:
        """Add one response, and return the sum."""
        used, cost = response.usage, _response_cost(response)
        before = self.total
        self.total = Usage(
            before.input_tokens + used.input_tokens,
            before.output_tokens + used.output_tokens,
            before.cached_tokens + used.cache_read_tokens,
            response.model_name,
            None if cost is None or before.cost_usd is None else before.cost_usd + cost,
            used.input_tokens + used.output_tokens,
            self.window,
        )
        return self.total


def _response_cost(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


MODEL_ERRORS = (AgentRunError, UserError)
ERROR_SHOWN = 300

# The narrower error comes first.
MODEL_ERROR_TABLE: tuple[tuple[type[Exception], FailureKind, str], ...] = (
    (
        ModelAuthenticationError,
        FailureKind.UNAUTHENTICATED,
        "The provider of '{model}' refuses the key; check OPENAI_API_KEY, ANTHROPIC_API_KEY or the provider's own",
    ),
    (
        ModelQuotaExceededError,
        FailureKind.RATE_LIMITED,
        "The quota for '{model}' is used up; check the plan or the bill",
    ),
    (ModelRateLimitError, FailureKind.RATE_LIMITED, "Too many requests to '{model}'; try again in a while"),
    (
        ModelContextWindowExceededError,
        FailureKind.TOO_LONG,
        "The conversation no longer fits into '{model}'; begin a new one, or take a model with a larger context",
    ),
    (ModelNotFoundError, FailureKind.NOT_FOUND, "The provider has no model '{model}'; check the agent's model"),
    (ModelRequestRejectedError, FailureKind.INVALID, "'{model}' refused the request: {error}"),
    (
        ModelConnectionError,
        FailureKind.UNAVAILABLE,
        "The connection to '{model}' could not be made or broke off; check the network and the provider's address",
    ),
    (ModelAPIError, FailureKind.UNAVAILABLE, "The provider of '{model}' fails; try again in a while"),
    (UserError, FailureKind.INVALID, "The model cannot be used: {error}"),
    (AgentRunError, FailureKind.INTERNAL, "The model answered in a way that cannot be used: {error}"),
)


def describe_model_error(error: Exception) -> Failed:
    """The event for an error of the model library."""
    model = error.model_name if isinstance(error, ModelAPIError) else "the model"
    failure, text = next((failure, text) for kind, failure, text in MODEL_ERROR_TABLE if isinstance(error, kind))
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return Failed(failure, text.format(model=model, error=str(error)[:ERROR_SHOWN]), wait)


# For this API, the library reports "stop" for a stream that ends without a finish reason.
ENDS_WITHOUT_REASON = "OpenAIChatModel"
RAW_FINISH_REASON = "finish_reason"
HIGH_SURROGATES = frozenset(chr(code) for code in range(0xD800, 0xDC00))


class StreamConverter:
    """Converts a streamed response into events; remembers to which call each piece of arguments belongs."""

    def __init__(self, emit: Callable[[Event], Awaitable[None]]) -> None:
        self._emit = emit
        self._calls: dict[int, tuple[str, str]] = {}
        self._halves: dict[type[TextChunk | ThoughtChunk], str] = {}

    async def feed(self, event: ModelResponseStreamEvent) -> None:
        converted = self._convert(event)
        if converted is not None:
            await self._emit(converted)

    def _convert(self, event: ModelResponseStreamEvent) -> Event | None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                return self._chunk(TextChunk, text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                return self._chunk(ThoughtChunk, text)
            case PartStartEvent(index=index, part=ToolCallPart() as call):
                self._calls[index] = (call.tool_call_id, call.tool_name)
                return ToolArguments(call.tool_call_id, call.tool_name, _arguments_text(call.args))
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=arguments)) if index in self._calls:
                call_id, name = self._calls[index]
                return ToolArguments(call_id, name, _arguments_text(arguments))
            case _:
                return None

    def _chunk(self, kind: type[TextChunk | ThoughtChunk], text: str | None) -> Event | None:
        """A piece of text; half of a surrogate pair is held back until the other half arrives."""
        piece = self._halves.pop(kind, "") + (text or "")
        if piece and piece[-1] in HIGH_SURROGATES:
            piece, self._halves[kind] = piece[:-1], piece[-1]
        return kind(storable(piece)) if piece else None


def is_complete(model: Model, response: ModelResponse) -> bool:
    """Whether a response is complete: the model gave a finish reason other than an error."""
    has_reason = RAW_FINISH_REASON in (response.provider_details or {})
    match response.finish_reason:
        case "error":
            return False
        case None:
            # The provider gave a reason that the library does not know.
            return has_reason
        case "stop":
            return has_reason or all(kind.__name__ != ENDS_WITHOUT_REASON for kind in type(model).__mro__)
        case _:
            return True


def _arguments_text(arguments: object) -> str:
    if arguments is None:
        return ""
    return storable(arguments if isinstance(arguments, str) else json.dumps(arguments))


SILENCE_SECONDS = 180
CONCURRENT_TOOLS = 16
TOOL_CHARACTERS = 60_000
USABLE_WINDOW = 0.9
SAVE_SECONDS = 10
ANSWER_BROKEN_OFF = Failed(FailureKind.UNAVAILABLE, "The model broke its answer off; try again in a while")
ARGUMENTS_NOT_AN_OBJECT = ToolOutcome(
    "The arguments are not a JSON object; send one that fits the tool's schema", ok=False
)
STOP_REASONS = {"length": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}


@dataclass(slots=True)
class ModelTurn:
    """One turn of a model.

    `store` saves messages during the turn; the caller saves those left in `unsaved` when the turn ends. `tools` is
    called before each request, so that the model can use a tool in the turn in which it was attached. `take_new_texts`
    returns what the person has said meanwhile; it is called before each request but the first, and before the end.
    """

    model: Model
    tools: Callable[[], Awaitable[Mapping[str, Tool]]]
    instructions: Callable[[], str]
    messages: list[ModelMessage]
    store: Callable[[Sequence[ModelMessage]], Awaitable[None]]
    emit: Callable[[Event], Awaitable[None]]
    max_steps: int
    effort: ThinkingEffort | None = None
    take_new_texts: Callable[[], Sequence[str]] = lambda: ()
    unsaved: list[ModelMessage] = field(default_factory=list[ModelMessage])
    usage_total: UsageTotal = field(default_factory=UsageTotal)
    _offered: Mapping[str, Tool] = field(default_factory=dict[str, Tool], init=False)

    async def run(self) -> TurnEnd:
        """Request, run tools, and repeat until the model is done, a call waits for approval, or the steps are used."""
        for left in reversed(range(self.max_steps)):
            try:
                response = await self._request_model()
            except MODEL_ERRORS as error:
                return await self._fail(describe_model_error(error))
            if response is None:
                return await self._fail(ANSWER_BROKEN_OFF)
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            if not calls:
                stop = STOP_REASONS.get(response.finish_reason or "", StopReason.END_TURN)
                # A text that arrives after the last step is for the next turn.
                if left == 0 or stop is not StopReason.END_TURN or not await self._add_new_texts():
                    return self._ending(stop)
                continue
            if (ending := await self._run_until_approval(calls)) is not None:
                return ending
            if left:
                await self._add_new_texts()
        return self._ending(StopReason.MAX_STEPS)

    async def resume(
        self, calls: Sequence[ToolCallPart], rejected: Mapping[str, str], approved: Collection[str]
    ) -> TurnEnd:
        """Continue with calls that waited for approval, or for an earlier call; `rejected` has reasons by call id."""
        self._offered = await self.tools()
        denied = [
            await self._deny(call, rejected[call.tool_call_id]) for call in calls if call.tool_call_id in rejected
        ]
        others = [call for call in calls if call.tool_call_id not in rejected]
        if (ending := await self._run_until_approval(others, denied, approved)) is not None:
            return ending
        await self._add_new_texts()
        return await self.run()

    async def _run_until_approval(
        self, calls: Sequence[ToolCallPart], denied: Sequence[ToolReturnPart] = (), approved: Collection[str] = ()
    ) -> TurnEnd | None:
        """Run the calls before the first one that needs approval; those after it wait too, to keep the order."""
        waiting = [call for call in calls if call.tool_call_id not in approved and self._needs_approval(call)]
        free = calls[: calls.index(waiting[0])] if waiting else calls
        await self._run_tools(free, denied)
        return await self._request_approval(waiting) if waiting else None

    async def _add_new_texts(self) -> bool:
        """Add the person's new texts to the messages; returns False if there are none."""
        texts = [text for text in self.take_new_texts() if text.strip()]
        for text in texts:
            message = user_message(text)
            add_request(self.messages, message.parts)
            self.unsaved.append(message)
        if texts:
            await self._save()
        for text in texts:
            await self.emit(UserText(storable(text)))
        return bool(texts)

    async def _request_model(self) -> ModelResponse | None:
        """Stream one request, and add the response to the messages. Returns None for an incomplete response."""
        converter = StreamConverter(self.emit)
        self._offered = await self.tools()
        parameters = ModelRequestParameters(
            function_tools=[_tool_definition(tool) for tool in self._offered.values()],
            instruction_parts=[InstructionPart(content=self.instructions())],
        )
        messages = trim_messages(self.messages, int(context_window(self.model) * USABLE_WINDOW))
        settings = ModelSettings(timeout=SILENCE_SECONDS)
        if self.effort is not None:
            settings["thinking"] = self.effort
        async with model_request_stream(
            self.model, messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            try:
                async for event in stream:
                    await converter.feed(event)
            except BaseException:
                # However the stream ended, the text that the person has read is kept.
                if (kept := partial_response(stream.get())) is not None:
                    self.unsaved.append(kept)
                raise
            response = clean_response(stream.get())
        whole = is_complete(self.model, response)
        # The text of an incomplete response is kept; its calls may be incomplete, and do not run.
        kept = response if whole else partial_response(response)
        if kept is not None and kept.parts:
            self.messages.append(kept)
            self.unsaved.append(kept)
        await self.emit(self.usage_total.add(response))
        return response if whole else None

    async def _run_tools(self, calls: Sequence[ToolCallPart], denied: Sequence[ToolReturnPart] = ()) -> None:
        """Run the calls in order, read-only ones in parallel, and add the results to the messages."""
        # The calls are stored before they run, so that none runs a second time after a crash.
        await self._save(*denied)
        answers: dict[str, ToolReturnPart] = {}
        failures: list[FrontdeskError] = []
        limit = anyio.CapacityLimiter(CONCURRENT_TOOLS)

        async def use(call: ToolCallPart, given: Mapping[str, Any] | None) -> None:
            try:
                async with limit:
                    answers[call.tool_call_id] = answer = await self._call_tool(call, given)
                # Stored immediately: the effect of one tool must not be lost because another tool takes longer.
                await self._save(answer)
            except FrontdeskError as error:
                failures.append(error)
                tasks.cancel_scope.cancel()

        read = [(call, parse_json_object(call.args)) for call in calls]
        async for group in group_calls(read, lambda one: (self._offered.get(one[0].tool_name), one[1])):
            for call, given in group:
                await self.emit(ToolCall(call.tool_call_id, call.tool_name, given or {}))
            async with anyio.create_task_group() as tasks:
                for call, given in group:
                    tasks.start_soon(use, call, given)
            if failures:
                raise failures[0]
        add_request(self.messages, [*denied, *(answers[call.tool_call_id] for call in calls)])

    async def _call_tool(self, call: ToolCallPart, given: Mapping[str, Any] | None) -> ToolReturnPart:
        tool = self._offered.get(call.tool_name)
        if tool is None:
            known = ", ".join(sorted(self._offered)) or "none"
            meant = closest_name(call.tool_name, self._offered)
            hint = f"perhaps you mean '{meant}'; there are" if meant else "there are"
            outcome, status = ToolOutcome(f"Tool '{call.tool_name}' not found; {hint}: {known}"), ToolStatus.UNKNOWN
        else:
            outcome = ARGUMENTS_NOT_AN_OBJECT if given is None else await run_tool(tool, given, call.tool_call_id)
            status = ToolStatus.OK if outcome.ok else ToolStatus.ERROR
        text = _cut_tool_text(storable(outcome.text))
        await self.emit(ToolReturn(call.tool_call_id, call.tool_name, text, status))
        for event in outcome.events:
            await self.emit(event)
        return make_tool_return(call, text, status, outcome.events)

    async def _deny(self, call: ToolCallPart, reason: str) -> ToolReturnPart:
        text = f"The call was rejected: {reason}" if reason else "The call was rejected."
        await self.emit(ToolReturn(call.tool_call_id, call.tool_name, text, ToolStatus.DENIED))
        return make_tool_return(call, text, ToolStatus.DENIED)

    def _needs_approval(self, call: ToolCallPart) -> bool:
        tool = self._offered.get(call.tool_name)
        return tool is not None and tool.needs_approval

    async def _request_approval(self, calls: Sequence[ToolCallPart]) -> TurnEnd:
        requests = [
            ApprovalRequest(call.tool_call_id, call.tool_name, parse_json_object(call.args) or {}) for call in calls
        ]
        for request in requests:
            await self.emit(request)
        return self._ending(StopReason.REQUIRES_APPROVAL, requests)

    async def _fail(self, failure: Failed) -> TurnEnd:
        await self.emit(failure)
        return TurnEnd(StopReason.ERROR, usage=self.usage, failure=failure.trouble)

    async def _save(self, *answers: ToolReturnPart) -> None:
        messages = [*self.unsaved, *([ModelRequest(parts=list(answers))] if answers else [])]
        self.unsaved = []
        if messages:
            # Shielded: after a cancellation here, it would be unknown whether they were stored.
            with anyio.move_on_after(SAVE_SECONDS, shield=True):
                await self.store(messages)
                return
            raise Unavailable("The messages of the turn could not be stored in time")

    def _ending(self, stop: StopReason, pending: Sequence[ApprovalRequest] = ()) -> TurnEnd:
        return TurnEnd(stop, pending, self.usage)

    @property
    def usage(self) -> Usage:
        return self.usage_total.total


def _cut_tool_text(text: str) -> str:
    if len(text) <= TOOL_CHARACTERS:
        return text
    return f"{text[:TOOL_CHARACTERS]}\n[{len(text) - TOOL_CHARACTERS} more characters were left out]"


def _tool_definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=tool.name, parameters_json_schema=dict(tool.parameters), description=tool.description)
