"""`call_tool`: what a tool elsewhere answers comes back as it is."""

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp.catalogue_tools import relay_result
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery, ToolUseQuery
from frontdesk.tools.calls import CallResult
from frontdesk.tools.servers import ServerSpec
from tests.requirements import shows
from tests.support.asking import ask, asked, frames
from tests.support.tool_servers import ToolServer
from tests.support.upstreams import Upstream
from tests.support.wire import ERAS, MODERN, Era
from tests.surfaces.tools.conftest import PAINTED

pytestmark = pytest.mark.anyio
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
    return relay_result(CallResult(ok=True, content=[block]), MODERN).content[0]


def test_a_block_that_no_client_knows_is_put_into_words() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert told_of(image) is image
    assert told_of({"type": "hologram"}) == {"type": "text", "text": "[hologram]"}
    noted = {"type": "text", "text": "hi", "annotations": "no object"}
    assert told_of(noted) == {"type": "text", "text": "hi"}
    bare = relay_result(CallResult(ok=False, structured=[1], error="it is down"), MODERN)
    assert (bare.content, bare.structured) == ([{"type": "text", "text": "it is down"}], None)
