"""Tests that an issuer's metadata is checked, cached for a while, and fetched without delaying anybody."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream
from pydantic import TypeAdapter
from structlog.testing import capture_logs

from frontdesk.errors import Unavailable
from frontdesk.identity.sign_in import IssuerEndpointCache, IssuerEndpoints, SignInIssuers, read_endpoints
from frontdesk.identity.tokens import FRESH_SECONDS, MAX_DOCUMENT_BYTES, REFETCH_SECONDS, STALE_SECONDS, IssuerKeys
from frontdesk.settings import Issuer

# An issuer's metadata is trusted only as far as it is safe


ISSUER = "https://login.example"
GOOD = {
    "issuer": f"{ISSUER}/",
    "authorization_endpoint": f"{ISSUER}/authorize#here",
    "token_endpoint": f"{ISSUER}/token",
}


def test_addresses_are_taken_from_the_issuers_own_description() -> None:
    assert read_endpoints(ISSUER, GOOD) == IssuerEndpoints(
        f"{ISSUER}/authorize", f"{ISSUER}/token", secret_in_form=False
    )


@pytest.mark.parametrize(
    ("methods", "in_form"),
    [
        (["client_secret_post"], True),
        (["client_secret_post", "client_secret_basic"], False),
        (["private_key_jwt"], False),
        ("client_secret_post", False),
    ],
)
def test_a_secret_goes_into_the_form_where_the_issuer_takes_it_nowhere_else(methods: object, in_form: bool) -> None:
    said = {**GOOD, "token_endpoint_auth_methods_supported": methods}
    assert read_endpoints(ISSUER, said).secret_in_form == in_form


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": "http://login.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "http://login.example/token"},
        {"token_endpoint": 7},
    ],
)
def test_what_is_not_the_issuers_or_not_safe_is_not_acted_on(changed: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"another issuer's|neither https|cannot be asked|no text"):
        read_endpoints(ISSUER, {**GOOD, **changed})


# An issuer's metadata is fetched only now and then, however many strangers want to sign in there


DESCRIPTION = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
}
COUNTER = IssuerEndpoints(f"{ISSUER}/authorize", f"{ISSUER}/token", secret_in_form=False)


class Login:
    """An issuer that counts its requests, and has this metadata; it gives no answer while it is down."""

    def __init__(self, **description: Any) -> None:
        self.asked = 0
        self.away = False
        self.description = {**DESCRIPTION, **description}

    async def answer(self, _request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        if self.away:
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(200, json=self.description)

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[IssuerEndpointCache]:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer)) as client:
            yield IssuerEndpointCache(ISSUER, client)


async def test_what_an_issuer_said_holds_for_a_while_and_those_who_ask_at_once_share_one_answer() -> None:
    login = Login()
    async with login.kept() as counter:
        found: list[IssuerEndpoints | None] = []

        async def look() -> None:
            found.append(await counter.find(0))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(look)
        assert found == [COUNTER] * 50
        assert await counter.find(FRESH_SECONDS - 1) == COUNTER
        assert login.asked == 1
        assert await counter.find(FRESH_SECONDS + 1) == COUNTER
        assert login.asked == 2


async def test_an_issuer_that_is_away_is_left_alone_for_a_moment_and_its_last_word_holds_for_a_day() -> None:
    login = Login()
    login.away = True
    async with login.kept() as counter:
        with capture_logs() as logged:
            assert [await counter.find(now) for now in (0.0, 1.0, REFETCH_SECONDS - 1)] == [None] * 3
        assert login.asked == 1
        assert [one["event"] for one in logged] == ["sign_in_issuer_failed"]
        login.away = False
        assert await counter.find(REFETCH_SECONDS + 1) == COUNTER
        login.away = True
        assert await counter.find(FRESH_SECONDS * 2) == COUNTER
        assert await counter.find(STALE_SECONDS * 2) is None


@pytest.mark.parametrize("address", ["https://login.example:port/token", "https://login.example/\x00"])
async def test_an_address_for_codes_that_is_none_is_told_as_an_issuer_that_cannot_be_asked(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = httpx2.MockTransport(Login(token_endpoint=address).answer)
    monkeypatch.setattr(httpx2, "AsyncClient", partial(httpx2.AsyncClient, transport=transport))
    known = TypeAdapter(Issuer).validate_python({"issuer": ISSUER, "sign_in": {"client_id": "pages"}})
    upstreams = SignInIssuers([known], "http://127.0.0.1:3020", {})
    try:
        with pytest.raises(Unavailable, match="cannot be asked right now"):
            await sign_in(upstreams)
    finally:
        await upstreams.close()


async def sign_in(upstreams: SignInIssuers) -> None:
    _, sign_in_state = await upstreams.begin(ISSUER)
    await upstreams.redeem(sign_in_state, {"state": sign_in_state.state, "code": "x"})


# An issuer that is slow or sends too much delays nobody for long


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
