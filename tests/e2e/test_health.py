"""Health: 200 while the server can serve, 503 while it cannot, open to everybody."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.support.desk import Desk, open_desk
from tests.support.postgres import Postgres
from tests.support.wire import MODERN, call, curl


def test_a_healthy_server_says_so(desk: Desk) -> None:
    assert _get(desk) == (200, {"status": "ok", "version": "0.1.0", "parts": {"database": "ok"}})


def test_a_server_without_its_database_says_so_and_recovers(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.create_database()
    name = url.rpartition("?")[0].rpartition("/")[2]
    with open_desk(tmp_path / "data", FRONTDESK_DATABASE_URL=url) as desk:
        assert _get(desk)[0] == 200
        _rename(postgres, name, "away")
        status, body = _get(desk)
        assert status == 503
        assert body["parts"] == {"database": "unavailable"}
        said, frame = call(MODERN)
        assert curl(desk.mcp, said | {"x-agent-id": "agent-1"}, frame).status == 200, "identity needs no database here"
        _rename(postgres, "away", name)
        assert _get(desk)[0] == 200


def _rename(postgres: Postgres, old: str, new: str) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (old,))
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(old), sql.Identifier(new)))


def _get(desk: Desk) -> tuple[int, dict[str, object]]:
    with closing(HTTPConnection(urlsplit(desk.url).netloc, timeout=20)) as connection:
        connection.request("GET", "/api/health")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
