"""Tests running servers: health, chat, two replicas on one database, and agents on a Letta server."""

import json
import signal
from collections.abc import Generator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from pathlib import Path

import anyio
import psycopg
import pytest
from psycopg import sql
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk.agents.host import Agent, NewAgent, only_agent
from frontdesk.app import App, open_app
from frontdesk.errors import Unavailable
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.journal.store import JournalQuery
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.lab import opened
from tests.requirements import shows
from tests.support.chat import SECONDS, Event, Person, kinds, script, somebody, stop_reasons, text_of
from tests.support.desk import STOP_SECONDS, Desk, frontdesk_here, open_desk
from tests.support.postgres import Postgres
from tests.support.serving import serve
from tests.support.wire import MODERN, Answer, call, curl, send

# Health: 200 while the server can serve, 503 while it cannot, open to everybody


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
    """Make a database close all connections, and refuse new ones."""
    gone = "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity WHERE datname = %s"
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(allow.format(sql.Identifier(name), sql.Literal(False)))
        connection.execute(gone, (GONE_MILLISECONDS, name))
        yield
        connection.execute(allow.format(sql.Identifier(name), sql.Literal(True)))


# Chat with one running server, and with two on one database


LONG = script({"text": "secret " * 500, "chunk_delay": 0.02})


async def furnished(data: Path, **settings: str) -> tuple[str, dict[str, str]]:
    """An agent, and keys of two people, in the database of the server to be started."""
    async with open_app(settings_with(FRONTDESK_DATA=data, **settings)) as app:
        agent = await app.host.create(NewAgent("Ada"))
        people = {
            user: (await app.identity.create_key(name="", agent_id=None, user_id=user))[1] for user in ("ann", "bob")
        }
    return agent.id, people


async def some(person: Person, session: str, tokens: int, after: str | None = None) -> list[Event]:
    """The first tokens of a stream, which the client then leaves."""
    events: list[Event] = []
    with anyio.fail_after(SECONDS):
        async with aclosing(person.stream(session, after)) as stream:
            async for event in stream:
                events.append(event)
                if sum(one["type"] == "token" for one in events) == tokens:
                    break
    return events


@shows("CHAT-CANCEL")
async def test_a_reply_outlives_its_reader_and_ends_when_it_is_cancelled_or_the_server_stops(tmp_path: Path) -> None:
    agent, people = await furnished(tmp_path / "data")
    with open_desk(tmp_path / "data") as desk:
        async with somebody(desk.url, people["ann"]) as ann, somebody(desk.url, people["bob"]) as bob:
            await read_in_parts_and_cancel(ann, bob, agent)
            session = await listen_until_it_stops(desk, ann, agent)
        assert desk.process.wait(STOP_SECONDS) == 0
        logged = desk.logged()
    assert "secret" not in logged
    assert "error" not in logged
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data")
    async with open_app(settings) as app, somebody(build_application(app), people["ann"]) as ann:
        assert await stop_reasons(ann, session) == ["interrupted"]
        await ann.say(session, script({"text": "here again"}))
        assert text_of(await ann.listen(session)) == "here again"


async def read_in_parts_and_cancel(ann: Person, bob: Person, agent: str) -> None:
    session = await ann.open(agent)
    await ann.say(session, LONG)
    events = await some(ann, session, 3)
    events += (await some(ann, session, 3, after=events[-1]["id"]))[1:]
    assert [int(event["id"].partition(":")[2]) for event in events[1:]] == [1, 2, 3, 4, 5, 6, 7]
    assert (await bob.post("/cancel", sessionId=session)).status_code == 404
    assert (await ann.post("/cancel", sessionId=session)).json()["cancelled"] is True
    assert await stop_reasons(ann, session) == ["cancelled"]
    told = await ann.listen(session)
    assert (told[-1]["type"], told[-1]["error"]) == ("error", "Stream cancelled by user")
    assert 6 <= len(text_of(told).split()) < 500


async def listen_until_it_stops(desk: Desk, ann: Person, agent: str) -> str:
    """One stream with events and one without; gives the session of the first."""
    busy, idle = await ann.open(agent), await ann.open(agent)
    heard: dict[str, list[Event]] = {busy: [], idle: []}
    connected = {busy: anyio.Event(), idle: anyio.Event()}

    async def listen(session: str) -> None:
        async for event in ann.stream(session):
            heard[session].append(event)
            connected[session].set()

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for session in (busy, idle):
                tasks.start_soon(listen, session)
                await connected[session].wait()
            await ann.say(busy, LONG)
            await some(ann, busy, 1)
            desk.process.send_signal(signal.SIGTERM)
    assert kinds(heard[busy]) == ["connected", "start", "token", "error"]
    assert kinds(heard[idle]) == ["connected"]
    return busy


@shows("CHAT-STREAM")
async def test_a_message_that_was_taken_outlives_a_kill_and_its_reader_is_told_that_the_reply_is_lost(
    tmp_path: Path,
) -> None:
    agent, people = await furnished(tmp_path / "data")
    with open_desk(tmp_path / "data") as desk:
        async with somebody(desk.url, people["ann"]) as ann:
            session, other = await ann.open(agent), await ann.open(agent)
            await ann.say(session, LONG)
            heard = await some(ann, session, 3)
            sent = await ann.post("/messages", sessionId=other, message=LONG)
            desk.kill()
    assert (sent.status_code, sent.json()["queued"]) == (200, False)
    with open_desk(tmp_path / "data") as desk:
        async with somebody(desk.url, people["ann"]) as ann:
            with anyio.fail_after(SECONDS):
                events = await ann.listen(session, heard[-1]["id"])
            assert kinds(events) == ["connected", "error"]
            assert (events[-1]["messageId"], events[-1]["stopReason"]) == (heard[-1]["messageId"], "interrupted")
            said = (await ann.get("/sessions", sessionId=other)).json()["messages"]
            assert said[0]["content"] == LONG


@shows("CHAT-REPLICAS")
async def test_a_message_to_one_replica_is_told_at_another_and_cancelled_from_either(
    tmp_path: Path, postgres: Postgres
) -> None:
    shared = {"FRONTDESK_DATABASE_URL": postgres.create_database()}
    agent, people = await furnished(tmp_path / "made", **shared)
    async with AsyncExitStack() as stack:
        desks = [stack.enter_context(open_desk(tmp_path / name, **shared)) for name in ("one", "two")]
        one, two = [await stack.enter_async_context(somebody(desk.url, people["ann"])) for desk in desks]
        bob = await stack.enter_async_context(somebody(desks[1].url, people["bob"]))
        session = await one.open(agent)
        first = await one.say(session, script({"text": "one two three ", "tool": "nothing"}, {"text": "four"}))
        second = await two.say(session, script({"text": "five"}))
        events = await two.listen(session)
        assert kinds(events) == [
            *("connected", "start", "token", "tool_call", "tool_result", "token", "end", "start", "token", "end")
        ]
        assert [event["messageId"] for event in events if event["type"] == "end"] == [first, second]
        assert text_of(events) == "one two three fourfive"
        for asked, told in ((one, two), (two, one)):
            await asked.say(session, LONG)
            part = await some(told, session, 2)
            assert (await bob.get("/stream", sessionId=session)).status_code == 404
            assert (await told.post("/cancel", sessionId=session)).json()["cancelled"] is True
            assert (await stop_reasons(asked, session))[-1] == "cancelled"
            rest = await told.listen(session, part[-1]["id"])
            assert rest[-1]["error"] == "Stream cancelled by user"
            assert [event["id"] for event in rest if event["id"] in {one["id"] for one in part[1:]}] == []


# Two servers on one PostgreSQL: each of them can answer, and limits are shared


CALLS_EACH = 8
REPLICA_SECONDS = 30


async def taking_turns(there: Desk, here: Settings, credential: Mapping[str, str]) -> list[int]:
    """The statuses from another server and from one in this process, once the journal has them all."""
    said, body = call(MODERN)
    said |= credential
    statuses: list[int] = []
    # The two share nothing but the database.
    async with open_app(here) as app:
        asgi = build_application(app)
        for _ in range(CALLS_EACH):
            statuses += [curl(there.mcp, said, body).status, (await send(asgi, said, body)).status]
        await app.journal.flush()
        with anyio.fail_after(REPLICA_SECONDS):
            while len(await app.journal.read(JournalQuery())) < len(statuses):
                await anyio.lowlevel.checkpoint()
    return statuses


@shows("RATE")
def test_a_key_made_anywhere_works_at_every_replica_and_its_rate_is_one(tmp_path: Path, postgres: Postgres) -> None:
    shared = {"FRONTDESK_DATABASE_URL": postgres.create_database(), "FRONTDESK_RATE_AGENT": "10/hour"}
    key = frontdesk_here("keys", "create", "--agent", "agent-1", data=tmp_path / "cli", **shared).stdout.strip()
    with open_desk(tmp_path / "there", **shared) as there:
        here = settings_with(FRONTDESK_DATA=tmp_path / "here", **shared)
        statuses = anyio.run(taking_turns, there, here, {"authorization": f"Bearer {key}"})
    assert statuses[:2] == [200, 200]
    assert statuses.count(200) == 10
    assert statuses.count(429) == 6
    rows = frontdesk_here("journal", "--limit", "100", "--as-json", data=tmp_path / "cli", **shared).stdout
    surfaces = [json.loads(row)["surface"] for row in rows.splitlines()]
    assert surfaces == ["cli", *["mcp"] * 16]


# Agents on a Letta server: a stand-in implements the part of its REST API that we use


AGENT = {"id": "agent-1", "name": "Support", "description": None}


async def retrieve(request: Request) -> JSONResponse:
    if request.headers.get("authorization") != "Bearer password":
        return JSONResponse({"detail": "Unauthorized"}, 401)
    if request.path_params["agent_id"] == "not-of-its-form":
        return JSONResponse({"detail": "Invalid agent ID format"}, 422)
    found = request.path_params["agent_id"] == AGENT["id"]
    return JSONResponse(AGENT) if found else JSONResponse({"detail": "Agent not found"}, 404)


async def listing(request: Request) -> JSONResponse:
    assert request.query_params["order"] == "asc"
    return JSONResponse([AGENT])


@pytest.fixture(scope="module")
def letta() -> Iterator[str]:
    app = Starlette(routes=[Route("/v1/agents/", listing), Route("/v1/agents/{agent_id}", retrieve)])
    with serve(app) as address:
        yield address


async def test_an_agent_is_found_or_is_not(letta: str, tmp_path: Path) -> None:
    async with opened(settings_with(FRONTDESK_DATA=tmp_path, LETTA_BASE_URL=letta, LETTA_API_KEY="password")) as host:
        assert await host.find("agent-1") == Agent("agent-1", "Support", "")
        assert await host.find("agent-2") is None
        assert await host.find("not-of-its-form") is None
        assert await only_agent(host) == "agent-1"


@pytest.mark.parametrize("case", ["wrong password", "not there"])
async def test_a_server_that_does_not_answer_says_what_to_check(letta: str, case: str, tmp_path: Path) -> None:
    url = letta if case == "wrong password" else "http://127.0.0.1:1"
    async with opened(settings_with(FRONTDESK_DATA=tmp_path, LETTA_BASE_URL=url, LETTA_API_KEY="wrong")) as host:
        with pytest.raises(Unavailable, match="LETTA_BASE_URL"):
            await host.find("agent-1")
