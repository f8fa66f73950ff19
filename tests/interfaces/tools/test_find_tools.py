"""Tests `find_tools` for agents, concurrent and with any input; and that omissions are reported."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.agents.embedded.operation_tools import OperationTools
from frontdesk.agents.host import HeldTool, NewAgent
from frontdesk.app import App, open_app
from frontdesk.errors import NotFound
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.llm.events import ToolReturn
from frontdesk.mcp_client.client import MAX_PAGES
from frontdesk.settings import Settings
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.hosts.lab import of_kind, script, take
from tests.requirements import shows
from tests.support.serving import serve
from tests.support.tool_servers import ToolServer, open_tool_server, tool, tools
from tests.support.wire import ERAS, Answer, Era, ToolAnswered, ask, asked, call, send

# `find_tools` for an agent


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
    own = OperationTools()
    own.open(installation.operations)
    by_name = {tool.name: tool for tool in own.for_caller(Caller("1", agent), None)}
    told = await by_name["find_tools"].run({"query": "send a letter by mail", "min_score": 100})
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


# Skipped, cut and missing things are reported: in the state of a server, and to the caller who named it


BASE = "http://127.0.0.1:3020/api/v1/tools"
BUG_QUERY = "file a bug in the repository"
Page = Callable[[str | None], Mapping[str, Any]]


def nameless(_cursor: str | None) -> Mapping[str, Any]:
    return {"tools": [tool("work"), {"description": "nameless"}, 7, {"name": 5}]}


def no_list(_cursor: str | None) -> Mapping[str, Any]:
    return {"tools": {"work": {}}}


def endless(cursor: str | None) -> Mapping[str, Any]:
    number = int(cursor or 0)
    return {"tools": [tool(f"work{number}")], "nextCursor": str(number + 1)}


def going_round(cursor: str | None) -> Mapping[str, Any]:
    return {"tools": [tool("work")], "nextCursor": "again"}


@asynccontextmanager
async def listed(installation: App, page: Page) -> AsyncGenerator[tuple[int, str]]:
    """A server with this listing: how many tools were accepted, and the reported problems of its list."""

    async def post(request: Request) -> Response:
        frame: dict[str, Any] = await request.json()
        about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
        results: dict[str, Callable[[], Mapping[str, Any]]] = {
            "initialize": lambda: {"protocolVersion": "2025-06-18", **about},
            "tools/list": lambda: page(frame.get("params", {}).get("cursor")),
        }
        found = results.get(frame["method"])
        if found is None:
            return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": dict(found())})

    with serve(Starlette(routes=[Route("/mcp", post, methods=["POST"])])) as address:
        await installation.tools.catalogue.add(ServerSpec("odd", url=f"{address}/mcp"))
        try:
            [state] = [one for one in installation.tools.catalogue.servers() if one.name == "odd"]
            yield state.tools, "; ".join(state.problems)
        finally:
            await installation.tools.catalogue.remove("odd")


@shows("KEPT-12")
@pytest.mark.parametrize(
    ("page", "count", "said"),
    [
        (nameless, 1, "3 of the tools that it lists have no name; left out"),
        (no_list, 0, "1 of the tools that it lists has no name; left out"),
        (endless, MAX_PAGES, f"its list goes on after {MAX_PAGES} pages and {MAX_PAGES} tools; the rest is left out"),
        (going_round, 1, "its list repeats its page after 2 pages"),
    ],
)
async def test_what_of_a_list_is_skipped_or_cut_is_in_the_state_of_its_server(
    installation: App, page: Page, count: int, said: str
) -> None:
    async with listed(installation, page) as (taken, problems):
        assert taken == count
        assert said in problems


@shows("KEPT-12")
async def test_a_server_and_a_tool_that_are_not_there_are_said_with_the_near_ones(asgi: ASGIApp, agent: str) -> None:
    await ask(asgi, "find_tools", {"query": BUG_QUERY}, agent)
    asked = {
        "query": BUG_QUERY,
        "servers": "shopp, shop, nowhere",
        "keep_tools": "shop__creat_issue, create_issue, zzz",
    }
    told = await ask(asgi, "find_tools", asked, agent)
    assert told.structured["found"][0]["id"] == "shop::create_issue"
    unknown = told.structured["unknown"]
    assert unknown[0].startswith("There is no server 'nowhere'; there are: ")
    assert unknown[1] == "There is no server 'shopp'; did you mean 'shop'?"
    assert unknown[2] == (
        "'shop__creat_issue' is to be kept, and the agent holds no such tool; did you mean 'shop__create_issue'?"
    )
    assert unknown[3].startswith("'zzz' is to be kept")
    assert len(unknown) == 4
    assert all(one in told.text for one in unknown)
    known = await ask(asgi, "find_tools", {"query": BUG_QUERY, "servers": "shop", "keep_tools": "create_issue"}, agent)
    assert known.structured["unknown"] == []


@shows("KEPT-12")
async def test_routes_say_it_too(asgi: ASGIApp, agent: str) -> None:
    rest = httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url=BASE, timeout=SECONDS)
    await ask(asgi, "find_tools", {"query": BUG_QUERY}, agent)
    found = (await rest.post("/search", json={"query": BUG_QUERY, "servers": ["shopp"]})).json()
    assert (found["found"], found["unknown"]) == ([], ["There is no server 'shopp'; did you mean 'shop'?"])
    pruned = {"user_prompt": BUG_QUERY, "agent_id": agent, "keep_tool_ids": ["shop::creat_issue"], "dry_run": True}
    [said] = (await rest.post("/prune", json=pruned)).json()["unknown"]
    assert "'shop::creat_issue' is to be kept, and the agent holds no such tool" in said


@shows("KEPT-12")
async def test_an_agent_that_calls_or_is_given_a_tool_by_nearly_its_name_hears_the_right_one(
    installation: App, asgi: ASGIApp, agent: str
) -> None:
    told = await asked(asgi, "find_tool", {"query": BUG_QUERY}, agent)
    assert "Unknown tool: find_tool; did you mean 'find_tools'?" in told.body.decode()
    with pytest.raises(NotFound, match="Did you mean 'create_issue'"):
        await installation.host.attach(agent, HeldTool("", "", server="shop", remote_name="createissues"))
    events = await take(installation.host, agent, script({"tool": "find_tool", "args": {}}, {"text": "done"}))
    assert "perhaps you mean 'find_tools'; there are: " in of_kind(events, ToolReturn)[0].text


# Many concurrent `find_tools` for one agent, at two replicas


CALLS = 200
CROWD_SECONDS = 240
TOPICS = [f"topic{letter}" for letter in "abcdefghij"]
MAX_MCP, MAX_TOTAL, MIN_MCP = 12, 14, 4


@pytest.fixture(scope="module")
def crowded() -> Iterator[ToolServer]:
    """Ten topics of five tools: far more than an agent may hold."""
    listed = [tool(f"{topic}_{number}", f"Works on {topic}.") for topic in TOPICS for number in range(5)]
    with open_tool_server("crowd", listed) as server:
        yield server


def limited(settings: Settings) -> Settings:
    limits = {"max_mcp_tools": MAX_MCP, "max_total_tools": MAX_TOTAL, "min_mcp_tools": MIN_MCP}
    return settings.with_values(embeddings="off", never_detach_tools=("crowd__topica_0",), **limits)


async def many(replicas: Sequence[App], agent: str) -> list[ToolAnswered]:
    endpoints, answers = [build_application(app) for app in replicas], list[ToolAnswered]()

    async def one(number: int) -> None:
        query = {"query": TOPICS[number % len(TOPICS)], "limit": 5, "min_score": 1, "keep_tools": "topicb_0"}
        answers.append(await ask(endpoints[number % len(endpoints)], "find_tools", query, agent))

    with anyio.fail_after(CROWD_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(CALLS):
                tasks.start_soon(one, number)
    return answers


@shows("TOOLS-CROWD")
async def test_two_hundred_at_once_keep_every_limit_and_lose_nothing(settings: Settings, crowded: ToolServer) -> None:
    async with open_app(limited(settings)) as app, open_app(limited(settings)) as replica:
        await app.tools.catalogue.add(ServerSpec("crowd", url=crowded.url))
        await replica.tools.catalogue.load()
        agent = (await app.host.create(NewAgent("Ada"))).id
        for name in ("topica_0", "topicb_0"):
            await app.host.attach(agent, HeldTool(name, "", server="crowd", remote_name=name))
        answers = await many((app, replica), agent)
        held = [held.name for held in await app.host.tools(agent)]
        assert len(answers) == CALLS
        assert all(told.ok for told in answers)
        assert len(held) == len(set(held))
        assert MIN_MCP <= len(held) <= MAX_MCP
        assert {"crowd__topica_0", "crowd__topicb_0"} <= set(held), "what is protected, and what each call keeps"
        balance = Counter({"crowd__topica_0": 1, "crowd__topicb_0": 1})
        for told in answers:
            balance.update(one["name"] for one in told.structured["attached"])
            balance.subtract(one["name"] for one in told.structured["detached"])
            assert told.structured["failed"] == []
        assert {name for name, count in balance.items() if count} == set(held), "every change that was told was made"
        assert set(balance.values()) <= {0, 1}, "and nothing was attached twice"


# Any input to the interfaces of the tools capability: a mistake is reported as one, and nothing fails


Send = Callable[[str, str, dict[str, str], bytes], Answer]
STRANGE = ("shop::mow", "mow", "agent-1", "\ud800", "\0", "*", "agent:a", "user:\0", "{", "[1,", "nope\ud800")
texts = st.text(max_size=8) | st.sampled_from(STRANGE)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# Correct often enough to pass the first check.
NEEDED = {
    **dict.fromkeys(("query", "user_prompt", "name", "tool", "subject", "pattern"), texts),
    "accept": st.booleans(),
    "effect": st.sampled_from(["allow", "deny"]),
}
OPTIONAL = dict.fromkeys(
    (
        *("limit", "min_score", "servers", "agent_id", "keep_tools", "dry_run", "drop_rate", "keep_tool_ids"),
        *("arguments", "request_heartbeat", "detailed_response", "apply_rules"),
    ),
    values,
)
bodies = st.fixed_dictionaries(NEEDED, optional=OPTIONAL)
OF_TOOL = {"find_tools": ("query",), "call_tool": ("name",)}
ROUTES = ("search", "attach", "prune", "call", "pick", "explain", "forget", "rights", "rights/x", "usage", "servers")
paths = st.sampled_from(["", *(f"/{route}" for route in ROUTES), "/shop::mow", "/shop::mow/review", "/refresh"])
fuzzed = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def fuzz_ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Sends requests to an installation of its own, from outside its event loop."""
    data = tmp_path_factory.mktemp("fuzz") / "data"
    opened = open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off"))
    with (
        open_tool_server("shop", tools(["mow"])) as shop,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened) as app,
    ):
        portal.call(app.tools.catalogue.add, ServerSpec("shop", url=shop.url))
        asgi = build_application(app)
        yield lambda method, path, headers, body: portal.call(
            lambda: send(asgi, headers, body, path=path, method=method)
        )


@shows("FUZZ")
@fuzzed
@given(method=st.sampled_from(["POST", "GET", "DELETE"]), path=paths, body=bodies | values)
def test_no_body_leads_to_a_failure(fuzz_ask: Send, method: str, path: str, body: Any) -> None:
    said = {"content-type": "application/json"}
    answer = fuzz_ask(method, f"/api/v1/tools{path}", said, json.dumps(body).encode())
    assert answer.status < 500, answer.body
    assert answer.status == 200 or set(answer.json) >= {"error"}


@shows("FUZZ")
@fuzzed
@given(tool=st.sampled_from(["find_tools", "call_tool"]), era=st.sampled_from(ERAS), arguments=bodies)
def test_no_arguments_lead_to_a_failure(fuzz_ask: Send, tool: str, era: Era, arguments: dict[str, Any]) -> None:
    known = {name: value for name, value in arguments.items() if name in OPTIONAL or name in OF_TOOL[tool]}
    headers, body = call(era, tool, known)
    answer = fuzz_ask("POST", "/mcp/tools", {"x-agent-id": "agent-1", **headers}, body)
    assert answer.status < 500, answer.body
    # Values that are not JSON, such as NaN, are refused before a tool gets them.
    assert answer.status == 400 or "error" not in answer.json or answer.json["error"]["code"] in (-32602, -32011)
