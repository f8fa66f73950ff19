"""Tests an upstream's HTTP answers, of every size and in any pieces, and their connections."""

import random
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import anyio
import pytest
from bench.servers.sized import CALLED, SizedServer, text_of

from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.mcp_client.model import McpServer
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.tools.calls import CallPolicy, ToolGateway
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.wire import ask

KB, MB = 1000, 1000 * 1000
# The gateway passes on results up to 1 MiB.
HANDED_ON = (1, 400 * KB, 2, 900 * KB, 3, 300 * KB, 4, 600 * KB, 5)
SIZES = (1, 10, 100, KB, 10 * KB, 64 * KB, 100 * KB, 256 * KB, 300 * KB, 500 * KB, 900 * KB, 3 * MB, 10 * MB)
# Fewer of the large ones, which are slow and show nothing more.
TIMES = (40, 40, 40, 40, 40, 40, 20, 20, 20, 20, 10, 3, 2)
AT_ONCE = 8
SECONDS = 10
PADDING = 600 * KB


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Both event loops: they pass on received data in pieces of different sizes."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def server() -> AsyncGenerator[SizedServer]:
    async with SizedServer(PADDING).opened() as opened:
        yield opened


@pytest.fixture
async def installation(tmp_path_factory: pytest.TempPathFactory, server: SizedServer) -> AsyncGenerator[App]:
    settings = settings_with(FRONTDESK_DATA=tmp_path_factory.mktemp("sized") / "data", FRONTDESK_EMBEDDINGS="off")
    async with open_app(settings) as app:
        await app.tools.catalogue.add(ServerSpec("sized", url=server.url, timeout=SECONDS))
        yield app


@shows("KEPT-08")
async def test_after_a_large_answer_the_next_call_on_its_connection_is_answered(
    installation: App, server: SizedServer
) -> None:
    asgi = build_application(installation)
    for seed, size in enumerate(HANDED_ON * 4):
        told = await ask(asgi, "call_tool", {"name": CALLED, "arguments": {"size": size, "seed": seed}}, "agent-1")
        assert told.ok, told.text
        assert told.text == text_of(size, seed)
    # One connection to list the tools, and one for all calls.
    assert server.connections <= 2


@shows("KEPT-08")
async def test_a_large_list_of_tools_leaves_its_connection_to_the_next_request(server: SizedServer) -> None:
    clients = McpClientPool(timeout=SECONDS)
    client = clients.client(McpServer("sized", server.url), None, None)
    for _ in range(20):
        (listed,) = await client.tools()
        assert len(listed.description) > PADDING
    await clients.close()
    assert server.connections == 1


@shows("KEPT-08")
async def test_answers_of_every_size_and_in_any_pieces_arrive_whole_eight_at_once(server: SizedServer) -> None:
    clients, servers = McpClientPool(timeout=SECONDS), KnownServers([McpServer("sized", server.url)])
    gateway = ToolGateway(servers, clients, "desk", CallPolicy(max_result=2 * SIZES[-1]))
    tool = CatalogueTool(f"sized::{CALLED}", "sized", CALLED, "", {"type": "object"})
    chance = random.Random(8)
    wanted = [(size, seed) for size, times in zip(SIZES, TIMES, strict=True) for seed in range(times)]
    chance.shuffle(wanted)
    broken: list[tuple[int, int, str]] = []

    async def call_all(caller: Caller) -> None:
        while wanted:
            size, seed = wanted.pop()
            result = await gateway.call(caller, tool, {"size": size, "seed": seed})
            if result.text != text_of(size, seed):
                broken.append((size, seed, result.text[:100]))

    async with anyio.create_task_group() as tasks:
        for number in range(AT_ONCE):
            tasks.start_soon(partial(call_all, Caller("req-1", agent_id="agent-1", user_id=f"user-{number % 3}")))
    await clients.close()
    assert broken == []
    assert server.calls == sum(TIMES)
    # Eight connections at work; one of them opened each of three persons' sessions.
    assert server.connections <= AT_ONCE + 3
