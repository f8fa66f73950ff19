"""Tests errors of chats: their messages, and their rows in the journal."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs
from typing_extensions import override

from frontdesk.agents.chat.model import ChatSession, new_session_id
from frontdesk.agents.chat.service import ChatService
from frontdesk.agents.chat.store import ChatSessionStore
from frontdesk.app import App, open_app, running
from frontdesk.db.schema import agents
from frontdesk.interfaces.http.application import build_application
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import Person, all_made, key, script, somebody
from tests.support.serving import serve
from tests.support.wire import Answer, send

NOBODYS = "0" * 32


@shows("CHAT-ERRORS")
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("POST", "/sessions", b'{"agentId": ', 400, {"error": "The body is not valid JSON"}),
        ("POST", "/sessions", b"{}", 400, "agentId: Field required"),
        ("POST", "/sessions", b"[]", 400, "must be a JSON object, sent as application/json"),
        ("POST", "/sessions", b"", 400, "must be a JSON object, sent as application/json"),
        ("POST", "/sessions", b'{"agentId": "nobody"}', 404, {"error": "Agent not found"}),
        ("POST", "/sessions", rb'{"agentId": "a\u0000"}', 404, {"error": "Agent not found"}),
        ("POST", "/messages", b'{"sessionId": "x", "message": ""}', 400, "message: String should have at least 1"),
        ("POST", "/messages", rb'{"sessionId": "x", "message": " \n\t"}', 400, "message: must not be blank"),
        ("POST", "/messages", rb'{"sessionId": "x", "message": "a\u0000"}', 400, "message: must not contain"),
        ("POST", "/messages", rb'{"sessionId": "x", "message": "\ud800"}', 400, "message: Input should be a valid"),
        ("POST", "/messages", rb'{"sessionId": "\u0000", "message": "a"}', 404, {"error": "Session not found"}),
        ("POST", "/messages", b'{"sessionId": "x", "message": "%s"}' % (b"a" * 200_001), 400, "at most 200000"),
        ("POST", "/messages", b'"%s"' % (b"a" * 4_194_304), 413, "too large"),
        ("POST", "/approvals", b'{"sessionId": "x", "approvals": []}', 400, "approvals: List should have at least 1"),
        ("GET", "/stream", b"", 400, {"field": "query", "errors": ["sessionId: Field required"]}),
        ("GET", "/stream?sessionId=x", b"", 404, {"error": "Session not found"}),
        ("GET", "/nowhere", b"", 404, {"error": "Not Found"}),
        ("PUT", "/cancel", b"{}", 405, {"error": "Method Not Allowed"}),
    ],
)
async def test_a_mistake_is_told_in_the_shape_that_clients_know(
    local: Person, method: str, path: str, body: bytes, status: int, told: str | dict[str, object]
) -> None:
    headers = {"content-type": "application/json"}
    answer = await local.client.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if isinstance(told, dict) and "error" in told:
        assert answer.json() == told
    elif isinstance(told, dict):
        assert answer.json() == {"error": "Validation failed", "details": [told]}
    else:
        assert told in str(answer.json())


@shows("CHAT-ERRORS")
async def test_an_agent_host_that_does_not_answer_is_said(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL="http://127.0.0.1:9")
    async with open_app(settings) as app, somebody(build_application(app)) as person:
        answer = await person.post("/sessions", agentId="agent-1")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"


@shows("CHAT-ERRORS")
@pytest.mark.parametrize(("asked", "told"), [("17", "17"), ("9" * 400, "3600"), ("soon", "2")])
async def test_a_wait_that_the_agent_host_asks_for_is_passed_on(tmp_path: Path, asked: str, told: str) -> None:
    async def overworked(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"detail": "Slow down"}, 503, {"retry-after": asked})(scope, receive, send)

    with serve(overworked) as url:
        settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=url)
        async with open_app(settings) as app, somebody(build_application(app)) as person:
            answer = await person.post("/sessions", agentId="agent-1")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, told)


@shows("CHAT-ERRORS")
async def test_a_reply_that_fails_ends_with_an_error_and_the_next_is_made(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    for model, kind in (("nonsense", "error"), (None, "end")):
        async with app.database.transaction() as connection:
            await connection.execute(update(agents).values(model=model))
        await local.say(session, script({"text": "hello"}))
        events = await local.listen(session)
        assert events[-1]["type"] == kind
        assert kind == "end" or "'nonsense' is not a model" in events[-1]["error"]
    rows = [(row.outcome, row.reason) for row in app.journal._waiting if row.kind is EntryKind.TURN]
    assert rows == [(Outcome.FAILED, "error"), (Outcome.OK, None)]


@shows("CHAT-ERRORS")
async def test_a_message_to_an_agent_that_is_no_more_is_refused(app: App, local: Person, agent: str) -> None:
    session = await local.open(agent)
    await app.host.delete(agent)
    answer = await local.post("/messages", sessionId=session, message="hello")
    assert answer.status_code == 404
    assert agent in answer.json()["error"]


async def test_a_body_that_does_not_come_is_not_waited_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.interfaces.rest.api.READ_SECONDS", 0.01)
    headers = {"content-type": "application/json"}
    answer = await send(build_application(app), headers, None, path="/api/agents/cancel")
    assert answer.status == 408


async def test_every_call_and_every_turn_leaves_a_row_and_no_words(app: App, agent: str) -> None:
    asgi = build_application(app)
    with capture_logs() as logged:
        async with somebody(asgi, await key(app, "ann")) as ann, somebody(asgi, await key(app, "bob")) as bob:
            session = await ann.open(agent)
            await ann.say(session, script({"text": "confidential"}))
            await ann.listen(session)
            await bob.post("/messages", sessionId=session, message="confidential")
            await bob.post("/cancel", sessionId=session)
            await bob.post("/cancel", confidential="confidential")
    await all_made(app)
    await app.journal.flush()
    rows = [row for _, row in await app.journal.read(JournalQuery())]
    assert sorted((row.surface, row.action, row.user_id, row.kind, row.outcome, row.reason) for row in rows) == [
        ("chat", "turn", "ann", EntryKind.TURN, Outcome.OK, None),
        ("rest", "GET /api/agents/stream", "ann", EntryKind.CALL, Outcome.OK, None),
        ("rest", "POST /api/agents/cancel", "bob", EntryKind.CALL, Outcome.REFUSED, "InvalidArguments"),
        ("rest", "POST /api/agents/cancel", "bob", EntryKind.CALL, Outcome.REFUSED, "NotFound"),
        ("rest", "POST /api/agents/messages", "ann", EntryKind.CALL, Outcome.OK, None),
        ("rest", "POST /api/agents/messages", "bob", EntryKind.DENIAL, Outcome.DENIED, "Denied"),
        ("rest", "POST /api/agents/sessions", "ann", EntryKind.CALL, Outcome.OK, None),
    ]
    assert next(row.agent_id for row in rows if row.kind is EntryKind.TURN) == agent
    assert "confidential" not in f"{rows}{logged}"


async def test_the_rate_of_a_person_holds_here_too(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_RATE_USER="2/hour")
    async with open_app(settings) as app, somebody(build_application(app), await key(app, "ann")) as ann:
        answers = [await ann.get("/sessions") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_the_api_describes_itself_with_examples(local: Person) -> None:
    described = (await local.client.get("/../openapi.json")).json()
    assert {path for path in described["paths"] if path.startswith("/agents")} == {
        f"/agents/{name}" for name in ("sessions", "sessions/restore", "messages", "approvals", "cancel", "stream")
    }
    schemas = described["components"]["schemas"]
    assert schemas["NewMessageRequest"]["properties"]["message"]["examples"] == ["What is due today?"]
    stream = described["paths"]["/agents/stream"]["get"]["responses"]["200"]["content"]["text/event-stream"]
    assert '"type": "end"' in stream["example"]
    assert "422" not in str(described["paths"])


texts = st.text(max_size=8) | st.sampled_from([NOBODYS, "agent-1", "\ud800", "\0", "local"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["callId", "approve"]), inner),
    max_leaves=6,
)
names = ("agentId", "sessionId", "userId", "message", "messages", "contextMessages", "approvals")
bodies = st.dictionaries(st.sampled_from(names), values) | values
asked = st.tuples(
    st.sampled_from(["POST", "GET", "DELETE"]),
    st.sampled_from(["sessions", "sessions/restore", "messages", "approvals", "cancel", "stream"]),
    bodies.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=30),
)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str, bytes], Answer]]:
    """Sends requests to a server of its own, from outside its event loop."""
    opened = open_app(settings_with(FRONTDESK_DATA=tmp_path_factory.mktemp("fuzz") / "data"))
    headers = {"content-type": "application/json"}
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as app:
        asgi = build_application(app)

        def one(method: str, route: str, body: bytes) -> Answer:
            return portal.call(lambda: send(asgi, headers, body, path=f"/api/agents/{route}", method=method))

        yield one


@shows("FUZZ")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(request=asked)
def test_no_body_leads_to_a_failure(ask: Callable[[str, str, bytes], Answer], request: tuple[str, str, bytes]) -> None:
    answer = ask(*request)
    assert answer.status < 500, answer.body
    assert answer.status == 200 or set(answer.json) >= {"error"}


class Moody(ChatSessionStore):
    """Fails to forget, the first time."""

    failed = False

    @override
    async def prune(self, now: datetime) -> int:
        if not self.failed:
            self.failed = True
            raise ZeroDivisionError
        return await super().prune(now)


async def test_sessions_are_forgotten_soon_after_the_start_whatever_goes_wrong_the_first_time(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.agents.chat.service.PRUNE_SESSIONS_SECONDS", 0.01)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    store, old = Moody(app.database), ChatSession(new_session_id(), "ann", "agent-1", "conv-1", long_ago, long_ago)
    await store.add(old)
    with capture_logs() as logged:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ChatService(store, app.host, app.chat._replies).run)
            await forgotten(store, old)
            tasks.cancel_scope.cancel()
    assert [line["event"] for line in logged] == ["chat_sessions_not_pruned"]


async def forgotten(store: ChatSessionStore, session: ChatSession) -> None:
    with anyio.fail_after(10):
        while True:
            if await store.get(session.id) is None:
                return
            await anyio.sleep(0.01)


async def test_a_server_that_begins_forgets_sessions_soon(app: App) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    store, old = (
        ChatSessionStore(app.database),
        ChatSession(new_session_id(), "ann", "agent-1", "conv-1", long_ago, long_ago),
    )
    await store.add(old)
    async with running(app):
        await forgotten(store, old)
    assert await store.get(old.id) is None
