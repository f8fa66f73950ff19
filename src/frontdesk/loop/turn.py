"""One turn: ask the model, run the tools it calls, and again, until it has nothing more to call."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings, ThinkingEffort
from pydantic_ai.tools import ToolDefinition

from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.loop.events import (
    ApprovalRequest,
    Ending,
    Event,
    Failed,
    StopReason,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Trouble,
    Usage,
    UserText,
)
from frontdesk.loop.media import user_message
from frontdesk.loop.messages import add_request, answered, clean, partial, trimmed
from frontdesk.loop.models import window_of
from frontdesk.loop.speech import Speech, is_whole
from frontdesk.loop.text import closest, json_object, storable
from frontdesk.loop.tools import Tool, ToolOutcome, attempt, in_order
from frontdesk.loop.troubles import MODEL_ERRORS, failed
from frontdesk.loop.usage import Spent

SILENCE_SECONDS = 180
AT_ONCE = 16
TOOL_CHARACTERS = 60_000
ROOM = 0.9
SAVE_SECONDS = 10
BROKEN_OFF = Failed(Trouble.UNAVAILABLE, "The model broke its answer off; try again in a while")
NO_OBJECT = ToolOutcome("The arguments are not a JSON object; send one that fits the tool's schema", ok=False)
STOPS = {"length": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}


@dataclass(slots=True)
class Turn:
    """A turn under way. `keep` stores messages as they come to be; what is left in `unsaved` belongs to the end.

    `tools` is asked before each request: what one tool brings, the model can use in the same turn. `heard` is asked
    before each but the first, and before the end: what the person has said meanwhile. `effort` is how hard to think.
    """

    model: Model
    tools: Callable[[], Awaitable[Mapping[str, Tool]]]
    instructions: Callable[[], str]
    messages: list[ModelMessage]
    keep: Callable[[Sequence[ModelMessage]], Awaitable[None]]
    emit: Callable[[Event], Awaitable[None]]
    max_steps: int
    effort: ThinkingEffort | None = None
    heard: Callable[[], Sequence[str]] = lambda: ()
    unsaved: list[ModelMessage] = field(default_factory=list[ModelMessage])
    spent: Spent = field(default_factory=Spent)
    _offered: Mapping[str, Tool] = field(default_factory=dict[str, Tool], init=False)

    async def run(self) -> Ending:
        """Go on until the model is done, something waits for approval, or the steps are used up."""
        for left in reversed(range(self.max_steps)):
            try:
                response = await self._ask()
            except MODEL_ERRORS as error:
                return await self._give_up(failed(error))
            if response is None:
                return await self._give_up(BROKEN_OFF)
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            if not calls:
                stop = STOPS.get(response.finish_reason or "", StopReason.END_TURN)
                # What is said after the last step is for the next turn to hear.
                if left == 0 or stop is not StopReason.END_TURN or not await self._hear():
                    return self._ending(stop)
                continue
            if (ending := await self._work(calls)) is not None:
                return ending
            if left:
                await self._hear()
        return self._ending(StopReason.MAX_STEPS)

    async def resume(
        self, calls: Sequence[ToolCallPart], rejected: Mapping[str, str], approved: Collection[str]
    ) -> Ending:
        """Go on from calls that waited, for a word or for others before them; the rejected are told the reason."""
        self._offered = await self.tools()
        denied = [
            await self._deny(call, rejected[call.tool_call_id]) for call in calls if call.tool_call_id in rejected
        ]
        others = [call for call in calls if call.tool_call_id not in rejected]
        if (ending := await self._work(others, denied, approved)) is not None:
            return ending
        await self._hear()
        return await self.run()

    async def _work(
        self, calls: Sequence[ToolCallPart], denied: Sequence[ToolReturnPart] = (), approved: Collection[str] = ()
    ) -> Ending | None:
        """Run calls up to the first that needs approval; what comes after it waits with it, to be run in its order."""
        waiting = [call for call in calls if call.tool_call_id not in approved and self._waits(call)]
        free = calls[: calls.index(waiting[0])] if waiting else calls
        await self._use(free, denied)
        return await self._wait_for(waiting) if waiting else None

    async def _hear(self) -> bool:
        """Take in what the person has said since; whether it was anything."""
        said = [text for text in self.heard() if text.strip()]
        for text in said:
            words = user_message(text)
            add_request(self.messages, words.parts)
            self.unsaved.append(words)
        if said:
            await self._save()
        for text in said:
            await self.emit(UserText(storable(text)))
        return bool(said)

    async def _ask(self) -> ModelResponse | None:
        """One request to the model, streamed; the answer joins the messages. None for one that was broken off."""
        speech = Speech(self.emit)
        self._offered = await self.tools()
        parameters = ModelRequestParameters(
            function_tools=[_definition(tool) for tool in self._offered.values()],
            instruction_parts=[InstructionPart(content=self.instructions())],
        )
        messages = trimmed(self.messages, int(window_of(self.model) * ROOM))
        settings = ModelSettings(timeout=SILENCE_SECONDS)
        if self.effort is not None:
            settings["thinking"] = self.effort
        async with model_request_stream(
            self.model, messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            try:
                async for event in stream:
                    await speech.say(event)
            except BaseException:
                # Whatever cut the answer off, what the person has read of it stays.
                if (kept := partial(stream.get())) is not None:
                    self.unsaved.append(kept)
                raise
            response = clean(stream.get())
        whole = is_whole(self.model, response)
        # Of half an answer the words stay; its calls may be half-written too, and do not run.
        kept = response if whole else partial(response)
        if kept is not None and kept.parts:
            self.messages.append(kept)
            self.unsaved.append(kept)
        await self.emit(self.spent.add(response))
        return response if whole else None

    async def _use(self, calls: Sequence[ToolCallPart], denied: Sequence[ToolReturnPart] = ()) -> None:
        """Run tools in the order of the calls, those that only read beside each other; answers join the messages."""
        # What is about to happen is on record before it does: after a crash nothing is run a second time.
        await self._save(*denied)
        answers: dict[str, ToolReturnPart] = {}
        failures: list[FrontdeskError] = []
        limit = anyio.CapacityLimiter(AT_ONCE)

        async def use(call: ToolCallPart, given: Mapping[str, Any] | None) -> None:
            try:
                async with limit:
                    answers[call.tool_call_id] = answer = await self._call(call, given)
                # At once: what has taken effect must not be forgotten because another tool takes longer.
                await self._save(answer)
            except FrontdeskError as error:
                failures.append(error)
                tasks.cancel_scope.cancel()

        read = [(call, json_object(call.args)) for call in calls]
        async for group in in_order(read, lambda one: (self._offered.get(one[0].tool_name), one[1])):
            for call, given in group:
                await self.emit(ToolCall(call.tool_call_id, call.tool_name, given or {}))
            async with anyio.create_task_group() as tasks:
                for call, given in group:
                    tasks.start_soon(use, call, given)
            if failures:
                raise failures[0]
        add_request(self.messages, [*denied, *(answers[call.tool_call_id] for call in calls)])

    async def _call(self, call: ToolCallPart, given: Mapping[str, Any] | None) -> ToolReturnPart:
        tool = self._offered.get(call.tool_name)
        if tool is None:
            known = ", ".join(sorted(self._offered)) or "none"
            meant = closest(call.tool_name, self._offered)
            near = f"perhaps you mean '{meant}'; there are" if meant else "there are"
            outcome, status = ToolOutcome(f"Tool '{call.tool_name}' not found; {near}: {known}"), ToolStatus.UNKNOWN
        else:
            outcome = NO_OBJECT if given is None else await attempt(tool, given, call.tool_call_id)
            status = ToolStatus.OK if outcome.ok else ToolStatus.ERROR
        text = _bounded(storable(outcome.text))
        await self.emit(ToolReturn(call.tool_call_id, call.tool_name, text, status))
        for event in outcome.events:
            await self.emit(event)
        return answered(call, text, status, outcome.events)

    async def _deny(self, call: ToolCallPart, reason: str) -> ToolReturnPart:
        text = f"The call was rejected: {reason}" if reason else "The call was rejected."
        await self.emit(ToolReturn(call.tool_call_id, call.tool_name, text, ToolStatus.DENIED))
        return answered(call, text, ToolStatus.DENIED)

    def _waits(self, call: ToolCallPart) -> bool:
        tool = self._offered.get(call.tool_name)
        return tool is not None and tool.needs_approval

    async def _wait_for(self, calls: Sequence[ToolCallPart]) -> Ending:
        requests = [ApprovalRequest(call.tool_call_id, call.tool_name, json_object(call.args) or {}) for call in calls]
        for request in requests:
            await self.emit(request)
        return self._ending(StopReason.REQUIRES_APPROVAL, requests)

    async def _give_up(self, failure: Failed) -> Ending:
        await self.emit(failure)
        return Ending(StopReason.ERROR, usage=self.usage, failure=failure.trouble)

    async def _save(self, *answers: ToolReturnPart) -> None:
        said = [*self.unsaved, *([ModelRequest(parts=list(answers))] if answers else [])]
        self.unsaved = []
        if said:
            # Cut off here, nobody would know whether they were stored.
            with anyio.move_on_after(SAVE_SECONDS, shield=True):
                await self.keep(said)
                return
            raise Unavailable("What was said could not be stored in time")

    def _ending(self, stop: StopReason, pending: Sequence[ApprovalRequest] = ()) -> Ending:
        return Ending(stop, pending, self.usage)

    @property
    def usage(self) -> Usage:
        return self.spent.total


def _bounded(text: str) -> str:
    if len(text) <= TOOL_CHARACTERS:
        return text
    return f"{text[:TOOL_CHARACTERS]}\n[{len(text) - TOOL_CHARACTERS} more characters were left out]"


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=tool.name, parameters_json_schema=dict(tool.parameters), description=tool.description)
