"""Chat with a running server, and with two of them on one database."""

import signal
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import anyio
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import SECONDS, Event, Person, kinds, script, somebody, stop_reasons, text_of
from tests.support.desk import STOP_SECONDS, Desk, open_desk
from tests.support.postgres import Postgres

pytestmark = pytest.mark.anyio
LONG = script({"text": "secret " * 500, "chunk_delay": 0.02})


async def furnished(data: Path, **settings: str) -> tuple[str, dict[str, str]]:
    """An agent, and keys of two people, in the database that a server will be started on."""
    async with open_app(settings_with(FRONTDESK_DATA=data, **settings)) as app:
        agent = await app.host.create(NewAgent("Ada"))
        people = {
            user: (await app.identity.create_key(name="", agent_id=None, user_id=user))[1] for user in ("ann", "bob")
        }
    return agent.id, people


async def some(person: Person, session: str, tokens: int, after: str | None = None) -> list[Event]:
    """The first tokens of a stream, which is then left."""
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
    """One stream with something to tell and one without; the session of the first."""
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
