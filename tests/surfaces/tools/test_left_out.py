"""What is skipped, cut or not there is said: in the state of a server, and to whoever named it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.agents.host import HeldTool
from frontdesk.app import App
from frontdesk.errors import NotFound
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.llm.events import ToolReturn
from frontdesk.mcp_client.client import MAX_PAGES
from frontdesk.tools.servers import ServerSpec
from tests.hosts.lab import of_kind, script, take
from tests.requirements import shows
from tests.support.asking import ask, asked
from tests.support.serving import serve
from tests.support.tool_servers import tool

pytestmark = [pytest.mark.anyio, shows("KEPT-12")]
BASE = "http://127.0.0.1:3020/api/v1/tools"
SECONDS = 60
ISSUE = "file a bug in the repository"
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
    """A server that lists its tools so: how many were taken, and what is said to be wrong with its list."""

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


async def test_a_server_and_a_tool_that_are_not_there_are_said_with_the_near_ones(asgi: ASGIApp, agent: str) -> None:
    await ask(asgi, "find_tools", {"query": ISSUE}, agent)
    asked = {"query": ISSUE, "servers": "shopp, shop, nowhere", "keep_tools": "shop__creat_issue, create_issue, zzz"}
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
    known = await ask(asgi, "find_tools", {"query": ISSUE, "servers": "shop", "keep_tools": "create_issue"}, agent)
    assert known.structured["unknown"] == []


async def test_routes_say_it_too(asgi: ASGIApp, agent: str) -> None:
    rest = httpx2.AsyncClient(transport=httpx2.ASGITransport(asgi), base_url=BASE, timeout=SECONDS)
    await ask(asgi, "find_tools", {"query": ISSUE}, agent)
    found = (await rest.post("/search", json={"query": ISSUE, "servers": ["shopp"]})).json()
    assert (found["found"], found["unknown"]) == ([], ["There is no server 'shopp'; did you mean 'shop'?"])
    pruned = {"user_prompt": ISSUE, "agent_id": agent, "keep_tool_ids": ["shop::creat_issue"], "dry_run": True}
    [said] = (await rest.post("/prune", json=pruned)).json()["unknown"]
    assert "'shop::creat_issue' is to be kept, and the agent holds no such tool" in said


async def test_an_agent_that_calls_or_is_given_a_tool_by_nearly_its_name_hears_the_right_one(
    installation: App, asgi: ASGIApp, agent: str
) -> None:
    told = await asked(asgi, "find_tool", {"query": ISSUE}, agent)
    assert "Unknown tool: find_tool; did you mean 'find_tools'?" in told.body.decode()
    with pytest.raises(NotFound, match="Did you mean 'create_issue'"):
        await installation.host.attach(agent, HeldTool("", "", server="shop", remote_name="createissues"))
    events = await take(installation.host, agent, script({"tool": "find_tool", "args": {}}, {"text": "done"}))
    assert "perhaps you mean 'find_tools'; there are: " in of_kind(events, ToolReturn)[0].text
