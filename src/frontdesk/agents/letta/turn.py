"""One turn of a Letta agent: as many runs on the server as the caller's own tools make needed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio
import structlog
from letta_client import APIStatusError, AsyncStream
from letta_client.types.agents import LettaStreamingResponse

from frontdesk.agents.host import Approval, Prompt
from frontdesk.agents.letta import memory
from frontdesk.agents.letta.client_tools import run_all, unasked
from frontdesk.agents.letta.errors import MODEL_TROUBLES, LettaTrouble, refused
from frontdesk.agents.letta.inputs import Answer, Input, approval, around, denial, spoken
from frontdesk.agents.letta.stream import Reader
from frontdesk.agents.letta.thread import LOOKS, Thread
from frontdesk.agents.letta.words import STOPS
from frontdesk.agents.turns.service import Emit
from frontdesk.errors import FrontdeskError, Invalid, PendingApproval, Unavailable
from frontdesk.loop.events import (
    ApprovalRequest,
    Ending,
    Failed,
    StopReason,
    TextChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Trouble,
)
from frontdesk.loop.tools import Tool

TIDY_SECONDS = 5
REQUIRES_APPROVAL = "requires_approval"

log = structlog.get_logger("frontdesk.letta")


def refusal(prompt: Prompt, pending: Sequence[ApprovalRequest]) -> FrontdeskError | None:
    """Why a turn cannot be taken while this waits for approval."""
    waiting = {request.call_id: request for request in pending}
    said = {word.call_id for word in prompt.approvals}
    if not said:
        return PendingApproval(list(waiting)) if waiting else None
    if not waiting:
        return Invalid("Nothing waits for approval in this conversation; send a message instead")
    tools = tools_of(prompt)
    needed = {call_id for call_id, request in waiting.items() if not unasked(request, tools)}
    if not needed <= said <= set(waiting):
        return Invalid(f"Approve or reject each of {', '.join(waiting)}, and nothing else")
    return None


def tools_of(prompt: Prompt) -> dict[str, Tool]:
    return {tool.name: tool for tool in prompt.tools}


@dataclass(slots=True)
class Turn:
    """A turn under way."""

    thread: Thread
    prompt: Prompt
    emit: Emit
    reader: Reader = field(default_factory=Reader)
    _known: Mapping[str, str] = field(default_factory=dict[str, str])
    _running: bool = False
    _waiting: Sequence[ApprovalRequest] = ()

    async def run(self) -> Ending:
        """The whole turn; what Letta or its model does wrong is told and ends it."""
        try:
            return await self._run()
        except LettaTrouble as error:
            await self._leave_tidy("The turn failed")
            return await self.give_up(error)
        except BaseException:
            await self._leave_tidy("The turn was cancelled")
            raise

    async def _run(self) -> Ending:
        if self.prompt.again and (answer := await self.thread.answer_to(self.prompt.otid or "")) is not None:
            return await self._tell(answer)
        mind = await self.thread.mind()
        self._known = memory.values_of(mind.blocks)
        other = self.prompt.model not in (None, mind.model)
        model, window = (self.prompt.model, 0) if other else (mind.model, mind.window)
        self.reader.usage = replace(self.reader.usage, model=model, window=window)
        messages = await self._opening()
        left = self.prompt.max_steps
        while True:
            # The step that takes in answers asks no model.
            await self._listen(messages, left + sum(message.get("type") == "approval" for message in messages))
            if self.reader.stop != REQUIRES_APPROVAL:
                return await self._end()
            left = max(left - self.reader.steps, 0)
            self._waiting = pending = await self.thread.pending()
            tools = tools_of(self.prompt)
            if not pending or not all(unasked(request, tools) for request in pending):
                return await self._wait_for([request for request in pending if not unasked(request, tools)])
            messages = [approval(await self._answers(pending, {}))]

    async def _tell(self, answer: str) -> Ending:
        """The turn was taken before, and this is what came of it."""
        log.info("letta_turn_known", agent_id=self.thread.agent_id, otid=self.prompt.otid)
        if answer:
            await self.emit(TextChunk(answer))
        return Ending(StopReason.END_TURN)

    async def _opening(self) -> list[Input]:
        """What the turn begins with: words on what waits, or words of the person."""
        messages: list[Input] = []
        if self.prompt.approvals:
            pending = await self.thread.pending()
            if (error := refusal(self.prompt, pending)) is not None:
                raise error
            self._waiting = pending
            words = {word.call_id: word for word in self.prompt.approvals}
            held_back = await self.thread.held_back()
            messages.append(approval(await self._answers(pending, words)))
            for call in held_back:
                self.reader.expect(call.call_id, call.name)
                await self.emit(call)
        if self.prompt.text is not None:
            # Letta has no place for what holds in one turn alone, so this stays in the conversation; nobody said it.
            messages += [around(self.prompt.context)] if self.prompt.context.strip() else []
            messages.append(spoken(self.prompt.text, self.prompt.otid, self.prompt.media))
        return messages

    async def _answers(self, pending: Sequence[ApprovalRequest], words: Mapping[str, Approval]) -> list[Answer]:
        """Letta wants all of its requests answered in one message."""
        tools = tools_of(self.prompt)
        rejected = {call_id: word.reason for call_id, word in words.items() if not word.approve}
        approved = [request for request in pending if request.call_id not in rejected]
        answers: list[Answer] = []
        for request in pending:
            self.reader.expect(request.call_id, request.name)
            if request.call_id in rejected:
                answers.append(await self._reject(request, rejected[request.call_id]))
        for request in approved:
            if request.name not in tools:
                await self.emit(ToolCall(request.call_id, request.name, request.arguments))
                answers.append({"type": "approval", "tool_call_id": request.call_id, "approve": True})
        ours = [request for request in approved if request.name in tools]
        answers += await run_all(ours, tools, self.emit)
        for request in ours:
            self.reader.returned(request.call_id)
        return answers

    async def _reject(self, request: ApprovalRequest, reason: str) -> Answer:
        text = f"The call was rejected: {reason}" if reason else "The call was rejected."
        await self.emit(ToolReturn(request.call_id, request.name, text, ToolStatus.DENIED))
        self.reader.returned(request.call_id)
        return denial(request.call_id, reason)

    async def _listen(self, messages: Sequence[Input], max_steps: int) -> None:
        """One run, from its first message to its last."""
        self.reader.begin_run()
        self._running = True
        with self.thread.server.asking(self.thread.about):
            stream = await self._open(messages, max_steps)
            async with stream:
                async for message in stream:
                    self._waiting = ()
                    events = self.reader.read(message)
                    for event in events:
                        await self.emit(event)
                    if memory.may_have_changed(events):
                        await self._tell_memory()
        if self.reader.stop is None:
            raise LettaTrouble(f"The Letta server at {self.thread.server.base_url} broke off in the middle of a turn")
        self._running = False

    async def _open(self, messages: Sequence[Input], max_steps: int) -> AsyncStream[LettaStreamingResponse]:
        try:
            return await self.thread.open(messages, self.prompt.tools, max_steps, self.prompt.model)
        except APIStatusError as error:
            # Whatever runs at the agent then is not ours to stop.
            self._running = not refused(error)
            raise

    async def _tell_memory(self) -> None:
        """A memory tool does not always return the block, so the blocks are read again."""
        try:
            blocks = (await self.thread.mind()).blocks
        except Unavailable as error:
            log.warning("letta_memory_not_read", agent_id=self.thread.agent_id, error=type(error).__name__)
            return
        now = memory.values_of(blocks)
        for edit in memory.edits(self._known, now):
            await self.emit(edit)
        self._known = now

    async def _wait_for(self, requests: Sequence[ApprovalRequest]) -> Ending:
        # Those that Letta kept run with the approved ones; it drops them where calls are not to be made together.
        kept = await self.thread.held_back() if self.reader.open_calls() else ()
        for event in self.reader.leftovers({call.call_id for call in kept}):
            await self.emit(event)
        for request in requests:
            await self.emit(request)
        return Ending(StopReason.REQUIRES_APPROVAL, requests, self.reader.usage)

    async def _end(self) -> Ending:
        stop = STOPS.get(self.reader.stop or "")
        if stop is None:
            trouble = MODEL_TROUBLES.get(self.reader.stop or "", Trouble.INTERNAL)
            return await self.give_up(LettaTrouble(f"Letta stopped the turn: {self.reader.stop}", trouble))
        for event in self.reader.leftovers():
            await self.emit(event)
        return Ending(stop, usage=self.reader.usage)

    async def give_up(self, error: Unavailable) -> Ending:
        """End the turn with what Letta, or the model behind it, did not do."""
        trouble = error.trouble if isinstance(error, LettaTrouble) else Trouble.UNAVAILABLE
        for event in self.reader.leftovers():
            await self.emit(event)
        await self.emit(Failed(trouble, str(error), error.retry_after))
        return Ending(StopReason.ERROR, usage=self.reader.usage, failure=trouble)

    async def _leave_tidy(self, reason: str) -> None:
        """Before a turn is given up: stop its run and answer what waits, or the agent would go on, or be blocked."""
        with anyio.move_on_after(TIDY_SECONDS, shield=True):
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
            await self.thread.stop_what_runs(LOOKS)
