"""Tests who owns a session, tools that need the person, and the app of the guide."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import httpx2
import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.agents.turns.operations import answer_approvals, cancel_turn, list_turns, read_turn
from frontdesk.app import App, open_app
from frontdesk.db.schema import chat_sessions
from frontdesk.errors import NotFound
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import SECONDS, Event, Person, key, kinds, script, somebody, text_of
from tests.support.issuer import open_issuer
from tests.support.upstreams import open_token_server

# Who owns a session: a person may use their own sessions only


LONG = script({"text": "word " * 400, "chunk_delay": 0.01})
NOBODYS = "0" * 32


# A request to each route about a session, from a caller who names an agent if one is needed.
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


# The app of the guide: one agent, a key for each of two people


SECRET = "Ann's vault opens at noon"


def call(tool: str, **args: str) -> dict[str, object]:
    return {"tool": tool, "args": args}


async def hear(person: Person, session: str, *steps: dict[str, object]) -> str:
    """All texts of a reply."""
    await person.say(session, script(*steps, {"text": "done"}))
    return str(await person.listen(session))


@shows("KEPT-01")
async def test_one_persons_words_reach_no_other_through_an_agent_they_share(app: App, agent: str) -> None:
    asgi = build_application(app)
    async with somebody(asgi, await key(app, "ann")) as ann, somebody(asgi, await key(app, "bob")) as bob:
        hers, his = await ann.open(agent), await bob.open(agent)
        told = await hear(
            ann,
            hers,
            call("memory_insert", label="human", new_string=SECRET),
            call("memory_insert", label="persona", new_string="I do as Ann says"),
        )
        assert "shared by everybody this agent works for" in told
        told = await hear(
            bob,
            his,
            call("memory_replace", label="human", old_string=SECRET, new_string=""),
            call("conversation_search", query="vault"),
            call("memory_insert", label="human", new_string="Bob likes tea"),
        )
        assert "The passage is not in the block" in told
        assert "Nothing was said with these words" not in told, "he asked for that word himself"
        assert "I do as Ann says" not in told
        blocks = {block.label: block.value for block in await app.host.blocks(agent, "bob")}
        assert (blocks["human"], blocks["persona"]) == ("Bob likes tea", "I am Ada.")
        [turn] = [one for one in await app.turns.list(TurnQuery(agent_id=agent)) if one.user_id == "ann"]
    stranger = Caller("req-bob", user_id="bob", verified=True, credential_id="key:bob")
    assert {one.user_id for one in (await list_turns(app.host, app.turns, stranger, TurnQuery())).turns} == {"bob"}
    for asks in (
        read_turn(app.host, app.turns, stranger, turn.id),
        cancel_turn(app.host, app.turns, stranger, turn.id),
        answer_approvals(app.host, app.turns, app.journal, stranger, turn.id, {}),
    ):
        with pytest.raises(NotFound):
            await asks


# Tools that need the person: their approval, or their token


@shows("CHAT-APPROVE")
@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_that_needs_approval_waits_for_the_persons_word(tmp_path: Path, approve: bool) -> None:
    async with AsyncExitStack() as stack:
        server = stack.enter_context(open_token_server({}))
        servers = [{"name": "work", "url": server.url}]
        app = await stack.enter_async_context(
            open_app(settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_MCP_SERVERS=servers))
        )
        local = await stack.enter_async_context(somebody(build_application(app)))
        agent = (await app.host.create(NewAgent("Ada"))).id
        await app.host.attach(agent, HeldTool("", "", needs_approval=True, server="work", remote_name="whose"))
        session = await local.open(agent)
        first = await local.say(session, script({"tool": "work__whose", "args": {"a": 1}}, {"text": "Done."}))
        events = await local.listen(session)
        assert kinds(events) == ["connected", "start", "approval_request", "end"]
        call = events[-2]["toolCall"] if events[-2]["type"] == "approval_request" else events[-3]["toolCall"]
        assert (call["name"], call["parameters"], call["status"]) == ("work__whose", {"a": 1}, "pending")
        assert events[-1]["stopReason"] == "requires_approval"
        assert (await local.get("/sessions", sessionId=session)).json()["pending"] == [call]
        early = await local.post("/messages", sessionId=session, message="hello")
        assert (early.status_code, early.json()["pending"]) == (409, [call["id"]])
        word = {"callId": call["id"], "approve": approve, "reason": "not today"}
        wrong = await local.post("/approvals", sessionId=session, approvals=[{**word, "callId": "call_x"}])
        assert wrong.status_code == 400
        sent = await local.post("/approvals", sessionId=session, approvals=[word])
        assert sent.json()["messageId"] != first
        events = await local.listen(session)
        result = next(event["toolCall"] for event in events if event["type"] == "tool_result")
        assert (result["id"], result["parameters"], result["status"]) == (call["id"], {"a": 1}, "error")
        assert ("认证" in result["error"], "not today" in result["error"]) == (approve, not approve)
        assert events[-1]["content"] == "Done."
        said = (await local.get("/sessions", sessionId=session)).json()["messages"]
        asked, went_on = [message["toolCalls"] for message in said if message["type"] == "agent"]
        assert (asked, went_on) == ([result], [])
        late = await local.post("/approvals", sessionId=session, approvals=[word])
        assert late.status_code == 409


@shows("CHAT-TOKEN")
async def test_a_persons_token_reaches_tool_servers_set_up_for_it_and_a_key_of_ours_does_not(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        issuer = stack.enter_context(open_issuer())
        audience = "http://127.0.0.1:3020/api"
        token = issuer.token(sub="ann", aud=audience)
        server = stack.enter_context(open_token_server({token: "ann's"}))
        settings = settings_with(
            FRONTDESK_DATA=tmp_path / "data",
            FRONTDESK_ISSUERS=[{"issuer": issuer.url, "jwks_url": issuer.jwks_url, "audience": audience}],
            FRONTDESK_MCP_SERVERS=[{"name": "work", "url": server.url, "user_token": True}],
        )
        logged = stack.enter_context(capture_logs())
        app = await stack.enter_async_context(open_app(settings))
        agent = (await app.host.create(NewAgent("Ada"))).id
        await app.host.attach(agent, HeldTool("", "", server="work", remote_name="whose"))
        results: list[Event] = []
        for shown in (token, await key(app, "ann")):
            person = await stack.enter_async_context(somebody(build_application(app), shown))
            session = await person.open(agent)
            await person.say(session, script({"tool": "work__whose"}, {"text": "Done."}))
            events = await person.listen(session)
            results += [event["toolCall"] for event in events if event["type"] == "tool_result"]
        assert [result["status"] for result in results] == ["completed", "error"]
        assert results[0]["result"] == "ann's"
        assert token not in str(logged)
        assert all(token.encode() not in part.read_bytes() for part in (tmp_path / "data").iterdir())
