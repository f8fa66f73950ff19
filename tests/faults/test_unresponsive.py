"""Tests tool servers, databases and clients that hang or misbehave: all others continue to work."""

import signal
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.crawler import CrawlPolicy, CrawlStage, CrawlStep
from frontdesk.tools.index_segments import IndexQuery
from frontdesk.tools.server_registry import ServerSources
from frontdesk.tools.servers import ServerOrigin, ServerSpec, ServerState, ServerStatus
from tests.requirements import shows
from tests.support.desk import Desk, open_desk
from tests.support.postgres import Postgres
from tests.support.tool_servers import ToolServer, open_dying_server, open_tool_server, tool, tools
from tests.support.wire import call_upstream

# Servers that misbehave when their tools are listed: the other servers, and all searches, continue


COUNT = 25
# The time limit of a server; the server that hangs uses all of it.
PATIENCE = 1.0
SECONDS = 30
HANGS, DIES, LIES, RENAMES, SOUND = "hangs", "dies", "lies", "renames", "sound"


@dataclass(slots=True)
class Street:
    """Five servers, each with the same number of tools, and their addresses."""

    servers: dict[str, ToolServer]
    urls: dict[str, str]

    def misbehave(self) -> None:
        """Make each server fail in its own way; the one that dies needs no signal."""
        self.servers[HANGS].hangs = True
        self.servers[LIES].tools = [
            tool("lies_0", schema={"type": "array", "items": "everything"}),
            tool("lies_1", schema=_taking(text={"type": "sting"}, n={"type": "integer"})),
            tool("lies_2", schema=_taking(x={"$ref": "http://127.0.0.1:1/secrets"})),
            *tools(f"lies_{number}" for number in range(3, COUNT)),
        ]
        self.servers[RENAMES].tools = tools(f"renamed_{number}" for number in range(COUNT))


@contextmanager
def open_street() -> Generator[Street]:
    with (
        open_tool_server(HANGS, _named(HANGS)) as hangs,
        open_tool_server(LIES, _named(LIES)) as lies,
        open_tool_server(RENAMES, _named(RENAMES)) as renames,
        open_tool_server(SOUND, _named(SOUND)) as sound,
        open_dying_server(DIES, COUNT) as dying,
    ):
        servers = {server.name: server for server in (hangs, lies, renames, sound)}
        yield Street(servers, {DIES: dying, **{name: server.url for name, server in servers.items()}})


@dataclass(frozen=True, slots=True)
class Installation:
    """The catalogue, and the clients that call its tools."""

    catalogue: Catalogue
    servers: KnownServers
    clients: McpClientPool

    def found(self, text: str) -> list[str]:
        return [hit.id for hit in self.catalogue.index.search(IndexQuery(text, limit=3))]

    def states(self) -> dict[str, ServerState]:
        return {state.name: state for state in self.catalogue.servers()}

    async def call(self, tool_id: str) -> str:
        """The answer of the tool with this id."""
        found = await self.catalogue.get(tool_id)
        assert found is not None
        server = self.servers.get(found.server)
        assert server is not None
        return (await call_upstream(self.clients.client(server, None, None), found.name, {"text": "x"})).text


@asynccontextmanager
async def open_installation(database: Database, street: Street) -> AsyncGenerator[Installation]:
    servers, clients = KnownServers(), McpClientPool()
    specs = [ServerSpec(name, url=url, origin=ServerOrigin.SETTINGS) for name, url in street.urls.items()]
    catalogue = Catalogue(database, servers, clients, named=ServerSources(specs), manners=CrawlPolicy(seconds=PATIENCE))
    try:
        await catalogue.declare()
        yield Installation(catalogue, servers, clients)
    finally:
        await clients.close()


@shows("TOOLS-CRAWL")
async def test_of_five_servers_four_misbehave_and_search_goes_on_and_each_is_reported(database: Database) -> None:
    with open_street() as street, anyio.fail_after(SECONDS):
        async with open_installation(database, street) as installation:
            steps = await installation.catalogue.refresh()
            assert {step.stage for step in steps} == {CrawlStage.LISTED}, steps
            assert len(installation.catalogue.index) == 5 * COUNT
            street.misbehave()
            ends = await _refresh_while_searching(installation, street)
            assert {end.server for end in ends if end.stage is CrawlStage.FAILED} == {HANGS, DIES}
            assert ends[-1].server == HANGS, "nobody waited for it"
            _check_reports(installation.states())
            await _check_tools(installation)
            await _check_routes(installation, street)


async def _refresh_while_searching(installation: Installation, street: Street) -> list[CrawlStep]:
    """List the tools of all servers again; meanwhile searches find tools, also those of the silent server."""
    ends: list[CrawlStep] = []

    def told(step: CrawlStep) -> None:
        if step.stage is not CrawlStage.STARTED:
            ends.append(step)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(installation.catalogue.refresh, None, told)
        await anyio.to_thread.run_sync(street.servers[HANGS].asked.wait, SECONDS)
        for name in (HANGS, DIES, LIES, SOUND):
            [first, *_] = installation.found(f"{name}_7")
            assert first == f"{name}::{name}_7"
            assert (await installation.catalogue.many([first]))[first].server == name
        assert HANGS in installation.catalogue.progress().asking
        assert HANGS not in {end.server for end in ends}, "it hangs still, and kept nobody from searching"
    return ends


def _check_reports(states: dict[str, ServerState]) -> None:
    assert {name: state.status for name, state in states.items()} == {
        HANGS: ServerStatus.FAILED,
        DIES: ServerStatus.FAILED,
        LIES: ServerStatus.OK,
        RENAMES: ServerStatus.OK,
        SOUND: ServerStatus.OK,
    }
    assert "within 1 s" in states[HANGS].error
    assert states[DIES].error
    problems = "\n".join(states[LIES].problems)
    assert all(name in problems for name in ("lies_0", "lies_1", "lies_2")), problems
    assert f"{COUNT} new (renamed_0" in states[RENAMES].changes[0].what
    assert f"{COUNT} gone (renames_0" in states[RENAMES].changes[0].what
    assert (states[SOUND].problems, states[SOUND].changes, states[SOUND].error) == ((), (), "")


async def _check_tools(installation: Installation) -> None:
    """The silent servers' tools stay, marked stale; none is half stored; a false listing affects only its own tools."""
    for name in (HANGS, DIES, LIES, RENAMES, SOUND):
        listed = await installation.catalogue.page(ToolFilter(server=name, limit=100))
        assert len(listed) == COUNT
        assert {one.stale for one in listed} == {name in (HANGS, DIES)}
        assert {one.server for one in listed} == {name}
    lying = await installation.catalogue.many([f"{LIES}::lies_{number}" for number in range(3)])
    assert [one.parameters for one in lying.values()] == [
        {"type": "object"},
        {"type": "object", "properties": {"text": {}, "n": {"type": "integer"}}},
        {"type": "object", "properties": {"x": {}}},
    ]
    assert all(one.change for one in lying.values()), "a changed schema is flagged"
    assert [found for found in installation.found("renames_7") if found.startswith(f"{RENAMES}::renames")] == []
    assert installation.found("renamed_7")[0] == f"{RENAMES}::renamed_7"


async def _check_routes(installation: Installation, street: Street) -> None:
    """A tool's id leads to its own server only; the id of a removed tool leads nowhere."""
    for name in (LIES, SOUND):
        assert await installation.call(f"{name}::{name}_3") == f"{name}: {name}_3"
    assert await installation.call(f"{RENAMES}::renamed_3") == f"{RENAMES}: renamed_3"
    assert await installation.call(f"{HANGS}::hangs_3") == f"{HANGS}: hangs_3", "it only hangs when it lists"
    assert "Error" in await installation.call(f"{DIES}::dies_3")
    for gone in ("renames::renames_3", "renames__renames_3", "renames_3"):
        assert await installation.catalogue.resolve(gone) == []
    assert {name: server.called for name, server in street.servers.items()} == {
        HANGS: ["hangs_3"],
        LIES: ["lies_3"],
        RENAMES: ["renamed_3"],
        SOUND: ["sound_3"],
    }


def _taking(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def _named(name: str) -> list[dict[str, object]]:
    return tools(f"{name}_{number}" for number in range(COUNT))


# Parts that stop answering: a database that hangs, a client that never finishes its request


def health(desk: Desk) -> int:
    with closing(HTTPConnection(urlsplit(desk.url).netloc, timeout=SECONDS)) as connection:
        connection.request("GET", "/api/health")
        return connection.getresponse().status


def test_a_database_that_hangs_holds_up_neither_health_nor_the_stop(tmp_path: Path, postgres: Postgres) -> None:
    with open_desk(tmp_path / "data", FRONTDESK_DATABASE_URL=postgres.create_database()) as desk:
        assert health(desk) == 200
        with postgres.frozen():
            assert health(desk) == 503
            desk.process.send_signal(signal.SIGTERM)
            assert desk.process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n" + b"x-filler: " + b"a" * 200_000, b"GET / HTTP/1.1\r\n" + b"x-f: a\r\n" * 20_000],
    ids=["one long header", "many headers"],
)
def test_a_head_without_an_end_is_cut_off(desk: Desk, said: bytes) -> None:
    address = urlsplit(desk.url)
    # If the server hangs up while the client is still sending, the client sees a reset or a broken pipe.
    with (
        socket.create_connection((address.hostname, address.port), timeout=SECONDS) as client,
        suppress(ConnectionError),
    ):
        client.sendall(said)
        assert client.recv(1) == b""
    assert health(desk) == 200
