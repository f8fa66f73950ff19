"""A person's own token, at the endpoints where tools are called: where it goes, and that nothing keeps it."""

from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp, RequestContext
from tests.conftest import settings_with
from tests.support.asking import ask
from tests.support.chat import key
from tests.support.issuer import open_issuer
from tests.support.token_server import open_token_server

pytestmark = pytest.mark.anyio
AUDIENCES = ["http://127.0.0.1:3020/api", "http://127.0.0.1:3020/mcp/tools"]


async def test_it_goes_to_servers_set_up_for_it_by_both_endpoints_and_is_neither_logged_nor_stored(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        issuer = stack.enter_context(open_issuer())
        token = issuer.token(sub="ann", aud=AUDIENCES)
        server = stack.enter_context(open_token_server({token: "ann's"}))
        settings = settings_with(
            FRONTDESK_DATA=tmp_path / "data",
            FRONTDESK_EMBEDDINGS="off",
            FRONTDESK_ISSUERS=[{"issuer": issuer.url, "jwks_url": issuer.jwks_url, "audience": AUDIENCES}],
            FRONTDESK_MCP_SERVERS=[
                {"name": "work", "url": server.url, "user_token": True},
                {"name": "other", "url": server.url},
            ],
        )
        logged = stack.enter_context(capture_logs())
        app = await stack.enter_async_context(open_app(settings))
        await app.tools.catalogue.declare()
        await app.tools.catalogue.refresh()
        asgi = build_application(app)
        for shown in (token, await key(app, "ann")):
            answers = [await by_rest(asgi, name, shown) for name in ("work::whose", "other::whose")]
            told = [await ask(asgi, "call_tool", {"name": f"{name}::whose"}, key=shown) for name in ("work", "other")]
            answers += [one.text for one in told]
            served = ["ann's" in answer for answer in answers]
            assert served == ([True, False] * 2 if shown is token else [False] * 4), answers
        await app.journal.flush()
        assert logged
        assert token not in str(logged)
    assert all(token.encode() not in part.read_bytes() for part in (tmp_path / "data").iterdir())


def test_a_request_context_shows_neither_the_token_nor_the_headers_it_came_in() -> None:
    request_context = RequestContext("1", {"authorization": "Bearer a-secret"}, token=SecretStr("a-secret"))
    assert "a-secret" not in repr(request_context)


async def by_rest(asgi: ASGIApp, name: str, token: str) -> str:
    base = "http://127.0.0.1:3020/api/v1/tools"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url=base) as client:
        return (await client.post("/call", json={"name": name}, headers={"authorization": f"Bearer {token}"})).text
