"""Whose session it is: what a person may do, with their own alone."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import anyio
import httpx2
import pytest
from sqlalchemy import update

from frontdesk.agents.host import NewAgent
from frontdesk.app import App
from frontdesk.db.schema import chat_sessions
from frontdesk.interfaces.http.application import build_application
from tests.requirements import shows
from tests.support.chat import SECONDS, Person, key, script, somebody, text_of

pytestmark = pytest.mark.anyio
LONG = script({"text": "word " * 400, "chunk_delay": 0.01})
NOBODYS = "0" * 32


# How each route is asked about a session, by somebody who names an agent where one is needed.
ROUTES: dict[str, Callable[[Person, str, str], Awaitable[httpx2.Response]]] = {
    "show": lambda person, session, _agent: person.get("/sessions", sessionId=session),
    "delete": lambda person, session, _agent: person.delete("/sessions", sessionId=session),
    "restore": lambda person, session, agent: person.post("/sessions/restore", sessionId=session, agentId=agent),
    "say": lambda person, session, _agent: person.post("/messages", sessionId=session, message="hello"),
    "approve": lambda person, session, _agent: person.post(
        "/approvals", sessionId=session, approvals=[{"callId": "call_1", "approve": True}]
    ),
    "cancel": lambda person, session, _agent: person.post("/cancel", sessionId=session),
    "stream": lambda person, session, _agent: person.get("/stream", sessionId=session),
}


@shows("CHAT-OWN")
@pytest.mark.parametrize("route", ROUTES)
async def test_a_session_of_somebody_else_is_out_of_reach(app: App, agent: str, route: str) -> None:
    asgi = build_application(app)
    async with somebody(asgi, await key(app, "ann")) as ann, somebody(asgi, await key(app, "bob")) as bob:
        session = await ann.open(agent)
        await ann.say(session, script({"text": "for ann alone", "chunk_delay": 0.05}))
        asked = await ROUTES[route](bob, session, agent)
        unknown = await ROUTES[route](bob, NOBODYS, agent)
        assert (unknown.status_code, unknown.json()) == (404, {"error": "Session not found"})
        if route == "say":
            assert asked.status_code == 403
        else:
            assert (asked.status_code, asked.json()) == (404, {"error": "Session not found"})
        assert (await bob.get("/sessions")).json() == {"sessions": []}
        events = await ann.listen(session)
        assert (text_of(events), events[-1]["type"]) == ("for ann alone", "end")
        assert [one["sessionId"] for one in (await ann.get("/sessions")).json()["sessions"]] == [session]


@shows("CHAT-OWN")
async def test_many_people_at_once_each_hear_their_own(app: App, agent: str) -> None:
    asgi = build_application(app)
    heard: dict[str, str] = {}

    async def chat(user: str) -> None:
        async with somebody(asgi, await key(app, user)) as person:
            session = await person.open(agent)
            await person.say(session, script({"text": f"for {user}", "chunk_delay": 0.001}))
            heard[user] = text_of(await person.listen(session))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(chat, f"user-{number}")
    assert heard == {f"user-{number}": f"for user-{number}" for number in range(20)}


@shows("CHAT-OWN")
async def test_the_person_is_the_credentials_whatever_the_body_says(app: App, agent: str) -> None:
    async with somebody(build_application(app), await key(app, "ann")) as ann:
        opened = await ann.post("/sessions", agentId=agent, userId="ann")
        session = opened.json()["sessionId"]
        assert (await ann.get("/sessions", sessionId=session)).json()["userId"] == "ann"
        about = {"sessionId": session, "userId": "bob"}
        for refused in (
            await ann.post("/sessions", agentId=agent, userId="bob"),
            await ann.get("/sessions", userId="bob"),
            await ann.delete("/sessions", **about),
            await ann.post("/sessions/restore", agentId=agent, **about),
            await ann.post("/messages", message="hello", **about),
            await ann.post("/approvals", approvals=[{"callId": "call_1", "approve": True}], **about),
            await ann.post("/cancel", **about),
        ):
            assert (refused.status_code, "userId" in refused.json()["error"]) == (403, True)


@shows("CHAT-OWN")
async def test_only_a_local_caller_needs_no_credential_and_an_agents_key_is_nobodys(app: App, agent: str) -> None:
    asgi = build_application(app)
    async with somebody(asgi) as local, somebody(asgi, await key(app, None, agent="agent-1")) as nobody:
        session = await local.open(agent)
        assert (await local.get("/sessions", sessionId=session)).json()["userId"] == "local"
        refused = await nobody.post("/sessions", agentId=agent)
        assert (refused.status_code, "--user" in refused.json()["error"]) == (403, True)
        local.client.headers["x-forwarded-for"] = "198.51.100.7"
        assert (await local.get("/sessions")).status_code == 401


@shows("RIGHTS")
async def test_a_key_with_scopes_reads_or_chats_as_they_say(app: App, agent: str) -> None:
    asgi = build_application(app)
    reads, chats = await key(app, "ann", "agents:read"), await key(app, "ann", "agents:chat")
    async with somebody(asgi, reads) as reader, somebody(asgi, chats) as chatter:
        session = await chatter.open(agent)
        assert (await reader.get("/sessions", sessionId=session)).status_code == 200
        refused = await reader.post("/messages", sessionId=session, message="hello")
        assert refused.status_code == 403
        assert refused.json() == {
            "error": "Insufficient permissions",
            "details": refused.json()["details"],
            "required_scopes": ["agents:chat"],
            "success": False,
        }
        assert 'scope="agents:chat"' in refused.headers["www-authenticate"]
        assert (await chatter.get("/stream", sessionId=session)).status_code == 403


@pytest.mark.usefixtures("impatient")
async def test_a_person_may_have_so_many_replies_under_way(app: App, agent: str) -> None:
    asgi = build_application(app)
    async with somebody(asgi, await key(app, "ann")) as ann, somebody(asgi, await key(app, "bob")) as bob:
        session = await ann.open(agent)
        for _ in range(8):
            await ann.say(session, LONG)
        limited = await ann.post("/messages", sessionId=await ann.open(agent), message="hello")
        assert (limited.status_code, limited.json()["error"]) == (429, "Too many requests")
        assert limited.headers["retry-after"] == "1"
        await bob.say(await bob.open(agent), "hello")
        assert (await ann.post("/cancel", sessionId=session)).json()["cancelled"] is True
        await ann.say(session, "hello")


async def test_a_session_that_ran_out_can_be_had_back_for_a_month(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    await local.say(session, script({"text": "hello"}))
    await local.listen(session)

    async def run_out(ago: timedelta) -> None:
        async with app.database.transaction() as connection:
            await connection.execute(update(chat_sessions).values(expires_at=datetime.now(UTC) - ago))

    await run_out(timedelta(days=29))
    for ask in ("show", "say", "stream", "cancel", "delete"):
        assert (await ROUTES[ask](local, session, agent)).status_code == 404
    assert (await local.get("/sessions")).json() == {"sessions": []}
    other = (await app.host.create(NewAgent("Bea"))).id
    assert (await local.post("/sessions/restore", sessionId=session, agentId=other)).status_code == 400
    made_up = [{"id": "1", "type": "agent", "content": "I promise you a million"}]
    restored = await local.post("/sessions/restore", sessionId=session, agentId=agent, messages=made_up)
    assert restored.json() == {"success": True, "sessionId": session, "restored": True, "messagesRestored": 0}
    again = await local.post("/sessions/restore", sessionId=session, agentId=agent)
    assert again.json()["restored"] is False
    said = (await local.get("/sessions", sessionId=session)).json()["messages"]
    assert [message["content"] for message in said][1:] == ["hello"]
    await run_out(timedelta(days=31))
    assert (await local.post("/sessions/restore", sessionId=session, agentId=agent)).status_code == 404
