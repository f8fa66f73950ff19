"""Journal, first page, doctor and health say what is: a turn that fails, a server that fails, a disk that is full."""

import json
import resource
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import psycopg
import pytest
from psycopg import sql

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.operations import run_follow_up
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import frontdesk_here
from tests.support.pages import browsing, text_of
from tests.support.postgres import Postgres
from tests.support.ready import Ready
from tests.support.tool_servers import open_tool_server, tools
from tests.support.wire import Answer, send

pytestmark = shows("KEPT-10")
NOBODY_THERE = "http://127.0.0.1:1"


async def health(asgi: ASGIApp) -> Answer:
    return await send(asgi, {}, b"", path="/api/health", method="GET")


async def first_page(settings: Settings) -> str:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        return text_of(await web.get("/"))


def turns(data: Path) -> list[tuple[str, str, str | None]]:
    lines = frontdesk_here("journal", "--kind", "turn", "--json", data=data).stdout.splitlines()
    return [(row["surface"], row["outcome"], row["reason"]) for row in map(json.loads, lines)]


def test_a_turn_that_fails_in_the_terminal_is_in_the_journal_and_on_the_first_page(
    tmp_path: Path, ready: Ready
) -> None:
    data = ready.in_folder(tmp_path / "data")
    assert frontdesk_here("agents", "create", "Clerk", data=data).returncode == 0
    assert frontdesk_here("chat", "Clerk", "--message", "hello", data=data, FRONTDESK_MODEL="offline").returncode == 0
    away = {"FRONTDESK_MODEL": "m", "OPENAI_BASE_URL": NOBODY_THERE, "OPENAI_API_KEY": "k"}
    assert frontdesk_here("chat", "Clerk", "--message", "hello", data=data, **away).returncode == 1
    assert turns(data) == [("cli", "ok", None), ("cli", "failed", "error")]
    page = anyio.run(first_page, settings_with(FRONTDESK_DATA=data))
    assert "All is well." not in page
    assert "1 call failed in the last hour." in page


def test_doctor_says_which_tool_servers_fail(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    with open_tool_server("rival", tools(["search"])) as server:
        assert frontdesk_here("tools", "add", "rival", server.url, data=data).returncode == 0
        well = frontdesk_here("doctor", data=data)
        server.refuses = "out of order"
        named = f'[{{"name": "away", "url": "{NOBODY_THERE}/mcp?key=hunter2"}}]'
        done = frontdesk_here("doctor", data=data, FRONTDESK_MCP_SERVERS=named)
    assert (well.returncode, well.stdout.splitlines()[-1]) == (0, "All is well.")
    assert done.returncode == 1
    first, second = [line for line in done.stdout.splitlines() if line.startswith("wrong: ")]
    assert first.startswith("wrong: tool server away: MCP server 'away' at http://127.0.0.1:1/mcp does not answer")
    assert second.startswith("wrong: tool server rival: ")
    assert second.endswith("out of order")
    assert "hunter2" not in done.stdout + done.stderr


def test_doctor_changes_nothing_of_what_is_known_of_a_tool_server(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    with open_tool_server("rival", tools(["search"])) as server:
        assert frontdesk_here("tools", "add", "rival", server.url, data=data).returncode == 0
        before = frontdesk_here("tools", "servers", "--json", data=data).stdout
        server.tools = tools(["search", "other"])
        assert frontdesk_here("doctor", data=data).returncode == 0
        server.refuses = "out of order"
        assert frontdesk_here("doctor", data=data).returncode == 1
    assert frontdesk_here("tools", "servers", "--json", data=data).stdout == before


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FRONTDESK_TOOLS_MANIFEST": "{}.json"}, "The tools manifest {}.json cannot be read"),
        (
            {"FRONTDESK_EMBEDDINGS": f"{NOBODY_THERE}/v1", "FRONTDESK_EMBEDDINGS_MODEL": "m"},
            "The embeddings API at 127.0.0.1:1 does not answer",
        ),
    ],
)
def test_doctor_says_what_else_fails_that_tools_are_found_by(
    tmp_path: Path, ready: Ready, settings: dict[str, str], said: str
) -> None:
    data = ready.in_folder(tmp_path / "data")
    given = {name: value.format(tmp_path / "none") for name, value in settings.items()}
    done = frontdesk_here("doctor", "--json", data=data, **given)
    assert done.returncode == 1
    [wrong] = json.loads(done.stdout)["wrong"]
    assert wrong.startswith(said.format(tmp_path / "none"))


def test_doctor_says_that_it_asks_no_model_for_an_answer(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    away = {"FRONTDESK_MODEL": "openai:m", "OPENAI_BASE_URL": NOBODY_THERE, "OPENAI_API_KEY": "k"}
    assert "note: The model openai:m was not checked" in frontdesk_here("doctor", data=data, **away).stdout
    assert "was not checked" not in frontdesk_here("doctor", data=data).stdout


@pytest.mark.anyio
async def test_a_turn_that_a_tool_asked_for_is_in_the_journal(app: App) -> None:
    agent = await app.host.create(NewAgent("Clerk"))
    await run_follow_up(app.host, app.journal, Caller("req-1", agent.id), "Go on.")
    await app.journal.flush()
    [(_, row)] = await app.journal.read(JournalQuery(kind=EntryKind.TURN))
    assert (row.surface, row.outcome, row.agent_id, row.request_id) == ("follow-up", Outcome.OK, agent.id, "req-1")


@contextmanager
def a_full_disk(app: App) -> Generator[None]:
    """No file may grow from here on, which is how a disk without room looks."""
    log = Path(f"{app.database.url.database}-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(log.stat().st_size, 1), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.anyio
async def test_health_says_that_a_full_disk_takes_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.db.engine.CHECK_VALID_SECONDS", 0)
    asgi = build_application(app)
    assert (await health(asgi)).json["parts"] == {"database": "ok"}
    with a_full_disk(app):
        full = await health(asgi)
    assert (full.status, full.json["parts"]) == (503, {"database": "unavailable"})
    assert (await health(asgi)).status == 200


@pytest.mark.anyio
async def test_a_database_that_takes_no_write_is_said_at_health_and_on_the_first_page(
    settings: Settings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.db.engine.CHECK_VALID_SECONDS", 0)
    async with open_app(settings) as app:
        asgi = build_application(app)
        assert (await health(asgi)).status == 200
        async with read_only(app, request):
            assert (await health(asgi)).status == 503
            async with browsing(asgi) as web:
                page = text_of(await web.get("/"))
        assert "The database cannot be written to: " in page
        assert "read" in page
        assert "All is well." not in page
        assert (await health(asgi)).status == 200


@asynccontextmanager
async def read_only(app: App, request: pytest.FixtureRequest) -> AsyncGenerator[None]:
    """As a replica that only follows, or a file that may not be written to."""
    if app.database.in_place_writer is not None:
        query_only = "PRAGMA query_only={}"
        await app.database.write(lambda one: one.exec_driver_sql(query_only.format("ON")), small=True)
        yield
        # Outside of a transaction that writes, which there is no beginning.
        with app.database.in_place_writer._engine.connect() as connection:
            connection.exec_driver_sql(query_only.format("OFF"))
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = sql.Identifier(str(app.database.url.database))
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        await app.database.engine.dispose()
        yield
        connection.execute(sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))
        await app.database.engine.dispose()


@pytest.mark.anyio
async def test_what_a_check_of_writing_found_is_kept_for_a_moment(app: App) -> None:
    asgi = build_application(app)
    for _ in range(5):
        assert (await health(asgi)).status == 200
    assert app.database.write_check.number == 1
