"""Takes one turn of a Letta agent, in as many runs on the server as the caller's own tools need."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio
import structlog
from letta_client import APIStatusError, AsyncStream
from letta_client.types import ToolReturnMessage
from letta_client.types.agents import (
    ApprovalRequestMessage,
    AssistantMessage,
    LettaStreamingResponse,
    ReasoningMessage,
    ToolCallMessage,
    ToolReturnParam,
)
from letta_client.types.agents.letta_streaming_response import LettaStopReason, LettaUsageStatistics

from frontdesk.agents.host import Approval, Prompt
from frontdesk.agents.letta.conversation import NEW_RUN_PAUSES, ConversationClient
from frontdesk.agents.letta.convert import (
    STOP_REASONS,
    CallAnswer,
    LettaInput,
    approval_message,
    arguments_of,
    block_values,
    calls_of,
    context_message,
    denial_answer,
    memory_edits,
    memory_may_have_changed,
    returns_of,
    status_of,
    text_of,
    user_message,
    whole_arguments,
)
from frontdesk.agents.letta.server import MODEL_FAILURES, LettaFailure, is_refusal
from frontdesk.agents.turns.service import Emit
from frontdesk.errors import FrontdeskError, Invalid, PendingApproval, Unavailable
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
)
from frontdesk.llm.tools import Tool, group_calls, run_tool

CALLS_AT_ONCE = 16


def runs_without_approval(request: ApprovalRequest, tools: Mapping[str, Tool]) -> bool:
    """Whether this calls a tool of the caller that needs no approval."""
    tool = tools.get(request.name)
    return tool is not None and not tool.needs_approval


async def run_client_tools(
    requests: Sequence[ApprovalRequest], tools: Mapping[str, Tool], emit: Emit
) -> list[ToolReturnParam]:
    """Run these calls in order, read-only calls concurrently; returns the answers in the order of the requests."""
    answers: dict[str, ToolReturnParam] = {}
    limit = anyio.CapacityLimiter(CALLS_AT_ONCE)

    async def run(request: ApprovalRequest) -> None:
        async with limit:
            outcome = await run_tool(tools[request.name], request.arguments, request.call_id)
        status = ToolStatus.OK if outcome.ok else ToolStatus.ERROR
        await emit(ToolReturn(request.call_id, request.name, outcome.text, status))
        for event in outcome.events:
            await emit(event)
        answers[request.call_id] = {
            "type": "tool",
            "tool_call_id": request.call_id,
            "status": "success" if outcome.ok else "error",
            "tool_return": outcome.text,
        }

    async for group in group_calls(requests, lambda request: (tools[request.name], request.arguments)):
        for request in group:
            await emit(ToolCall(request.call_id, request.name, request.arguments))
        async with anyio.create_task_group() as tasks:
            for request in group:
                tasks.start_soon(run, request)
    return [answers[request.call_id] for request in requests]


NOT_RUN = "Letta did not run this call"


@dataclass(slots=True)
class CallInProgress:
    """A tool call, as far as the model has written it."""

    call_id: str
    name: str
    needs_approval: bool
    text: str = ""
    announced: bool = False
    returned: bool = False


@dataclass(slots=True)
class RunReader:
    """Reads the runs of one turn. `stop`, `steps` and `run_id` belong to the run that is read now."""

    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    stop: str | None = None
    steps: int = 0
    run_id: str | None = None
    _calls: dict[str, CallInProgress] = field(default_factory=dict[str, CallInProgress])

    def begin_run(self) -> None:
        self.stop, self.steps, self.run_id = None, 0, None

    def read(self, message: LettaStreamingResponse) -> list[Event]:
        """The events of one message in the stream."""
        self.run_id = getattr(message, "run_id", None) or self.run_id
        events: list[Event] = []
        match message:
            case ReasoningMessage() if message.reasoning:
                events = [*self._finished(), ThoughtChunk(message.reasoning)]
            case AssistantMessage() if text := text_of(message.content):
                events = [*self._finished(), TextChunk(text)]
            case ToolCallMessage() | ApprovalRequestMessage():
                events = self._read_calls(message)
            case ToolReturnMessage():
                events = [*self._finished(), *self._read_returns(message)]
            case LettaStopReason():
                self.stop = message.stop_reason
                events = self._finished()
            case LettaUsageStatistics():
                events = [self._count(message)]
            case _:
                pass
        return events

    def expect(self, call_id: str, name: str) -> None:
        """Expect a return for a call of an earlier turn, which was announced there and runs or is answered now."""
        self._calls[call_id] = CallInProgress(call_id, name, needs_approval=False, announced=True)

    def returned(self, call_id: str) -> None:
        """Record that we answered a call, so that Letta's own return of it is ignored."""
        if call_id in self._calls:
            self._calls[call_id].returned = True

    def open_calls(self) -> bool:
        """Whether an announced call has no return yet."""
        return any(call.announced and not call.returned for call in self._calls.values())

    def leftovers(self, held_back: Collection[str] = ()) -> list[Event]:
        """At the end of the turn, returns for the calls that Letta announced and will not run."""
        calls = [call for call in self._calls.values() if call.announced and not call.returned]
        left = [call for call in calls if call.call_id not in held_back]
        for call in left:
            call.returned = True
        return [ToolReturn(call.call_id, call.name, NOT_RUN, ToolStatus.INTERRUPTED) for call in left]

    def _read_calls(self, message: ToolCallMessage | ApprovalRequestMessage) -> list[Event]:
        asks = isinstance(message, ApprovalRequestMessage)
        events: list[Event] = []
        for piece in calls_of(message):
            call = self._call(piece.tool_call_id, piece.name, asks=asks)
            events += self._finished(but=call)
            delta = piece.arguments or ""
            call.text += delta
            events.append(ToolArguments(call.call_id, call.name, delta))
            # A complete object cannot grow, so the call is about to run; Letta sends nothing more until it has run.
            if delta.endswith("}") and not asks and whole_arguments(call.text) is not None:
                events.append(_tool_call(call))
        return events

    def _call(self, call_id: str | None, name: str | None, *, asks: bool) -> CallInProgress:
        """The call to which a piece belongs; only the first piece always has a name."""
        if call_id is None and self._calls:
            return next(reversed(self._calls.values()))
        known = self._calls.get(call_id or "")
        if known is None:
            known = self._calls[call_id or ""] = CallInProgress(call_id or "", name or "", asks)
        return known

    def _finished(self, but: CallInProgress | None = None) -> list[Event]:
        """Announce the calls that are complete, because something else came after them."""
        ended = [
            call for call in self._calls.values() if call is not but and not call.needs_approval and not call.announced
        ]
        return [_tool_call(call) for call in ended]

    def _read_returns(self, message: ToolReturnMessage) -> list[Event]:
        events: list[Event] = []
        for given in returns_of(message):
            call = self._calls.get(given.tool_call_id)
            if call is not None and call.returned:
                continue
            # A message with several returns names only one tool, and not always the first.
            name = call.name if call else message.name or ""
            self._calls[given.tool_call_id] = CallInProgress(
                given.tool_call_id, name, needs_approval=False, announced=True, returned=True
            )
            events.append(ToolReturn(given.tool_call_id, name, text_of(given.tool_return), status_of(given)))
        return events

    def _count(self, message: LettaUsageStatistics) -> Usage:
        self.steps = message.step_count or 0
        self.usage = replace(
            self.usage,
            input_tokens=self.usage.input_tokens + (message.prompt_tokens or 0),
            output_tokens=self.usage.output_tokens + (message.completion_tokens or 0),
            cached_tokens=self.usage.cached_tokens + (message.cached_input_tokens or 0),
            context_tokens=message.context_tokens or 0,
        )
        return self.usage


def _tool_call(call: CallInProgress) -> ToolCall:
    call.announced = True
    return ToolCall(call.call_id, call.name, arguments_of(call.text))


CLEANUP_SECONDS = 5
REQUIRES_APPROVAL = "requires_approval"

log = structlog.get_logger("frontdesk.letta")


def why_refused(prompt: Prompt, pending: Sequence[ApprovalRequest]) -> FrontdeskError | None:
    """The error for a prompt that does not fit the calls that wait for approval, if there is one."""
    waiting = {request.call_id: request for request in pending}
    said = {word.call_id for word in prompt.approvals}
    if not said:
        return PendingApproval(list(waiting)) if waiting else None
    if not waiting:
        return Invalid("Nothing waits for approval in this conversation; send a message instead")
    tools = tools_of(prompt)
    needed = {call_id for call_id, request in waiting.items() if not runs_without_approval(request, tools)}
    if not needed <= said <= set(waiting):
        return Invalid(f"Approve or reject each of {', '.join(waiting)}, and nothing else")
    return None


def tools_of(prompt: Prompt) -> dict[str, Tool]:
    return {tool.name: tool for tool in prompt.tools}


@dataclass(slots=True)
class LettaTurn:
    """A running turn."""

    thread: ConversationClient
    prompt: Prompt
    emit: Emit
    reader: RunReader = field(default_factory=RunReader)
    _known: Mapping[str, str] = field(default_factory=dict[str, str])
    _running: bool = False
    _waiting: Sequence[ApprovalRequest] = ()

    async def run(self) -> TurnEnd:
        """Take the whole turn; a failure of Letta or its model is sent as an event and ends the turn."""
        try:
            return await self._run()
        except LettaFailure as error:
            await self._clean_up("The turn failed")
            return await self.give_up(error)
        except BaseException:
            await self._clean_up("The turn was cancelled")
            raise

    async def _run(self) -> TurnEnd:
        if self.prompt.again and (answer := await self.thread.answer_to(self.prompt.otid or "")) is not None:
            return await self._repeat_answer(answer)
        mind = await self.thread.agent_setup()
        self._known = block_values(mind.blocks)
        other = self.prompt.model not in (None, mind.model)
        model, window = (self.prompt.model, 0) if other else (mind.model, mind.window)
        self.reader.usage = replace(self.reader.usage, model=model, window=window)
        messages = await self._opening()
        left = self.prompt.max_steps
        while True:
            # The step that takes in answers makes no request to the model.
            await self._listen(messages, left + sum(message.get("type") == "approval" for message in messages))
            if self.reader.stop != REQUIRES_APPROVAL:
                return await self._end()
            left = max(left - self.reader.steps, 0)
            self._waiting = pending = await self.thread.pending()
            tools = tools_of(self.prompt)
            if not pending or not all(runs_without_approval(request, tools) for request in pending):
                return await self._wait_for(
                    [request for request in pending if not runs_without_approval(request, tools)]
                )
            messages = [approval_message(await self._answers(pending, {}))]

    async def _repeat_answer(self, answer: str) -> TurnEnd:
        """Send the answer again of a turn that was completed before."""
        log.info("letta_turn_known", agent_id=self.thread.agent_id, otid=self.prompt.otid)
        if answer:
            await self.emit(TextChunk(answer))
        return TurnEnd(StopReason.END_TURN)

    async def _opening(self) -> list[LettaInput]:
        """The turn's first messages: decisions on waiting calls, or the person's message."""
        messages: list[LettaInput] = []
        if self.prompt.approvals:
            pending = await self.thread.pending()
            if (error := why_refused(self.prompt, pending)) is not None:
                raise error
            self._waiting = pending
            words = {word.call_id: word for word in self.prompt.approvals}
            held_back = await self.thread.held_back()
            messages.append(approval_message(await self._answers(pending, words)))
            for call in held_back:
                self.reader.expect(call.call_id, call.name)
                await self.emit(call)
        if self.prompt.text is not None:
            # Letta has no place for a text that is valid in one turn only, so this stays in the conversation, without a
            # sender.
            messages += [context_message(self.prompt.context)] if self.prompt.context.strip() else []
            messages.append(user_message(self.prompt.text, self.prompt.otid, self.prompt.media))
        return messages

    async def _answers(self, pending: Sequence[ApprovalRequest], words: Mapping[str, Approval]) -> list[CallAnswer]:
        """Answer all requests in one message, as Letta requires."""
        tools = tools_of(self.prompt)
        rejected = {call_id: word.reason for call_id, word in words.items() if not word.approve}
        approved = [request for request in pending if request.call_id not in rejected]
        answers: list[CallAnswer] = []
        for request in pending:
            self.reader.expect(request.call_id, request.name)
            if request.call_id in rejected:
                answers.append(await self._reject(request, rejected[request.call_id]))
        for request in approved:
            if request.name not in tools:
                await self.emit(ToolCall(request.call_id, request.name, request.arguments))
                answers.append({"type": "approval", "tool_call_id": request.call_id, "approve": True})
        ours = [request for request in approved if request.name in tools]
        answers += await run_client_tools(ours, tools, self.emit)
        for request in ours:
            self.reader.returned(request.call_id)
        return answers

    async def _reject(self, request: ApprovalRequest, reason: str) -> CallAnswer:
        text = f"The call was rejected: {reason}" if reason else "The call was rejected."
        await self.emit(ToolReturn(request.call_id, request.name, text, ToolStatus.DENIED))
        self.reader.returned(request.call_id)
        return denial_answer(request.call_id, reason)

    async def _listen(self, messages: Sequence[LettaInput], max_steps: int) -> None:
        """Read one run from its first message to its last."""
        self.reader.begin_run()
        self._running = True
        with self.thread.server.translating_errors(self.thread.about):
            stream = await self._open(messages, max_steps)
            async with stream:
                async for message in stream:
                    self._waiting = ()
                    events = self.reader.read(message)
                    for event in events:
                        await self.emit(event)
                    if memory_may_have_changed(events):
                        await self._emit_memory_edits()
        if self.reader.stop is None:
            raise LettaFailure(f"The Letta server at {self.thread.server.base_url} broke off in the middle of a turn")
        self._running = False

    async def _open(self, messages: Sequence[LettaInput], max_steps: int) -> AsyncStream[LettaStreamingResponse]:
        try:
            return await self.thread.open(messages, self.prompt.tools, max_steps, self.prompt.model)
        except APIStatusError as error:
            # After a refusal, a run of this agent is not ours, so it is not stopped.
            self._running = not is_refusal(error)
            raise

    async def _emit_memory_edits(self) -> None:
        """Send changes of memory; the blocks are read again, because a memory tool does not always return the block."""
        try:
            blocks = (await self.thread.agent_setup()).blocks
        except Unavailable as error:
            log.warning("letta_memory_not_read", agent_id=self.thread.agent_id, error=type(error).__name__)
            return
        now = block_values(blocks)
        for edit in memory_edits(self._known, now):
            await self.emit(edit)
        self._known = now

    async def _wait_for(self, requests: Sequence[ApprovalRequest]) -> TurnEnd:
        # Calls that Letta kept run together with the approved ones; it drops them if calls must not run in parallel.
        kept = await self.thread.held_back() if self.reader.open_calls() else ()
        for event in self.reader.leftovers({call.call_id for call in kept}):
            await self.emit(event)
        for request in requests:
            await self.emit(request)
        return TurnEnd(StopReason.REQUIRES_APPROVAL, requests, self.reader.usage)

    async def _end(self) -> TurnEnd:
        stop = STOP_REASONS.get(self.reader.stop or "")
        if stop is None:
            trouble = MODEL_FAILURES.get(self.reader.stop or "", FailureKind.INTERNAL)
            return await self.give_up(LettaFailure(f"Letta stopped the turn: {self.reader.stop}", trouble))
        for event in self.reader.leftovers():
            await self.emit(event)
        return TurnEnd(stop, usage=self.reader.usage)

    async def give_up(self, error: Unavailable) -> TurnEnd:
        """End the turn with a failure of Letta or of the model behind it."""
        trouble = error.trouble if isinstance(error, LettaFailure) else FailureKind.UNAVAILABLE
        for event in self.reader.leftovers():
            await self.emit(event)
        await self.emit(Failed(trouble, str(error), error.retry_after))
        return TurnEnd(StopReason.ERROR, usage=self.reader.usage, failure=trouble)

    async def _clean_up(self, reason: str) -> None:
        """Stop the run and answer the waiting calls of a failed turn; else the agent would go on or be blocked."""
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                if self._running and self.reader.stop is None:
                    await self._stop()
                if self._waiting or self.reader.stop == REQUIRES_APPROVAL:
                    await self.thread.deny_pending(reason)
            except FrontdeskError as error:
                log.warning("letta_run_left_behind", agent_id=self.thread.agent_id, error=type(error).__name__)

    async def _stop(self) -> None:
        if self.reader.run_id:
            await self.thread.stop([self.reader.run_id])
        else:
            await self.thread.stop_active_runs(NEW_RUN_PAUSES)
