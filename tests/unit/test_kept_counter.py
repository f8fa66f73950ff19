"""An issuer is asked for its description now and then, however many strangers want to sign in there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from pydantic import TypeAdapter
from structlog.testing import capture_logs

from frontdesk.errors import Unavailable
from frontdesk.identity.sign_in import IssuerEndpointCache, IssuerEndpoints, SignInIssuers
from frontdesk.identity.tokens import FRESH_SECONDS, REFETCH_SECONDS, STALE_SECONDS
from frontdesk.settings import Issuer

pytestmark = pytest.mark.anyio
ISSUER = "https://login.example"
DESCRIPTION = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
}
COUNTER = IssuerEndpoints(f"{ISSUER}/authorize", f"{ISSUER}/token", secret_in_form=False)


class Login:
    """An issuer that counts what it is asked, and says this of itself; nothing while it is away."""

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
