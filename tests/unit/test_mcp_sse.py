"""Servers of the older revision, whose answers come on one long stream while requests are posted beside it."""

import json
from collections.abc import AsyncGenerator, Iterator

import anyio
import httpx2
import pytest

from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client.model import McpServer, McpServerUnavailable, McpUnauthorized
from frontdesk.mcp_client.pool import McpClientPool
from tests.support.calling import call
from tests.support.upstreams import TOOLS, Upstream, open_upstream
from tests.support.waiting import until

SECONDS = 10


@pytest.fixture(scope="module")
def running() -> Iterator[Upstream]:
    with open_upstream() as server:
        yield server


@pytest.fixture
def upstream(running: Upstream) -> Upstream:
    running.elsewhere, running.guarded = None, False
    running.notes.clear()
    return running


@pytest.fixture
async def clients() -> AsyncGenerator[McpClientPool]:
    pool = McpClientPool()
    yield pool
    await pool.close()


def sse(upstream: Upstream, path: str = "/sse", **headers: str) -> McpServer:
    return McpServer("old", f"{upstream.url}{path}", headers, transport="sse", timeout=SECONDS)


async def test_tools_are_listed_and_called_over_one_stream(upstream: Upstream, clients: McpClientPool) -> None:
    client = clients.client(sse(upstream), "ada", None)
    assert tuple(tool.name for tool in await client.tools()) == TOOLS
    before = len(upstream.streams)

    async def one(number: int) -> None:
        assert json.loads((await call(client, "echo", {"n": number})).text) == {"n": number}

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert len(upstream.streams) == before
    assert await call(client, "nothing", {}) == ToolOutcome("Error calling nothing: No tool nothing", ok=False)


async def test_what_a_call_says_of_itself_is_in_the_headers_of_its_request(
    upstream: Upstream, clients: McpClientPool
) -> None:
    client = clients.client(sse(upstream, **{"x-api-key": "fixed"}), "ada", None)
    seen = json.loads((await call(client, "headers", {}, {"x-agent-id": "agent-1", "authorization": "no"})).text)
    assert (seen["x-agent-id"], seen["x-api-key"], "authorization" in seen) == ("agent-1", "fixed", False)


async def test_a_stream_that_ends_fails_the_calls_on_it_and_the_next_call_opens_another(
    upstream: Upstream, clients: McpClientPool
) -> None:
    client = clients.client(sse(upstream), "ada", None)
    assert (await call(client, "echo", {})).ok
    outcomes: list[ToolOutcome] = []

    async def hold() -> None:
        outcomes.append(await call(client, "hold", {}))

    held = upstream.held
    with anyio.fail_after(SECONDS):
        async with httpx2.AsyncClient() as other, anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await until(lambda: upstream.held > held)
            await other.post(f"{upstream.url}/end")
    assert "ended its stream" in outcomes[0].text
    assert (await call(client, "echo", {})).ok


@pytest.mark.parametrize("elsewhere", ["http://127.0.0.1:1/messages", "//example.com/messages", "https:/messages"])
async def test_requests_are_never_posted_to_another_origin(
    upstream: Upstream, clients: McpClientPool, elsewhere: str
) -> None:
    upstream.elsewhere = elsewhere
    with pytest.raises(McpServerUnavailable, match="another origin"):
        await clients.client(sse(upstream), "eve", None).call_tool("echo", {})


async def test_a_server_that_gives_no_stream_is_told_of(upstream: Upstream, clients: McpClientPool) -> None:
    with pytest.raises(McpServerUnavailable, match=r"no stream of events \(HTTP 405\).*transport to http"):
        await clients.client(sse(upstream, "/mcp"), None, None).call_tool("echo", {})
    with pytest.raises(McpServerUnavailable, match="ConnectError"):
        await clients.client(McpServer("gone", "http://127.0.0.1:1/sse", transport="sse"), None, None).call_tool(
            "echo", {}
        )
    upstream.guarded = True
    with pytest.raises(McpUnauthorized, match="HTTP 401"):
        await clients.client(sse(upstream), "ben", None).call_tool("echo", {})


async def test_progress_is_handed_on_and_a_call_that_nobody_waits_for_is_cancelled(
    upstream: Upstream, clients: McpClientPool
) -> None:
    client, steps = clients.client(sse(upstream), "ada", None), list[float]()

    async def progress(done: float, _total: float | None, _message: str | None) -> None:
        steps.append(done)

    await client.call_tool("steps", {}, progress=progress)
    assert steps == [1, 2, 3]
    held, left = upstream.held, upstream.left
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hold", dict[str, object]())
            await until(lambda: upstream.held > held)
            tasks.cancel_scope.cancel()
        await until(lambda: upstream.left > left)
    assert "notifications/cancelled" in [note["method"] for note in upstream.notes]
