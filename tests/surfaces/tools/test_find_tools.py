"""`find_tools` as an agent calls it."""

import json
from typing import Any

import anyio
import pytest

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.tools.operations import BuiltinTools
from tests.requirements import shows
from tests.support.asking import ask, asked
from tests.support.tool_servers import ToolServer, tools
from tests.support.wire import ERAS, Era, send

pytestmark = pytest.mark.anyio
ISSUE = "file an issue about a bug"
SECONDS = 60


@shows("TOOLS-FIND")
@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_is_told_what_fits_why_and_how_to_call_it(asgi: ASGIApp, agent: str, era: Era) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE}, agent, era=era)
    first = told.structured["found"][0]
    assert (first["id"], first["name"], first["server"]) == ("shop::create_issue", "shop__create_issue", "shop")
    assert first["score"] >= 50
    assert (first["required"], first["optional"]) == (["owner", "title"], ["labels"])
    assert "1. shop__create_issue (id shop::create_issue), score" in told.text
    assert "words: " in told.text
    assert "Arguments: owner (required), title (required), labels" in told.text
    assert "Attached: shop__create_issue" in told.text
    assert """call_tool(name='shop__create_issue', arguments={"owner": "…", "title": "…"})""" in told.text


async def test_what_was_found_is_attached_once_and_then_kept(installation: App, asgi: ASGIApp, agent: str) -> None:
    first = await ask(asgi, "find_tools", {"query": ISSUE}, agent)
    again = await ask(asgi, "find_tools", {"query": ISSUE}, agent)
    assert [one["id"] for one in first.structured["attached"]] == ["shop::create_issue"]
    assert again.structured["attached"] == []
    assert [one["id"] for one in again.structured["kept"]] == ["shop::create_issue"]
    assert "Held already: shop__create_issue." in again.text
    assert [tool.name for tool in await installation.host.tools(agent)] == ["shop__create_issue"]


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(installation: App, asgi: ASGIApp, agent: str) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE, "dry_run": "yes"}, agent)
    assert [one["id"] for one in told.structured["attached"]] == ["shop::create_issue"]
    assert told.structured["dry_run"] is True
    assert "Would attach: shop__create_issue" in told.text
    assert "nothing was changed" in told.text
    assert await installation.host.tools(agent) == []


async def test_nothing_relevant_is_said_plainly(installation: App, asgi: ASGIApp, agent: str) -> None:
    told = await ask(asgi, "find_tools", {"query": "knit a woollen pullover"}, agent)
    assert told.structured["nothing_relevant"] is True
    assert told.structured["found"] == []
    assert told.text.startswith(f"Nothing relevant: none of {len(installation.tools.catalogue.index)} tools fits.")
    assert "The servers there are: lab, shop" in told.text
    assert told.ok


async def test_how_far_the_best_is_from_what_was_asked_for_is_said(asgi: ASGIApp, agent: str) -> None:
    told = await ask(asgi, "find_tools", {"query": "weather of our new office building", "min_score": 99}, agent)
    assert told.structured["nothing_relevant"] is True
    assert 0 < told.structured["best_score"] < 99
    assert f"The best one scores {told.structured['best_score']:.0f} of 100, below the 99" in told.text


@shows("TOOLS-GIVEN")
@pytest.mark.parametrize(
    "junk",
    [
        {"limit": "many", "min_score": None, "keep_tools": 7, "servers": {}},
        {"limit": -3, "min_score": -1, "keep_tools": "[", "dry_run": "perhaps", "detailed_response": []},
        {"limit": 10**400, "min_score": "0", "request_heartbeat": "maybe", "apply_rules": 5},
        {"limit": True, "min_score": [], "keep_tools": ["", 5, None], "servers": "shop, ,"},
    ],
)
async def test_junk_is_made_fit_and_not_refused(asgi: ASGIApp, agent: str, junk: dict[str, Any]) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE, **junk}, agent)
    assert told.ok
    assert told.structured["found"][0]["id"] == "shop::create_issue"


async def test_a_query_that_is_no_text_is_taken_as_its_text_and_an_empty_one_refused(asgi: ASGIApp, agent: str) -> None:
    assert (await ask(asgi, "find_tools", {"query": ["create_issue"]}, agent)).ok
    empty = await ask(asgi, "find_tools", {"query": None}, agent)
    assert (empty.ok, empty.text) == (False, "Say what the tool should do: `query` is empty")
    missing = await ask(asgi, "find_tools", {}, agent)
    assert "query: Field required" in missing.text
    misspelt = await ask(asgi, "find_tools", {"query": "x", "limt": 3}, agent)
    assert "limt: Extra inputs are not permitted" in misspelt.text


async def test_a_tools_name_wins_outright(asgi: ASGIApp, agent: str) -> None:
    for name in ("send_mail", "shop__send_mail", "shop::send_mail"):
        told = await ask(asgi, "find_tools", {"query": name, "limit": 1}, agent)
        assert [(one["id"], one["score"]) for one in told.structured["found"]] == [("shop::send_mail", 100)]
        assert "asked for by name" in told.text


async def test_only_the_servers_that_were_named_are_looked_at(asgi: ASGIApp, agent: str) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE, "min_score": 0, "servers": ["lab"]}, agent)
    assert all(one["server"] == "lab" for one in told.structured["found"])


async def test_details_are_given_where_they_are_asked_for(asgi: ASGIApp, agent: str) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE, "detailed_response": 1, "apply_rules": "false"}, agent)
    assert told.structured["found"][0]["parameters"]["required"] == ["owner", "title"]
    assert 'Schema: {"type": "object"' in told.text
    assert "apply_rules=false has no effect" in told.text


async def test_an_agent_that_the_host_does_not_know_still_gets_an_answer(asgi: ASGIApp) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE}, "agent-of-somebody-else")
    assert told.structured["found"][0]["id"] == "shop::create_issue"
    assert told.structured["attached"] == []
    assert "is not one of the agent host's, so nothing was attached; use call_tool" in told.text


async def test_an_agent_that_asks_for_a_heartbeat_is_called_on_again(
    installation: App, asgi: ASGIApp, agent: str
) -> None:
    told = await ask(asgi, "find_tools", {"query": ISSUE, "request_heartbeat": "True"}, agent)
    assert told.structured["follow_up"] is True
    assert "You will be called on again" in told.text
    with anyio.fail_after(SECONDS):
        while not any("shop__create_issue" in repr(said.event) for said in await installation.host.history(agent)):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("era", ERAS)
async def test_the_agents_id_is_read_by_the_one_rule(asgi: ASGIApp, agent: str, era: Era) -> None:
    by_parameter = await ask(asgi, "find_tools", {"query": ISSUE, "agent_id": agent}, era=era)
    assert by_parameter.ok
    mismatch = await asked(asgi, "find_tools", {"query": ISSUE, "agent_id": "agent-222"}, "agent-111", era=era)
    assert mismatch.error == (-32602, "Agent ID mismatch: header 'agent-111' != parameter 'agent-222'")
    missing = await asked(asgi, "find_tools", {"query": ISSUE}, era=era)
    assert missing.error == (
        -32602,
        "Agent ID must be provided either in x-agent-id header or agent_id parameter",
    )
    invalid = await asked(asgi, "find_tools", {"query": ISSUE}, "invalid@id", era=era)
    assert invalid.error == (-32602, "Invalid agent ID format: invalid@id")


async def test_a_built_in_agent_that_finds_nothing_hears_of_the_servers_too(installation: App, agent: str) -> None:
    own = BuiltinTools()
    own.open(installation.tools)
    find, _call = own.tools_for(Caller("1", agent), None)
    told = await find.run({"query": "send a letter by mail", "min_score": 100})
    assert "The servers there are: lab, shop, studio." in told.text


async def test_its_description_names_the_servers_there_are_and_follows_them(
    installation: App, asgi: ASGIApp, shop: ToolServer
) -> None:
    before = await described(asgi)
    assert "There are tools of: lab, shop, studio." in before["description"]
    assert before["annotations"] == {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
    assert before["inputSchema"]["required"] == ["query"]
    listed, shop.tools = shop.tools, tools(f"other_{number}" for number in range(20))
    await installation.tools.catalogue.refresh(["shop"])
    assert "There are tools of: shop, lab, studio." in (await described(asgi))["description"]
    shop.tools = listed
    await installation.tools.catalogue.refresh(["shop"])
    assert (await described(asgi)) == before


async def described(asgi: ASGIApp) -> dict[str, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    answer = await send(asgi, {"content-type": "application/json"}, body, path="/mcp/tools")
    return next(tool for tool in answer.json["result"]["tools"] if tool["name"] == "find_tools")
