"""Our own requests to the other side, until each is answered."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, cast

import anyio

from frontdesk.surfaces.acp.wire.frames import Reply, call_frame, notice_frame
from frontdesk.surfaces.acp.wire.model import INTERNAL_ERROR, Gone, Json, RpcError

CANCEL_REQUEST = "$/cancel_request"
WITHDRAW_SECONDS = 1

Send = Callable[[bytes], Awaitable[None]]


class Questions:
    """Each has a number of its own; whoever asks waits for its answer alone."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Reply | None]] = {}
        self._ended = False

    async def ask(self, method: str, params: Json, seconds: float) -> Json:
        """The answer; `RpcError` where it is an error, `TimeoutError`, or `Gone` where none can come any more."""
        if self._ended:
            raise Gone("The other side has left")
        number = next(self._numbers)
        answer = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after(seconds):
                await self._send(call_frame(number, method, params))
                reply = await answer
        except (TimeoutError, asyncio.CancelledError):
            await self._withdraw(number)
            raise
        finally:
            del self._open[number]
        return _result(method, reply)

    def settle(self, reply: Reply) -> None:
        """Hand an answer to whoever asked; one that nobody waits for is dropped."""
        answer = self._open.get(reply.id) if reply.id is not None else None
        if answer is not None and not answer.done():
            answer.set_result(reply)

    def end(self) -> None:
        """Nothing is answered any more."""
        self._ended = True
        for answer in self._open.values():
            if not answer.done():
                answer.set_result(None)

    async def _withdraw(self, number: int) -> None:
        with anyio.move_on_after(WITHDRAW_SECONDS, shield=True), suppress(Gone):
            await self._send(notice_frame(CANCEL_REQUEST, {"requestId": number}))


def _result(method: str, reply: Reply | None) -> Json:
    if reply is None:
        raise Gone("The other side left before it answered")
    if reply.error is not None:
        raise _refusal(method, reply.error)
    if reply.result is None:
        return {}
    if not isinstance(reply.result, dict):
        raise RpcError(INTERNAL_ERROR, f"The answer to {method} is not an object")
    return cast("dict[str, Any]", reply.result)


def _refusal(method: str, error: object) -> RpcError:
    told = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code, message, data = told.get("code"), told.get("message"), told.get("data")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) and message.strip() else f"{method} was refused without a reason",
        cast("dict[str, Any]", data) if isinstance(data, dict) else None,
    )
