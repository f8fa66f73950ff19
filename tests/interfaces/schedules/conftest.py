"""Fixtures: a running server that delivers nothing by itself, agents for prompts, and real MCP clients."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from frontdesk.agents.host import NewAgent
from frontdesk.app import open_app
from tests.conftest import settings_with
from tests.support.chat import key
from tests.support.desk import Desk, frontdesk, open_desk

SECONDS = 60
# The contract's examples are of a past year.
NEXT_YEAR = datetime.now(UTC).year + 1


# The tools that PromptYoSelf does not have mark their errors; its own tools return them like any other answer.
MARKED = frozenset({"pause", "resume", "update", "run_now", "history", "preview"})


class Asking:
    """A client of the MCP endpoint, and the answer of each schedule tool."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer, which the text repeats; an error is marked where the contract allows it."""
        result = await self.client.call_tool(f"promptyoself_{tool}", arguments)
        told = result.structured_content
        assert told is not None
        assert [json.loads(block.text) for block in result.content if isinstance(block, TextContent)] == [told]
        assert bool(result.is_error) == ("error" in told and tool in MARKED)
        return told

    async def error(self, tool: str, **arguments: Any) -> str:
        told = await self(tool, **arguments)
        assert set(told) == {"error"}, told
        return told["error"]


Connect = Callable[..., AbstractAsyncContextManager[Asking]]


@asynccontextmanager
async def connected(
    desk: Desk,
    mode: str = "auto",
    *,
    agent: str | None = None,
    proof: str | None = None,
    endpoint: str = "/mcp/schedule",
) -> AsyncGenerator[Asking]:
    headers = {"x-agent-id": agent} if agent else {}
    headers |= {"authorization": f"Bearer {proof}"} if proof else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http,
        Client(streamable_http_client(f"{desk.url}{endpoint}", http_client=http), mode=mode) as client,
    ):
        yield Asking(client)


@pytest.fixture(scope="package")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Nothing runs before a test requests it, and schedules may repeat every second."""
    data = tmp_path_factory.mktemp("schedule") / "data"
    with open_desk(data, FRONTDESK_WORKER="false", FRONTDESK_SCHEDULE_SHORTEST="1") as running:
        yield running


@pytest.fixture(scope="package")
def agent(desk: Desk) -> str:
    """An agent of the host; made without an event loop, which would stay for the tests that start their own."""
    return frontdesk("agents", "create", "Ada", data=desk.data).stdout.strip()


@pytest.fixture
async def stranger(desk: Desk) -> str:
    """An agent with no schedules yet."""
    return await created(desk, "Ben")


@pytest.fixture(params=["auto", "legacy"])
async def ask(request: pytest.FixtureRequest, desk: Desk, agent: str) -> AsyncGenerator[Asking]:
    """A client of each era, on this machine, that names no agent by itself."""
    async with connected(desk, request.param) as asking:
        yield asking


async def created(desk: Desk, name: str) -> str:
    """A new agent of a server's host."""
    async with open_app(settings_with(FRONTDESK_DATA=desk.data)) as app:
        return (await app.host.create(NewAgent(name))).id


async def made_key(desk: Desk, user: str | None = None, *scopes: str, agent: str | None = None) -> str:
    """A new key of a server."""
    async with open_app(settings_with(FRONTDESK_DATA=desk.data)) as app:
        return await key(app, user, *scopes, agent=agent)


def soon(**length: float) -> str:
    """A time from now on, as a client writes it."""
    return (datetime.now(UTC) + timedelta(**length)).isoformat()


def utc(text: str) -> datetime:
    """An answer's time, which must name its offset."""
    found = datetime.fromisoformat(text)
    assert found.tzinfo is not None
    return found.astimezone(UTC)
