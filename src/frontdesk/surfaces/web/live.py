"""Tells pages of what happens, as server-sent events that end when the server does."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

HEARTBEAT_SECONDS = 15


def stream(told: AsyncGenerator[Mapping[str, Any]]) -> Response:
    """An answer that goes on: one event for each object, and a beat while there is none."""

    async def events() -> AsyncGenerator[ServerSentEvent]:
        async with aclosing(told) as heard:
            async for one in heard:
                yield ServerSentEvent(json.dumps(one, default=str))

    return EventSourceResponse(events(), ping=HEARTBEAT_SECONDS, headers={"cache-control": "no-store"})
