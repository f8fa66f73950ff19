"""One side of a JSON-RPC connection: answers what comes in, each in a task of its own, and asks back."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeGuard

import anyio
from anyio.lowlevel import checkpoint

from frontdesk.surfaces.acp.wire.frames import (
    Call,
    Frame,
    Id,
    Malformed,
    Notice,
    Reply,
    error_frame,
    notice_frame,
    parse,
    result_frame,
)
from frontdesk.surfaces.acp.wire.model import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    OVERLONG,
    Answer,
    Carrier,
    Gone,
    Hear,
    Json,
    Request,
    RpcError,
)
from frontdesk.surfaces.acp.wire.questions import CANCEL_REQUEST, Questions

MOST_REQUESTS = 512
CLEANUP_SECONDS = 5

OnBug = Callable[[Exception], None]


@dataclass(slots=True)
class _UnderWay:
    """`scope` is around its handler, `life` around all of it, what is done after the answer too."""

    request: Request
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    life: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Peer:
    """`run` it; meanwhile `request` and `notify` speak to the other side.

    What a handler sends before it returns goes out before its answer.
    """

    def __init__(
        self, carrier: Carrier, answer: Answer, hear: Hear, on_bug: OnBug, cleanup_seconds: float = CLEANUP_SECONDS
    ) -> None:
        self._carrier = carrier
        self._answer = answer
        self._hear = hear
        self._on_bug = on_bug
        self._cleanup_seconds = cleanup_seconds
        self._questions = Questions(carrier.send)
        self._under_way: dict[Id, _UnderWay] = {}
        self._tasks: dict[asyncio.Task[None], _UnderWay] = {}
        self._reading = anyio.CancelScope()

    async def run(self) -> None:
        """Take in frames until the other side leaves; then nothing that was begun for it goes on."""
        try:
            with self._reading:
                await self._take_in()
        finally:
            self._questions.end()
            await self._stop()

    async def request(self, method: str, params: Json, seconds: float) -> Json:
        """The other side's answer, or `RpcError`, `TimeoutError`, `Gone`; what is not waited for is withdrawn."""
        return await self._questions.ask(method, params, seconds)

    async def notify(self, method: str, params: Json) -> None:
        """Tell the other side; waits where it does not keep up."""
        await self._carrier.send(notice_frame(method, params))

    async def _take_in(self) -> None:
        with suppress(Gone):
            while (data := await self._carrier.receive()) is not None:
                await self._take(_frame(data))
                # Lets a request begin before the next frame is looked at, which may be about it.
                await checkpoint()

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Call():
                await self._begin(frame)
            case Notice(method, params) if method == CANCEL_REQUEST:
                self._guarded(lambda: self._cancel(params.get("requestId")))
            case Notice(method, params):
                self._guarded(lambda: self._hear(method, params))
            case Reply():
                self._questions.settle(frame)
            case Malformed():
                await self._refuse(frame.id, RpcError(frame.code, frame.message))

    async def _begin(self, call: Call) -> None:
        words = self._objection(call)
        if words:
            return await self._refuse(call.id, RpcError(INVALID_REQUEST, words))
        begun = self._under_way[call.id] = _UnderWay(Request(call.id, call.method, call.params))
        # No task group: it would wait for ever for one that does not want to end.
        task = asyncio.create_task(self._serve(begun))
        self._tasks[task] = begun
        return task.add_done_callback(self._done)

    def _objection(self, call: Call) -> str:
        if call.id in self._under_way:
            return "A request with this id is under way; give each an id of its own"
        if len(self._tasks) >= MOST_REQUESTS:
            return f"{MOST_REQUESTS} requests are under way; wait for the answer to one of them"
        return ""

    async def _refuse(self, number: Id, error: RpcError) -> None:
        await self._carrier.send(error_frame(number, error))

    async def _serve(self, begun: _UnderWay) -> None:
        with begun.life:
            try:
                await self._carrier.send(await self._answered(begun))
                for deed in begun.request.afterwards:
                    await self._attempt(deed)
            except Gone:
                self._reading.cancel()

    async def _answered(self, begun: _UnderWay) -> bytes:
        request = begun.request
        error = RpcError(CANCELLED, "The request was cancelled")
        try:
            with begun.scope:
                return result_frame(request.id, await self._answer(request))
        except RpcError as raised:
            error = raised
        except Gone:
            raise
        except asyncio.CancelledError:
            # Of something that it waited for; where it is of the whole connection nobody wants an answer.
            if begun.life.cancel_called:
                raise
        except Exception as bug:  # noqa: BLE001 - the outermost place of a request: whatever it is, it gets an answer
            self._on_bug(bug)
            error = RpcError(INTERNAL_ERROR, "Internal error")
        finally:
            # Before the answer goes out: whoever has read it may use the id again.
            del self._under_way[request.id]
        return error_frame(request.id, error)

    async def _attempt(self, deed: Callable[[], Awaitable[None]]) -> None:
        try:
            await deed()
        except Gone:
            raise
        except Exception as bug:  # noqa: BLE001 - the answer is out, and the next deed may still be done
            self._on_bug(bug)

    def _cancel(self, number: object) -> None:
        begun = self._under_way.get(number) if _is_id(number) else None
        if begun is None:
            return
        if begun.request.on_cancel is not None:
            begun.request.on_cancel()
        else:
            begun.scope.cancel()

    def _guarded(self, take: Callable[[], None]) -> None:
        try:
            take()
        except RpcError:
            # A notification is owed no answer, so nobody can be told.
            return
        except Exception as bug:  # noqa: BLE001 - one notification that cannot be taken in must not end the connection
            self._on_bug(bug)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and isinstance(bug := task.exception(), Exception):
            self._on_bug(bug)

    async def _stop(self) -> None:
        for begun in self._tasks.values():
            begun.life.cancel()
        if self._tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._tasks, timeout=self._cleanup_seconds)
        for begun in self._tasks.values():
            self._on_bug(RuntimeError(f"{begun.request.method} did not end in {self._cleanup_seconds:g} s"))


def _frame(data: bytes) -> Frame:
    if data == OVERLONG:
        return Malformed(INVALID_REQUEST, "The frame is too long")
    return parse(data)


def _is_id(number: object) -> TypeGuard[Id]:
    return number is None or (isinstance(number, int | str) and not isinstance(number, bool))
