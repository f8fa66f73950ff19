"""Answers one MCP request over HTTP: plain JSON when the tool is quick and silent, a stream when it is not."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData, ProgressToken, RequestId
from pydantic import ValidationError

from frontdesk.surfaces.gate import Receive, Send
from frontdesk.surfaces.mcp import frames

# Most tools are done long before this; only the others are worth a second task that watches the connection.
QUICK_SECONDS = 0.05
QUICK_TURNS = 2
# A proxy that sees nothing for a minute hangs up; a comment line keeps it waiting.
PING_SECONDS = 15.0
JSON_HEADERS = [(b"content-type", b"application/json")]
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

log = structlog.get_logger("frontdesk.mcp")


@dataclass
class Outbox:
    """What goes back in one HTTP exchange: an answer to the request, and frames that go out before it."""

    request_id: RequestId
    visit_id: str
    frames: deque[bytes] = field(default_factory=deque[bytes])
    woken: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(kw_only=True)
class Channel(Outbox):
    """The SDK's view of one HTTP exchange: notifications go out with the answer, requests to the client cannot."""

    transport: TransportContext
    message_metadata: MessageMetadata
    progress_token: ProgressToken | None = None
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        self.frames.append(frames.notice_frame(method, None if params is None else dict(params)))
        self.woken.set()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is None:
            return
        said = {
            "progressToken": self.progress_token,
            "progress": progress,
            "total": total,
            "message": message,
        }
        await self.notify("notifications/progress", {key: value for key, value in said.items() if value is not None})


async def answer(work: Coroutine[Any, Any, dict[str, Any]], outbox: Outbox, *, modern: bool) -> tuple[int, bytes]:
    """(status, frame) of a finished request; what goes wrong inside never reaches the wire."""
    try:
        return 200, frames.result_frame(outbox.request_id, await work)
    except MCPError as error:
        told = error.error
    except ValidationError:
        told = ErrorData(code=INVALID_PARAMS, message="Invalid request parameters")
    except Exception:
        log.exception("request_failed", request_id=outbox.visit_id)
        told = ErrorData(code=INTERNAL_ERROR, message="Internal server error")
    return frames.error_status(told.code, modern=modern), frames.error_frame(outbox.request_id, told)


async def reply(task: asyncio.Task[tuple[int, bytes]], outbox: Outbox, receive: Receive, send: Send) -> None:
    """Send the task's answer; a client that hangs up cancels it."""
    try:
        await _give_way(task)
        if task.done() and not outbox.frames:
            await _send_json(send, *task.result())
        else:
            await _watched(task, outbox, receive, send)
    finally:
        task.cancel()


async def _give_way(task: asyncio.Task[tuple[int, bytes]]) -> None:
    """Let the task run: most are done within a few turns of the loop, and a timer for those is not worth its price."""
    for _ in range(QUICK_TURNS):
        if task.done():
            return
        await asyncio.sleep(0)
    # What asyncio.wait does, for one task and at half its price.
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    limit = loop.call_later(QUICK_SECONDS, wake)
    task.add_done_callback(wake)
    try:
        await waiter
    finally:
        limit.cancel()
        task.remove_done_callback(wake)


async def _watched(task: asyncio.Task[tuple[int, bytes]], outbox: Outbox, receive: Receive, send: Send) -> None:
    gone = asyncio.create_task(_disconnected(receive))
    try:
        waited = await _first_of(task, gone, outbox)
        if gone.done():
            return
        if task.done() and not outbox.frames:
            await _send_json(send, *task.result())
            return
        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
        while not gone.done():
            body = b"".join(frames.event(outbox.frames.popleft()) for _ in range(len(outbox.frames)))
            done = task.done() and not outbox.frames
            if done:
                body += frames.event(task.result()[1])
            elif not body and not waited:
                body = b": ping\r\n\r\n"
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": not done})
            if done:
                return
            waited = await _first_of(task, gone, outbox)
    finally:
        gone.cancel()


async def _first_of(task: asyncio.Task[tuple[int, bytes]], gone: asyncio.Task[None], outbox: Outbox) -> bool:
    """Wait for the answer, a notification or the client's leaving; False when nothing came in time."""
    if outbox.frames:
        return True
    outbox.woken.clear()
    woken = asyncio.create_task(outbox.woken.wait())
    try:
        done, _ = await asyncio.wait((task, gone, woken), timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()
    return bool(done)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_json(send: Send, status: int, body: bytes) -> None:
    headers = [*JSON_HEADERS, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
