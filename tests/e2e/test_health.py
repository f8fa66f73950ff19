"""Health: 200 while the server can serve, 503 while it cannot, open to everybody."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from tests.conftest import settings_with
from tests.support.postgres import Postgres
from tests.support.wire import MODERN, Answer, call, send

pytestmark = pytest.mark.anyio
GONE_MILLISECONDS = 20_000


async def test_a_healthy_server_says_so(app: App) -> None:
    answer = await health(build_application(app))
    assert answer.status == 200
    assert answer.json == {"status": "ok", "version": "0.1.0", "parts": {"database": "ok"}}


async def test_a_server_without_its_database_says_so_and_recovers(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_DATABASE_URL=url)
    async with open_app(settings) as app:
        asgi = build_application(app)
        assert (await health(asgi)).status == 200
        with closed(postgres, url.rpartition("?")[0].rpartition("/")[2]):
            answer = await health(asgi)
            assert answer.status == 503
            assert answer.json["parts"] == {"database": "unavailable"}
            said, frame = call(MODERN)
            known = await send(asgi, said | {"x-agent-id": "agent-1"}, frame)
            assert known.status == 200, "identity needs no database here"
        assert (await health(asgi)).status == 200


async def health(asgi: ASGIApp) -> Answer:
    return await send(asgi, {}, b"", path="/api/health", method="GET")


@contextmanager
def closed(postgres: Postgres, name: str) -> Generator[None]:
    """Have a database hang up on everybody, and take nobody in."""
    gone = "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE datname = %s"
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(allow.format(sql.Identifier(name), sql.Literal(False)))
        connection.execute(gone, (GONE_MILLISECONDS, name))
        yield
        connection.execute(allow.format(sql.Identifier(name), sql.Literal(True)))
