"""Tells pages of what happens, as server-sent events that end when the server does."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any, ClassVar

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from frontdesk.errors import Unavailable

HEARTBEAT_SECONDS = 15
# A reader that takes nothing for so long is let go.
SEND_SECONDS = 30
# Each of them asks the database about once a second.
MOST = 200
RETRY_SECONDS = 30
TOO_MANY = f"{MOST} pages are being told of what happens already; close some, or look again later"


class Stream(EventSourceResponse):
    """An answer that goes on; `open` is how many of them this process gives right now."""

    open: ClassVar[int] = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        Stream.open += 1
        try:
            with suppress(SendTimeoutError):
                await super().__call__(scope, receive, send)
        finally:
            Stream.open -= 1


def require_room() -> None:
    """Refuse a stream more than this process can serve besides its other work."""
    if Stream.open >= MOST:
        raise Unavailable(TOO_MANY, retry_after=RETRY_SECONDS)


def stream(told: AsyncGenerator[Mapping[str, Any]]) -> Response:
    """One event for each object, and a beat while there is none."""

    async def events() -> AsyncGenerator[ServerSentEvent]:
        async with aclosing(told) as heard:
            async for one in heard:
                yield ServerSentEvent(json.dumps(one, default=str))

    headers = {"cache-control": "no-store"}
    return Stream(events(), ping=HEARTBEAT_SECONDS, send_timeout=SEND_SECONDS, headers=headers)
