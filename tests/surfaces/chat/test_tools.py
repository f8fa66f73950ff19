"""Tools that need the person: their word, or their token."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import Event, key, kinds, script, somebody
from tests.support.issuer import open_issuer
from tests.support.token_server import open_token_server

pytestmark = pytest.mark.anyio


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
