"""How an answer goes out: as JSON, as a stream, or not at all because the client left."""

import asyncio
import json
from collections.abc import Coroutine, MutableMapping
from typing import Any

import anyio
import pytest
from mcp.shared.transport_context import TransportContext

from frontdesk.interfaces.mcp import http
from frontdesk.interfaces.mcp.http import QUICK_SECONDS, Outbox, SdkChannel, run_request, send_reply

pytestmark = pytest.mark.anyio
Message = MutableMapping[str, Any]


class Client:
    """The other end of one exchange."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.left = anyio.Event()
        self.pinged = anyio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message.get("body") == b": ping\r\n\r\n":
            self.pinged.set()

    @property
    def content_type(self) -> bytes:
        return dict(self.messages[0]["headers"])[b"content-type"]

    @property
    def events(self) -> list[Any]:
        body = b"".join(message["body"] for message in self.messages[1:])
        return [json.loads(line[6:]) for line in body.split(b"\r\n") if line.startswith(b"data: ")]


def outbox(**values: Any) -> SdkChannel:
    transport = TransportContext(kind="test", can_send_request=False)
    return SdkChannel(1, "r-1", transport=transport, message_metadata=None, **values)


async def exchange(work: Coroutine[Any, Any, dict[str, Any]], box: Outbox, client: Client) -> None:
    task = asyncio.create_task(run_request(work, box, modern=True))
    with anyio.fail_after(10):
        await send_reply(task, box, client.receive, client.send)


async def test_a_quick_silent_tool_answers_plain_json() -> None:
    client, box = Client(), outbox()

    async def work() -> dict[str, Any]:
        return {"done": True}

    await exchange(work(), box, client)
    assert client.content_type == b"application/json"
    assert json.loads(client.messages[1]["body"])["result"] == {"done": True}


async def test_progress_is_streamed_before_the_answer() -> None:
    client, box = Client(), outbox(progress_token="p")

    async def work() -> dict[str, Any]:
        await box.progress(1, 2, "half")
        await anyio.sleep(QUICK_SECONDS * 2)
        await box.progress(2, 2)
        return {"done": True}

    await exchange(work(), box, client)
    assert client.content_type == b"text/event-stream"
    assert [event.get("method", "result") for event in client.events] == [
        "notifications/progress",
        "notifications/progress",
        "result",
    ]
    assert client.events[0]["params"] == {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}


async def test_progress_nobody_asked_for_is_not_sent() -> None:
    client, box = Client(), outbox()

    async def work() -> dict[str, Any]:
        await box.progress(1)
        return {}

    await exchange(work(), box, client)
    assert client.content_type == b"application/json"


async def test_a_client_that_leaves_cancels_the_work() -> None:
    client, box, cancelled = Client(), outbox(), anyio.Event()

    async def work() -> dict[str, Any]:
        client.left.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return {}

    await exchange(work(), box, client)
    with anyio.fail_after(5):
        await cancelled.wait()
    assert client.messages == []


async def test_a_long_silence_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PING_SECONDS", 0.01)
    client, box = Client(), outbox()

    async def work() -> dict[str, Any]:
        await client.pinged.wait()
        return {"done": True}

    await exchange(work(), box, client)
    assert client.events[-1]["result"] == {"done": True}
    assert client.messages[-1]["more_body"] is False
