"""Tests kill -9 during journal writes and turns: rows and conversations stay whole."""

import json
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from subprocess import PIPE, Popen
from urllib.parse import urlsplit

import anyio
import psycopg
import pytest

from frontdesk.app import open_app
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome
from frontdesk.llm.events import Done, StopReason, TextChunk, ToolCall, ToolReturn, ToolStatus, UserText
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.lab import CALLER, of_kind, said, script, take
from tests.requirements import shows
from tests.support.desk import ROOT, Desk, clean_environment, frontdesk_here, open_desk
from tests.support.postgres import Postgres
from tests.support.waiting import comes_true
from tests.support.wire import MODERN, call

# kill -9 during journal writes: whole rows, in order, and nothing that was visible is lost


# The second server starts from what the first left behind when it was killed.
ROUNDS = 2
CALLS_BEFORE_KILL = 300
SECONDS = 60
POLL_SECONDS = 0.01
BATCH = 50
MOST_BATCHES = 2_000
ROWS = """SELECT request_id, agent_id, action, outcome, source, duration_us FROM journal
WHERE surface = 'mcp' ORDER BY id"""
OTHERS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""

Row = tuple[object, ...]


def hammer(desk: Desk, acknowledged: list[str], prefix: str, enough: threading.Event) -> None:
    """Call until the server is gone; gives its answers, in order."""
    said, body = call(MODERN)
    with closing(HTTPConnection(urlsplit(desk.url).netloc, timeout=SECONDS)) as connection:
        try:
            for number in range(100_000):
                name = f"{prefix}-{number}"
                connection.request("POST", "/mcp", body, said | {"x-agent-id": "agent-1", "x-request-id": name})
                connection.getresponse().read()
                acknowledged.append(name)
                if number == CALLS_BEFORE_KILL:
                    enough.set()
        except (OSError, HTTPException):  # the kill may come between an answer's head and its body
            enough.set()


def kill_while_writing(desk: Desk, prefix: str, rows: Callable[[], list[Row]]) -> list[str]:
    """Kill the server between two answers, when it has stored some of this round's; gives its answers."""
    acknowledged: list[str] = []
    enough = threading.Event()
    before = len(rows())
    caller = threading.Thread(target=hammer, args=(desk, acknowledged, prefix, enough))
    caller.start()
    assert enough.wait(SECONDS)
    stored = comes_true(lambda: len(rows()) > before, SECONDS, POLL_SECONDS)
    desk.kill()
    caller.join(SECONDS)
    assert stored, "this round stored something before it was killed"
    return acknowledged


def check(rows: list[Row], acknowledged: list[str], seen: list[str]) -> list[str]:
    """The stored ids, after the check that they are whole and that only the end of this round's is missing."""
    assert all(row[1:5] == ("agent-1", "whoami", "ok", "header") and isinstance(row[5], int) for row in rows)
    stored = [str(row[0]) for row in rows]
    assert stored[: len(seen)] == seen, "what was stored before is still there, in order"
    kept = stored[len(seen) :]
    # The server may have stored a call whose answer the kill cut off: one more than the test knows.
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
    settings = settings_with(FRONTDESK_DATA=data, **shared)
    seen: list[str] = []
    for number in range(ROUNDS):
        with open_desk(data, **shared) as desk:
            acknowledged = kill_while_writing(desk, f"round{number}", lambda: stored_rows(settings))
        seen = check(settled_rows(settings), acknowledged, seen)
    shown = frontdesk_here("journal", "--limit", "10000", "--as-json", data=data, **shared)
    told = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [row["request_id"] for row in told if row["surface"] == "mcp"] == seen


def stored_rows(settings: Settings) -> list[Row]:
    """What another connection to the database sees at this moment."""
    if settings.database_url is not None:
        with psycopg.connect(settings.database_url.get_secret_value()) as connection:
            return connection.execute(ROWS).fetchall()
    with closing(sqlite3.connect(settings.data / "frontdesk.db", timeout=SECONDS)) as connection:
        return connection.execute(ROWS).fetchall()


def settled_rows(settings: Settings) -> list[Row]:
    """What a killed server has left in the database for good."""
    if settings.database_url is None:
        with closing(sqlite3.connect(settings.data / "frontdesk.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    else:
        # PostgreSQL finishes the last statement, though the client is gone.
        with psycopg.connect(settings.database_url.get_secret_value(), autocommit=True) as connection:
            assert comes_true(lambda: connection.execute(OTHERS).fetchone() == (0,), SECONDS, POLL_SECONDS)
    return stored_rows(settings)


@shows("JOURNAL-KILL")
@pytest.mark.anyio
async def test_a_reader_only_ever_sees_whole_batches(settings: Settings) -> None:
    counts: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            rows = stored_rows(settings)
            assert all(row[5] is not None and row[2] == "whoami" for row in rows)
            counts.append(len(rows))

    recorded = JournalEntry(
        datetime.now(UTC), EntryKind.CALL, "mcp", "whoami", Outcome.OK, duration_us=1, request_id="r"
    )
    async with open_app(settings) as app:
        reader = threading.Thread(target=read)
        reader.start()
        batches = 0
        while len(set(counts)) < 4 and batches < MOST_BATCHES:
            for _ in range(BATCH):
                app.journal.record(recorded)
            await app.journal.flush()
            batches += 1
        done.set()
        await anyio.to_thread.run_sync(reader.join, SECONDS)
    assert not reader.is_alive()
    assert counts == sorted(counts)
    assert len(set(counts)) >= 4, "it read while there was writing"
    assert {count % BATCH for count in counts} == {0}


# kill -9 during a turn: the conversation is whole, the turn is marked, and nothing is repeated


# Takes a turn with a tool that leaves a mark each time it runs, and prints each event as it comes.
PROGRAM = """
import anyio, sys, json
from contextlib import aclosing
from pathlib import Path
from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.settings import Settings

marks, text = Path(sys.argv[1]), sys.argv[2]

async def mark(arguments):
    with marks.open("a") as file:
        file.write("ran\\n")
    seconds = arguments.get("seconds", 0)
    print(f"ran for {seconds}", flush=True)
    await anyio.sleep(seconds)
    return ToolOutcome("marked")

async def main():
    async with open_app(Settings.read()) as app:
        agent = await app.host.create(NewAgent("Ada"))
        print(agent.id, flush=True)
        tool = Tool("mark", "", {"type": "object", "properties": {}}, mark)
        async with aclosing(app.host.send(Prompt(agent.id, Caller("r"), text, tools=[tool]))) as events:
            async for event in events:
                print(type(event).__name__, flush=True)

anyio.run(main)
"""


def killed_at(moment: str, text: str, marks: Path, environment: dict[str, str]) -> str:
    """The agent whose turn was killed as soon as it printed `moment`."""
    command = [sys.executable, "-c", PROGRAM, str(marks), text]
    with Popen(command, env=environment | {"PYTHONPATH": str(ROOT)}, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        agent = process.stdout.readline().strip()
        for line in process.stdout:
            if line.strip() == moment:
                break
        process.kill()
        process.wait(SECONDS)
    return agent


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    shared: dict[str, str] = {}
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        shared["FRONTDESK_DATABASE_URL"] = server.create_database()
    return {"FRONTDESK_DATA": str(tmp_path / "data"), **shared}


@shows("TURN-KILL")
async def test_a_kill_while_the_model_speaks(place: dict[str, str], tmp_path: Path) -> None:
    text = script({"text": "word " * 500, "chunk_delay": 0.02})
    agent = killed_at("TextChunk", text, tmp_path / "marks", clean_environment(**place))
    async with open_app(_settings(place)) as app:
        told = [one.event for one in await app.host.history(agent)]
        assert told == [UserText(text), Done(StopReason.INTERRUPTED)]
        assert said(await take(app.host, agent, script({"text": "here again"}))) == "here again"
        told = [one.event for one in await app.host.history(agent)]
        assert [event.stop for event in of_kind(told, Done)] == [StopReason.INTERRUPTED, StopReason.END_TURN]


@shows("TURN-KILL")
async def test_a_kill_while_a_tool_runs(place: dict[str, str], tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    text = script({"tool": "mark", "args": {}}, {"tool": "mark", "args": {"seconds": 60}}, {"text": "done"})
    agent = killed_at("ran for 60", text, marks, clean_environment(**place))
    async with open_app(_settings(place)) as app:
        told = [one.event for one in await app.host.history(agent)]
        calls, answers = of_kind(told, ToolCall), of_kind(told, ToolReturn)
        assert len(calls) == 2
        assert [answer.status for answer in answers] == [ToolStatus.OK, ToolStatus.INTERRUPTED]
        assert told[-1] == Done(StopReason.INTERRUPTED)
        events = await take(app.host, agent, script({"text": "what now"}))
        assert said(events) == "what now"
        told = [one.event for one in await app.host.history(agent)]
        assert len(of_kind(told, ToolCall)) == 2, "no call was made up or repeated"
        assert of_kind(told, TextChunk) == [TextChunk("what now")]
    assert marks.read_text() == "ran\n" * 2, "the tool did not run again"


@shows("TURN-KILL")
async def test_a_kill_between_two_rounds_leaves_the_first_whole(place: dict[str, str], tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    text = script({"tool": "mark", "args": {}}, {"text": "word " * 500, "chunk_delay": 0.02})
    agent = killed_at("TextChunk", text, marks, clean_environment(**place))
    async with open_app(_settings(place)) as app:
        told = [one.event for one in await app.host.history(agent)]
        assert [back.status for back in of_kind(told, ToolReturn)] == [ToolStatus.OK]
        assert told[-1] == Done(StopReason.INTERRUPTED)
        assert said(await take(app.host, agent, script({"text": "on we go"}), caller=CALLER)) == "on we go"
    assert marks.read_text() == "ran\n"


def _settings(place: dict[str, str]) -> Settings:
    return settings_with(**place)
