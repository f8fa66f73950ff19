"""Connections that outlive the call that makes them: opened and closed by one task each, and never left behind."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from frontdesk.agent365.extensions.adapter import ServerConnections, ServerLink
from tests.requirements import shows
from tests.support.adapting import own_tasks

LOG = logging.getLogger("test.connections")
# Limits that are never reached, and one that is at once.
LONG, SHORT = 60.0, 0.01


@dataclass(slots=True)
class Server:
    """`hangs` and `fails` name the step that does."""

    name: str
    hangs: str = ""
    fails: str = ""
    tasks: list[object] = field(default_factory=list[object])
    steps: list[str] = field(default_factory=list[str])
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def link(self) -> ServerLink["Server"]:
        return ServerLink(self.name, self, lambda: self._step("connect"), lambda: self._step("close"))

    async def _step(self, step: str) -> None:
        self.tasks.append(asyncio.current_task())
        self.steps.append(step)
        self.begun.set()
        if self.hangs == step:
            await asyncio.Event().wait()
        if self.fails == step:
            raise OSError("Authorization: Bearer secret")


async def opened(connections: ServerConnections, *servers: Server) -> list[str]:
    async with connections.open([server.link() for server in servers]) as connected:
        return [server.name for server in connected]


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncGenerator[None]:
    before = own_tasks()
    yield
    assert own_tasks() <= before


@shows("A365-ADAPTERS")
async def test_a_connection_is_closed_by_the_task_that_opened_it_whatever_task_asks() -> None:
    connections, mail = ServerConnections(LOG, LONG), Server("mail")
    assert await opened(connections, mail) == ["mail"]
    assert mail.steps == ["connect"]
    await asyncio.create_task(connections.close())
    assert mail.steps == ["connect", "close"]
    assert mail.tasks[0] is mail.tasks[1]


async def test_those_that_cannot_be_connected_are_left_out_in_time(caplog: pytest.LogCaptureFixture) -> None:
    connections = ServerConnections(LOG, SHORT)
    first, dead, hung, last = Server("a"), Server("b", fails="connect"), Server("c", hangs="connect"), Server("d")
    assert await opened(connections, first, dead, hung, last) == ["a", "d"]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "MCP server 'b' is left out, as it cannot be connected: OSError",
        "MCP server 'c' is left out, as it cannot be connected: TimeoutError",
    ]
    await connections.close()
    assert [server.steps[1:] for server in (first, dead, hung, last)] == [["close"], [], [], ["close"]]


async def test_a_block_that_raises_closes_what_it_was_given_and_nothing_else() -> None:
    connections, before, mail = ServerConnections(LOG, LONG), Server("before"), Server("mail")
    await opened(connections, before)
    with pytest.raises(ZeroDivisionError):
        async with connections.open([mail.link()]):
            raise ZeroDivisionError
    assert mail.steps == ["connect", "close"]
    assert before.steps == ["connect"]
    await connections.close()


async def test_who_stops_waiting_leaves_no_connection_behind() -> None:
    connections, mail, hung = ServerConnections(LOG, LONG), Server("mail"), Server("hung", hangs="connect")
    waiting = asyncio.create_task(opened(connections, mail, hung))
    await hung.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert mail.steps == ["connect", "close"]
    assert hung.steps == ["connect"]


async def test_closing_never_raises_and_closes_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    connections = ServerConnections(LOG, LONG, SHORT)
    rude, hung, mail = Server("rude", fails="close"), Server("hung", hangs="close"), Server("mail")
    await opened(connections, rude, hung, mail)
    await connections.close()
    assert mail.steps == ["connect", "close"]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "MCP server 'hung' could not be closed: TimeoutError",
        "MCP server 'rude' could not be closed: OSError",
    ]
    await connections.close()
    assert mail.steps == ["connect", "close"]


async def test_closing_ends_the_wait_of_those_who_still_connect() -> None:
    connections, hung = ServerConnections(LOG, LONG), Server("hung", hangs="connect")
    waiting = asyncio.create_task(opened(connections, hung))
    await hung.begun.wait()
    await connections.close()
    assert await waiting == []
