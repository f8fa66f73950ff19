"""An issuer that is slow or sends too much holds nobody up for long."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream
from structlog.testing import capture_logs

from frontdesk.errors import Unavailable
from frontdesk.identity.tokens import MAX_DOCUMENT_BYTES, IssuerKeys
from frontdesk.settings import Issuer

pytestmark = pytest.mark.anyio
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
PATIENCE = 10
Answering = Callable[[SocketStream], Awaitable[None]]


@asynccontextmanager
async def issuer_that(answers: Answering) -> AsyncGenerator[IssuerKeys]:
    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await answers(stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with anyio.create_task_group() as tasks, httpx2.AsyncClient() as client:
        tasks.start_soon(listener.serve, answer)
        url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        yield IssuerKeys(Issuer(issuer=url, jwks_url=f"{url}/jwks"), client)
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def why_not(keys: IssuerKeys) -> str:
    with capture_logs() as logged, anyio.fail_after(PATIENCE), pytest.raises(Unavailable):
        await keys.keys(None, 0)
    return logged[0]["error"]


async def test_an_issuer_that_sends_a_byte_at_a_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.identity.tokens.TOTAL_SECONDS", 0.2)

    async def drip(stream: SocketStream) -> None:
        await stream.send(HEAD)
        while True:
            await stream.send(b" ")
            await anyio.sleep(0.02)

    async with issuer_that(drip) as keys:
        assert await why_not(keys) == "TimeoutError"


async def test_an_issuer_that_sends_without_end_is_not_heard_out() -> None:
    async def pour(stream: SocketStream) -> None:
        await stream.send(HEAD)
        for _ in range(100 * MAX_DOCUMENT_BYTES // len(HEAD)):
            await stream.send(b" " * len(HEAD))

    async with issuer_that(pour) as keys:
        assert await why_not(keys) == "ValueError"
