"""Tests `call_tool`: answers come back unchanged, and calls have the rights and the token of the caller."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp, RequestContext
from frontdesk.interfaces.mcp.tools import wire_result
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery, ToolUseQuery
from frontdesk.tools.access import AccessEffect
from frontdesk.tools.calls import CallResult
from frontdesk.tools.responses import call_answer
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.interfaces.tools.conftest import PAINTED
from tests.requirements import shows
from tests.support.chat import key
from tests.support.issuer import open_issuer
from tests.support.tool_servers import ToolServer
from tests.support.upstreams import Upstream, open_token_server
from tests.support.wire import ERAS, MODERN, Era, ask, asked, frames

# `call_tool` returns another server's answer unchanged


CITY = {"city": "Graz"}


@shows("TOOLS-CALL")
@pytest.mark.parametrize("name", ["lab::echo", "lab__echo", "echo"])
@pytest.mark.parametrize("arguments", [CITY, json.dumps(CITY)])
async def test_a_tool_is_called_by_id_or_name_with_an_object_or_its_text(
    asgi: ASGIApp, name: str, arguments: object
) -> None:
    told = await ask(asgi, "call_tool", {"name": name, "arguments": arguments}, "agent-1")
    assert (json.loads(told.text), told.ok) == (CITY, True)


@pytest.mark.parametrize("era", ERAS)
async def test_blocks_and_structured_content_come_back_as_they_are(asgi: ASGIApp, era: Era) -> None:
    told = await ask(asgi, "call_tool", {"name": "paint", "arguments": {"text": "a house"}}, "agent-1", era=era)
    assert told.content == PAINTED["content"]
    assert told.structured == PAINTED["structuredContent"]


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_tool_itself_reports_as_an_error_stays_one(asgi: ASGIApp, era: Era) -> None:
    told = await ask(asgi, "call_tool", {"name": "lab::fails", "arguments": CITY}, "agent-1", era=era)
    assert not told.ok
    assert told.text.startswith("no such city")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("shop::create_issue", {"owner": 5}, "title: is missing"),
        ("lab::echo", {"city": "Graz", "wether": 1}, "wether"),
        ("lab::echo", "[1]", "`arguments` must be a JSON object"),
        ("lab::echo", "{'city'", "text that is no JSON"),
        ("lab::echo", 5, "`arguments` must be a JSON object"),
        ("nothing_of_this_name", {}, "There is no tool 'nothing_of_this_name'; search for it by what it should do"),
        ("shop::creat_issue", {}, "There is no tool 'shop::creat_issue'; did you mean 'shop::create_issue'?"),
        ("Shop__Create-Issue", {}, "did you mean 'shop::create_issue'?"),
        ("createIssue", {}, "did you mean 'shop::create_issue'?"),
    ],
)
async def test_a_callers_mistake_is_told_in_words_that_help(
    asgi: ASGIApp, shop: ToolServer, name: str, arguments: object, said: str
) -> None:
    before = len(shop.called)
    told = await ask(asgi, "call_tool", {"name": name, "arguments": arguments}, "agent-1")
    assert not told.ok
    assert said in told.text
    assert told.structured == {"error": told.text}
    assert len(shop.called) == before


@shows("KEPT-07")
async def test_which_agent_calls_is_told_agent_365_and_the_servers_marked_for_it(
    installation: App, asgi: ASGIApp, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation.tools.dispatcher.gateway, "_application_name", "the-desk")
    async with AsyncExitStack() as stack:
        for name, headers in (("marked", {"X-MS-AgentId": ""}), ("fixed", {"x-ms-agentid": "own"})):
            await installation.tools.catalogue.add(ServerSpec(name, url=f"{upstream.url}/mcp", headers=headers))
            stack.push_async_callback(installation.tools.catalogue.remove, name)
        told = {
            name: json.loads((await ask(asgi, "call_tool", {"name": f"{name}::headers", "arguments": CITY}, "a")).text)
            for name in ("lab", "marked", "fixed")
        }
        assert {name: seen.get("x-ms-agentid") for name, seen in told.items()} == {
            "lab": None,
            "marked": "the-desk",
            "fixed": "own",
        }


async def test_progress_arrives_where_it_was_asked_for(asgi: ASGIApp) -> None:
    arguments = {"name": "lab::steps", "arguments": CITY}
    answer = await asked(asgi, "call_tool", arguments, "agent-1", meta={"progressToken": "p-1"})
    *before, last = frames(answer)
    told = [frame["params"] for frame in before]
    assert [(one["progressToken"], one["progress"], one["message"]) for one in told] == [
        ("p-1", number, f"step {number}") for number in (1, 2, 3)
    ]
    assert last["result"]["content"] == [{"type": "text", "text": "done"}]


async def test_without_a_progress_token_there_is_one_plain_answer(asgi: ASGIApp) -> None:
    told = await ask(asgi, "call_tool", {"name": "lab::steps", "arguments": CITY}, "agent-1")
    assert told.text == "done"


async def test_nobody_in_particular_calls_no_tool(asgi: ASGIApp) -> None:
    answer = await asked(asgi, "call_tool", {"name": "lab::echo", "arguments": CITY})
    assert answer.error[0] == -32602


async def test_a_call_is_in_the_journal_under_the_tools_own_name(installation: App, asgi: ASGIApp) -> None:
    await ask(asgi, "call_tool", {"name": "weather_forecast", "arguments": {"text": "x"}}, "agent-7")
    await ask(asgi, "call_tool", {"name": "lab::fails", "arguments": CITY}, "agent-7")
    await installation.journal.flush()
    rows = [row for _, row in await installation.journal.read(JournalQuery(agent_id="agent-7", kind=EntryKind.TOOL))]
    assert [(row.action, row.outcome) for row in rows] == [
        ("shop::weather_forecast", Outcome.OK),
        ("lab::fails", Outcome.FAILED),
    ]
    endpoints = [
        row for _, row in await installation.journal.read(JournalQuery(agent_id="agent-7", kind=EntryKind.CALL))
    ]
    assert [(row.action, row.outcome) for row in endpoints] == [
        ("call_tool", Outcome.OK),
        ("call_tool", Outcome.FAILED),
    ]
    used = await installation.journal.tool_use(ToolUseQuery(agent_id="agent-7"))
    assert {(use.tool, use.calls, use.failed) for use in used} == {
        ("lab::fails", 1, 1),
        ("shop::weather_forecast", 1, 0),
    }


def told_of(block: dict[str, Any]) -> object:
    return wire_result(call_answer(CallResult(ok=True, content=[block])), MODERN)["content"][0]


def test_a_block_that_no_client_knows_is_put_into_words() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert told_of(image) is image
    assert told_of({"type": "hologram"}) == {"type": "text", "text": "[hologram]"}
    noted = {"type": "text", "text": "hi", "annotations": "no object"}
    assert told_of(noted) == {"type": "text", "text": "hi"}
    bare = wire_result(call_answer(CallResult(ok=False, structured=[1], error="it is down")), MODERN)
    assert bare["content"] == [{"type": "text", "text": "it is down"}]
    assert "structuredContent" not in bare


# Which callers may use which tools, at every interface


MAIL = {"query": "send a letter by mail"}


@pytest.fixture
async def barred(installation: App) -> AsyncGenerator[str]:
    """An agent that may not use the shop's mail."""
    agent = (await installation.host.create(NewAgent("Barred"))).id
    rule = await installation.tools.allowed.add(f"agent:{agent}", AccessEffect.DENY, "shop::send_*")
    yield agent
    await installation.tools.allowed.remove(rule.id)


@pytest.fixture
async def confined(installation: App) -> AsyncGenerator[str]:
    """An agent that may use only the lab."""
    agent = (await installation.host.create(NewAgent("Confined"))).id
    rule = await installation.tools.allowed.add(f"agent:{agent}", AccessEffect.ALLOW, "lab")
    yield agent
    await installation.tools.allowed.remove(rule.id)


@shows("TOOLS-RIGHTS")
async def test_two_agents_with_different_rights_find_different_tools(asgi: ASGIApp, agent: str, barred: str) -> None:
    free, kept = await ask(asgi, "find_tools", MAIL, agent), await ask(asgi, "find_tools", MAIL, barred)
    assert [one["id"] for one in free.structured["found"]] == ["shop::send_mail"]
    assert kept.structured["found"] == []
    assert "send_mail" not in kept.text
    named = await ask(asgi, "find_tools", {"query": "shop::send_mail"}, barred)
    assert "shop::send_mail" not in [one["id"] for one in named.structured["found"]]


async def test_a_tool_that_is_kept_from_an_agent_cannot_be_called_by_it(asgi: ASGIApp, agent: str, barred: str) -> None:
    for name in ("shop::send_mail", "shop__send_mail", "send_mail"):
        call = {"name": name, "arguments": {"text": "hi"}}
        assert (await ask(asgi, "call_tool", call, agent)).ok
        code, message = (await asked(asgi, "call_tool", call, barred)).error
        assert (code, message.startswith(f"You may not use the tool '{name}'")) == (-32011, True)


async def test_an_agent_hears_only_of_servers_that_it_may_use(asgi: ASGIApp, confined: str, barred: str) -> None:
    nothing = {"query": "send a letter by mail", "min_score": 100}
    assert (await ask(asgi, "find_tools", nothing, confined)).structured["servers"] == ["lab"]
    assert (await ask(asgi, "find_tools", nothing, barred)).structured["servers"] == ["lab", "shop", "studio"]


async def test_a_rule_for_a_person_holds_for_every_agent_that_works_for_them(
    installation: App, asgi: ASGIApp, agent: str
) -> None:
    rule = await installation.tools.allowed.add("user:ann", AccessEffect.DENY, "shop")
    of_ann, of_bob = await key(installation, "ann", agent=agent), await key(installation, "bob", agent=agent)
    assert (await ask(asgi, "find_tools", MAIL, key=of_ann)).structured["found"] == []
    assert (await ask(asgi, "find_tools", MAIL, key=of_bob)).structured["found"] != []
    await installation.tools.allowed.remove(rule.id)
    assert (await ask(asgi, "find_tools", MAIL, key=of_ann)).structured["found"] != []


@pytest.mark.parametrize(("tool", "needed"), [("find_tools", "tools:attach"), ("call_tool", "tools:call")])
async def test_a_credential_with_scopes_needs_the_one_for_it(
    installation: App, asgi: ASGIApp, agent: str, tool: str, needed: str
) -> None:
    arguments = MAIL if tool == "find_tools" else {"name": "shop::send_mail", "arguments": {"text": "hi"}}
    short = await key(installation, None, "tools:read", agent=agent)
    refused = await asked(asgi, tool, arguments, key=short)
    assert (refused.status, refused.error[0]) == (403, -32011)
    assert f'scope="{needed}"' in refused.headers["www-authenticate"]
    enough = await key(installation, None, needed, agent=agent)
    assert (await ask(asgi, tool, arguments, key=enough)).ok


# A person's own token at the endpoints that call tools: where it goes, and that nothing stores it


AUDIENCES = ["http://127.0.0.1:3020/api", "http://127.0.0.1:3020/mcp/tools"]


async def test_it_goes_to_servers_set_up_for_it_by_both_endpoints_and_is_neither_logged_nor_stored(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        issuer = stack.enter_context(open_issuer())
        token = issuer.token(sub="ann", aud=AUDIENCES)
        server = stack.enter_context(open_token_server({token: "ann's"}))
        settings = settings_with(
            FRONTDESK_DATA=tmp_path / "data",
            FRONTDESK_EMBEDDINGS="off",
            FRONTDESK_ISSUERS=[{"issuer": issuer.url, "jwks_url": issuer.jwks_url, "audience": AUDIENCES}],
            FRONTDESK_MCP_SERVERS=[
                {"name": "work", "url": server.url, "user_token": True},
                {"name": "other", "url": server.url},
            ],
        )
        logged = stack.enter_context(capture_logs())
        app = await stack.enter_async_context(open_app(settings))
        await app.tools.catalogue.declare()
        await app.tools.catalogue.refresh()
        asgi = build_application(app)
        for shown in (token, await key(app, "ann")):
            answers = [await by_rest(asgi, name, shown) for name in ("work::whose", "other::whose")]
            told = [await ask(asgi, "call_tool", {"name": f"{name}::whose"}, key=shown) for name in ("work", "other")]
            answers += [one.text for one in told]
            served = ["ann's" in answer for answer in answers]
            assert served == ([True, False] * 2 if shown is token else [False] * 4), answers
        await app.journal.flush()
        assert logged
        assert token not in str(logged)
    assert all(token.encode() not in part.read_bytes() for part in (tmp_path / "data").iterdir())


def test_a_request_context_shows_neither_the_token_nor_the_headers_it_came_in() -> None:
    request_context = RequestContext("1", {"authorization": "Bearer a-secret"}, token=SecretStr("a-secret"))
    assert "a-secret" not in repr(request_context)


async def by_rest(asgi: ASGIApp, name: str, token: str) -> str:
    base = "http://127.0.0.1:3020/api/v1/tools"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url=base) as client:
        return (await client.post("/call", json={"name": name}, headers={"authorization": f"Bearer {token}"})).text
