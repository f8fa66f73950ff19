"""kill -9 in the middle of journal writes: whole rows, in order, nothing that was seen is lost."""

import json
import sqlite3
import threading
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.requirements import shows
from tests.support.desk import Desk, frontdesk, open_desk
from tests.support.postgres import Postgres
from tests.support.wire import MODERN, call

ROUNDS = 4
CALLS_BEFORE_KILL = 600
ROWS = "SELECT request_id, agent_id, action, outcome, source, duration_us FROM journal ORDER BY id"


def hammer(desk: Desk, acknowledged: list[str], prefix: str, enough: threading.Event) -> None:
    """Call until the server is gone; note what it answered, in order."""
    said, body = call(MODERN)
    with closing(HTTPConnection(urlsplit(desk.url).netloc, timeout=20)) as connection:
        try:
            for number in range(100_000):
                name = f"{prefix}-{number}"
                connection.request("POST", "/mcp", body, said | {"x-agent-id": "agent-1", "x-request-id": name})
                connection.getresponse().read()
                acknowledged.append(name)
                if number == CALLS_BEFORE_KILL:
                    enough.set()
        except (OSError, HTTPException):  # the kill may fall between an answer's head and its body
            enough.set()


def kill_while_writing(desk: Desk, prefix: str) -> list[str]:
    acknowledged: list[str] = []
    enough = threading.Event()
    caller = threading.Thread(target=hammer, args=(desk, acknowledged, prefix, enough))
    caller.start()
    assert enough.wait(60)
    desk.kill()
    caller.join(60)
    return acknowledged


def check(rows: list[tuple[object, ...]], acknowledged: list[str], seen: list[str]) -> list[str]:
    """The stored ids of this round, after making sure that they are whole and that only the tail is missing."""
    assert all(row[1:5] == ("agent-1", "whoami", "ok", "header") and isinstance(row[5], int) for row in rows)
    stored = [str(row[0]) for row in rows]
    kept = [name for name in stored if name not in set(seen)]
    assert stored[: len(seen)] == seen, "what was stored before is still there, in order"
    # The server may have stored a call whose answer the kill cut off: one more than we know of.
    assert kept[: len(acknowledged)] == acknowledged[: len(kept)], "what is missing is the end, and only that"
    return stored


@shows("JOURNAL-KILL")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_server_loses_at_most_what_was_not_yet_written(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data = tmp_path / "data"
    shared: dict[str, str] = {}
    if kind == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        shared = {"FRONTDESK_DATABASE_URL": server.create_database()}
    seen: list[str] = []
    for number in range(ROUNDS):
        with open_desk(data, **shared) as desk:
            acknowledged = kill_while_writing(desk, f"round{number}")
        seen = check(_rows(data, shared.get("FRONTDESK_DATABASE_URL")), acknowledged, seen)
    assert len(seen) >= ROUNDS, "every round stored something before it was killed"
    shown = frontdesk("journal", "--limit", "10000", "--as-json", data=data, **shared)
    assert [json.loads(line)["request_id"] for line in shown.stdout.splitlines()] == seen


def _rows(data: Path, url: str | None) -> list[tuple[object, ...]]:
    if url is not None:
        with psycopg.connect(url) as connection:
            return connection.execute(ROWS).fetchall()
    with sqlite3.connect(data / "frontdesk.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute(ROWS).fetchall()


@shows("JOURNAL-KILL")
def test_a_reader_only_ever_sees_whole_batches(tmp_path: Path) -> None:
    data = tmp_path / "data"
    counts: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            rows = _rows(data, None)
            assert all(row[5] is not None and row[2] == "whoami" for row in rows)
            counts.append(len(rows))

    with open_desk(data) as desk:
        reader = threading.Thread(target=read)
        reader.start()
        acknowledged = kill_while_writing(desk, "r")
        done.set()
        reader.join(60)
    assert counts == sorted(counts)
    assert len(counts) > 1
    assert len(acknowledged) >= CALLS_BEFORE_KILL
