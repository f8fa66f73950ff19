"""Tests what can be seen afterwards: journal, metrics, spans, logs, and changes from the command line."""

import json
import resource
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from psycopg import sql

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.operations import run_follow_up
from frontdesk.app import App, open_app, running
from frontdesk.errors import (
    ConfigurationError,
    FrontdeskError,
    Invalid,
    MissingAgentId,
    MissingScope,
    NotFound,
    PendingApproval,
    RateLimited,
    Unauthenticated,
    Unavailable,
    Unstorable,
)
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.service import outcome_of_error
from frontdesk.journal.store import JournalQuery
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import browsing, text_of
from tests.support.desk import frontdesk_here
from tests.support.postgres import Postgres, Ready
from tests.support.tool_servers import open_tool_server, tools
from tests.support.wire import MODERN, Answer, call, send

# The journal, the metrics, the spans and the log after calls


async def some_calls(app: App) -> None:
    asgi = build_application(app)
    said, body = call(MODERN)
    await send(asgi, said | {"x-agent-id": "agent-1", "x-request-id": "r-1"}, body)
    await send(asgi, said, call(MODERN, arguments={"agent_id": "agent-2"})[1])
    await send(asgi, said | {"x-agent-id": "agent-1"}, call(MODERN, arguments={"agent_id": "agent-2"})[1])
    await send(asgi, said | {"x-agent-id": "no!"}, body)
    await send(asgi, said | {"authorization": "Bearer wrong"}, body)


async def test_every_call_and_denial_leaves_one_row(app: App) -> None:
    await some_calls(app)
    await app.journal.flush()
    rows = [entry for _, entry in await app.journal.read(JournalQuery())]
    assert [(row.outcome, row.source, row.reason) for row in rows] == [
        (Outcome.OK, AgentIdSource.HEADER, None),
        (Outcome.OK, AgentIdSource.PARAMETER, None),
        (Outcome.REFUSED, AgentIdSource.HEADER, "AgentIdMismatch"),
        (Outcome.REFUSED, AgentIdSource.HEADER, "InvalidAgentId"),
        (Outcome.DENIED, AgentIdSource.NONE, "Unauthenticated"),
    ]
    assert (rows[0].agent_id, rows[0].request_id, rows[0].action) == ("agent-1", "r-1", "whoami")
    assert rows[-1].kind is EntryKind.DENIAL


async def test_what_is_refused_is_refused_at_every_endpoint(app: App) -> None:
    asgi = build_application(app)
    said, body = call(MODERN, "promptyoself_cancel", {"schedule_id": "4711", "agent_id": "agent-1"})
    told = json.loads((await send(asgi, said, body)).body)["result"]["structuredContent"]
    assert told == {"error": "Schedule 4711 not found or already cancelled"}
    missing = await send(asgi, {"x-agent-id": "agent-1"}, b"", path="/api/v1/schedules/4711", method="DELETE")
    assert missing.status == 404
    assert [(row.surface, row.outcome, row.reason) for row in app.journal._waiting] == [
        ("mcp", Outcome.REFUSED, "NotFound"),
        ("rest", Outcome.REFUSED, "NotFound"),
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unauthenticated(""), Outcome.DENIED),
        (MissingScope("tools:call"), Outcome.DENIED),
        (RateLimited("agent-1", 1), Outcome.LIMITED),
        (NotFound(""), Outcome.REFUSED),
        (Invalid(""), Outcome.REFUSED),
        (PendingApproval([]), Outcome.REFUSED),
        (MissingAgentId(), Outcome.REFUSED),
        (Unstorable(""), Outcome.REFUSED),
        (Unavailable(""), Outcome.FAILED),
        (ConfigurationError(""), Outcome.FAILED),
        (FrontdeskError(""), Outcome.FAILED),
        (ZeroDivisionError(), Outcome.FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_outcome_says_whose_fault_it_was(error: Exception, outcome: Outcome) -> None:
    assert outcome_of_error(error) is outcome


@shows("METRICS")
async def test_metrics_tell_header_from_parameter_and_count_what_went_wrong(app: App) -> None:
    await some_calls(app)
    shown = (await send(build_application(app), {}, b"", path="/metrics", method="GET")).body.decode()
    for line in (
        'frontdesk_agent_id_source_total{source="header",verified="false"} 3.0',
        'frontdesk_agent_id_source_total{source="parameter",verified="false"} 1.0',
        'frontdesk_refusals_total{reason="AgentIdMismatch",source="header"} 1.0',
        'frontdesk_refusals_total{reason="InvalidAgentId",source="header"} 1.0',
        'frontdesk_calls_total{action="whoami",outcome="ok",surface="mcp"} 2.0',
        'frontdesk_call_seconds_count{action="whoami",surface="mcp"} 4.0',
    ):
        assert line in shown


async def test_metrics_do_not_count_twice(app: App) -> None:
    await some_calls(app)
    app.journal.render_metrics()
    await app.journal.flush()
    await app.journal.flush()
    assert b'outcome="ok",surface="mcp"} 2.0' in app.journal.render_metrics()


async def test_a_callers_text_never_becomes_a_label(app: App) -> None:
    asgi = build_application(app)
    await send(asgi, call(MODERN, "made-up-tool")[0], call(MODERN, "made-up-tool")[1])
    await send(asgi, {"authorization": "Bearer x"}, b"", path="/made-up-path", method="GET")
    assert b"made-up" not in app.journal.render_metrics()


async def test_stopping_writes_what_is_left(tmp_path: Path) -> None:
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data")) as app:
        async with running(app):
            await some_calls(app)
        assert len(await app.journal.read(JournalQuery())) == 5


@pytest.mark.parametrize("beside", [{}, {"progressToken": 1}], ids=["straight", "by the SDK"])
async def test_a_span_says_who_called_and_belongs_to_the_callers_trace(
    app: App, monkeypatch: pytest.MonkeyPatch, beside: dict[str, object]
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("mcp.shared._otel._tracer", provider.get_tracer("test"))
    monkeypatch.setattr("frontdesk.interfaces.mcp.http.tracer", provider.get_tracer("test"))
    said, body = call(MODERN, meta=beside)
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    parent = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    await send(build_application(app), said | parent | {"x-agent-id": "agent-1", "x-request-id": "r-7"}, body)
    (span,) = [span for span in exporter.get_finished_spans() if span.name == "tools/call whoami"]
    assert span.attributes is not None
    assert span.attributes["frontdesk.agent_id"] == "agent-1"
    assert span.attributes["frontdesk.request_id"] == "r-7"
    assert span.kind is trace.SpanKind.SERVER
    assert span.context is not None
    assert format(span.context.trace_id, "032x") == trace_id


# Journal, first page, doctor and health report a failing turn, a failing server and a full disk


NOBODY_THERE = "http://127.0.0.1:1"


async def health(asgi: ASGIApp) -> Answer:
    return await send(asgi, {}, b"", path="/api/health", method="GET")


async def first_page(settings: Settings) -> str:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        return text_of(await web.get("/"))


def turns(data: Path) -> list[tuple[str, str, str | None]]:
    lines = frontdesk_here("journal", "--kind", "turn", "--json", data=data).stdout.splitlines()
    return [(row["surface"], row["outcome"], row["reason"]) for row in map(json.loads, lines)]


@shows("KEPT-10")
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


@shows("KEPT-10")
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


@shows("KEPT-10")
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


@shows("KEPT-10")
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


@shows("KEPT-10")
def test_doctor_says_that_it_asks_no_model_for_an_answer(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    away = {"FRONTDESK_MODEL": "openai:m", "OPENAI_BASE_URL": NOBODY_THERE, "OPENAI_API_KEY": "k"}
    assert "note: The model openai:m was not checked" in frontdesk_here("doctor", data=data, **away).stdout
    assert "was not checked" not in frontdesk_here("doctor", data=data).stdout


@shows("KEPT-10")
@pytest.mark.anyio
async def test_a_turn_that_a_tool_asked_for_is_in_the_journal(app: App) -> None:
    agent = await app.host.create(NewAgent("Clerk"))
    await run_follow_up(app.host, app.journal, Caller("req-1", agent.id), "Go on.")
    await app.journal.flush()
    [(_, row)] = await app.journal.read(JournalQuery(kind=EntryKind.TURN))
    assert (row.surface, row.outcome, row.agent_id, row.request_id) == ("follow-up", Outcome.OK, agent.id, "req-1")


@contextmanager
def a_full_disk(app: App) -> Generator[None]:
    """No file can grow any more, as on a full disk."""
    log = Path(f"{app.database.url.database}-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(log.stat().st_size, 1), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@shows("KEPT-10")
@pytest.mark.anyio
async def test_health_says_that_a_full_disk_takes_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.db.engine.CHECK_VALID_SECONDS", 0)
    asgi = build_application(app)
    assert (await health(asgi)).json["parts"] == {"database": "ok"}
    with a_full_disk(app):
        full = await health(asgi)
    assert (full.status, full.json["parts"]) == (503, {"database": "unavailable"})
    assert (await health(asgi)).status == 200


@shows("KEPT-10")
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
    """As on a read-only replica, or with a file that is write-protected."""
    if app.database.in_place_writer is not None:
        query_only = "PRAGMA query_only={}"
        await app.database.write(lambda one: one.exec_driver_sql(query_only.format("ON")), small=True)
        yield
        # This fails outside of a write transaction, which cannot begin.
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


@shows("KEPT-10")
@pytest.mark.anyio
async def test_what_a_check_of_writing_found_is_kept_for_a_moment(app: App) -> None:
    asgi = build_application(app)
    for _ in range(5):
        assert (await health(asgi)).status == 200
    assert app.database.write_check.number == 1


# The journal has every change from the command line, and no secret


NOWHERE = "http://127.0.0.1:1/mcp"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def rows(data: Path) -> list[dict[str, Any]]:
    told = frontdesk_here("journal", "--json", data=data)
    return [json.loads(line) for line in told.stdout.splitlines()]


def told(data: Path) -> list[tuple[str, str, str | None, str | None]]:
    assert {row["surface"] for row in rows(data)} == {"cli"}
    return [(row["action"], row["outcome"], row["agent_id"], row["user_id"]) for row in rows(data)]


def test_every_change_of_a_key_is_in_the_journal_without_its_secret(data: Path) -> None:
    made = frontdesk_here("keys", "create", "--agent", "ada", "--user", "ann", data=data).stdout.strip()
    first = made.split("_")[1]
    rotated = frontdesk_here("keys", "rotate", first, data=data).stdout.strip()
    second = rotated.split("_")[1]
    frontdesk_here("keys", "revoke", first, data=data)
    frontdesk_here("keys", "revoke", rotated, data=data)
    frontdesk_here("keys", "list", data=data)
    assert told(data) == [
        (f"keys create {first}", "ok", "ada", "ann"),
        (f"keys rotate {first} {second}", "ok", "ada", "ann"),
        (f"keys revoke {first}", "ok", None, None),
        ("keys revoke", "refused", None, None),
    ]
    secrets = [text.rpartition("_")[2] for text in (made, rotated)]
    assert not any(secret in json.dumps(rows(data)) for secret in secrets)


def test_every_change_of_an_agent_is_in_the_journal(data: Path) -> None:
    agent = frontdesk_here("agents", "create", "Ada", data=data).stdout.strip()
    for arguments in (("block", "Ada", "human", "Likes tea"), ("block", "Ada", "human"), ("show", "Ada"), ("list",)):
        assert frontdesk_here("agents", *arguments, data=data).returncode == 0
    frontdesk_here("agents", "attach", "Ada", "shop", "send", data=data)
    frontdesk_here("agents", "detach", "Ada", "send", data=data)
    frontdesk_here("agents", "delete", "Ada", "--yes", data=data)
    assert told(data) == [
        ("agents create", "ok", agent, None),
        ("agents block human", "ok", agent, None),
        ("agents attach shop::send", "refused", agent, None),
        ("agents detach send", "refused", agent, None),
        ("agents delete", "ok", agent, None),
    ]
    assert "tea" not in json.dumps(rows(data))


def test_every_change_of_tools_and_rights_is_in_the_journal(data: Path) -> None:
    def tools(*arguments: str) -> None:
        frontdesk_here("tools", *arguments, data=data, FRONTDESK_EMBEDDINGS="off")

    tools("add", "shop", NOWHERE, "--force", "--header", "authorization: hush")
    tools("rights", "deny", "user:ann", "shop::*")
    tools("rights")
    tools("list")
    tools("forget", "--user", "ann")
    tools("refresh", "shop")
    tools("remove", "shop")
    tools("remove", "shop")
    assert told(data) == [
        ("tools add shop", "ok", None, None),
        ("tools rights deny user:ann shop::*", "ok", None, None),
        ("tools forget", "ok", None, "ann"),
        ("tools refresh shop", "ok", None, None),
        ("tools remove shop", "ok", None, None),
        ("tools remove shop", "refused", None, None),
    ]
    assert "hush" not in json.dumps(rows(data))


def test_an_attempt_to_connect_with_letta_is_in_the_journal(data: Path) -> None:
    refused = frontdesk_here("letta", "connect", "Ada", "--url", "https://user:hush@desk.example/mcp", data=data)
    assert (refused.returncode, "LETTA_BASE_URL" in refused.stderr) == (2, True)
    assert [(row["action"], row["reason"]) for row in rows(data)] == [("letta connect", "ConfigurationError")]
