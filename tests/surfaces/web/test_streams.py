"""What is told live is told to so many at once, and to nobody who does not listen."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import anyio
import pytest
from starlette.types import Message, Scope

from frontdesk.app import App
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.web import routes
from frontdesk.interfaces.web.routes import RETRY_SECONDS, PageStream, stream_events
from tests.support.pages import browsing
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
SECONDS = 30
SCOPE: Scope = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/live/now",
    "raw_path": b"/live/now",
    "root_path": "",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1:3020")],
    "server": ("127.0.0.1", 3020),
    "client": ("127.0.0.1", 1),
}


async def stays() -> Message:
    """A browser that goes on listening."""
    await anyio.sleep_forever()
    raise AssertionError


async def test_one_stream_too_many_is_refused_with_when_to_come_again(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_STREAMS", 3)
    asgi = build_application(app)
    begun: list[int] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.append(message["status"])

    async with browsing(asgi) as web, anyio.create_task_group() as tasks:

        async def listen() -> None:
            await asgi(dict(SCOPE), stays, send)

        for _ in range(3):
            tasks.start_soon(listen)
        await until(lambda: len(begun) == 3)
        answer = await web.client.get("/live/turns")
        assert begun == [200] * 3
        assert (answer.status_code, answer.headers["retry-after"]) == (503, str(RETRY_SECONDS))
        await web.get("/turns")
        tasks.cancel_scope.cancel()
    assert PageStream.open == 0


async def test_a_reader_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "SEND_SECONDS", 0.05)
    ended = anyio.Event()

    async def told() -> AsyncGenerator[Mapping[str, Any]]:
        try:
            while True:
                yield {"number": 1}
        finally:
            ended.set()

    async def stalls(message: Message) -> None:
        if message["type"] == "http.response.body":
            await anyio.sleep_forever()

    with anyio.fail_after(SECONDS):
        await stream_events(told())(dict(SCOPE), stays, stalls)
        await ended.wait()
    assert PageStream.open == 0
