"""The ways of a call to an upstream with 1,000 tools: directly, or through a proxy that is set up to do it cheaply."""

import json
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.processes import ROOT
from bench.proxies import contextforge, frames
from bench.proxies.programs import Program, free_port, installed, resident_bytes, started
from bench.servers.listening import CALLED
from bench.wire import connected, exchange

TOOLS = 1000
UPSTREAM = "up"
CALL_TOOL = "call_tool"


class Way(StrEnum):
    """How a call gets to the upstream."""

    DIRECT = "direct"
    MCP_PROXY = "mcp-proxy"
    CONTEXTFORGE = "contextforge"
    DESK = "desk"


@dataclass(frozen=True, slots=True)
class Open:
    """A way that is ready: where to call, with which bytes, and the processes of the upstream and of the proxy."""

    way: Way
    port: int
    call: bytes
    upstream: int
    proxies: tuple[int, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.upstream, *self.proxies)

    def resident_bytes(self) -> int:
        """Memory of the proxy; the upstream's, where there is none."""
        return sum(map(resident_bytes, self.proxies or (self.upstream,)))


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that listens, and how the upstream's tool is called there."""

    program: Program
    port: int
    tool: str
    arguments: Mapping[str, Any]


@contextmanager
def opened(way: Way, folder: Path) -> Generator[Open]:
    """Each way ends at an upstream of its own, so that what a proxy asks of it is told apart."""
    with ExitStack() as stack:
        upstream = stack.enter_context(_upstream(way, folder))
        port = upstream.said_port()
        if way is Way.DIRECT:
            proxy = Proxy(upstream, port, CALLED, frames.ARGUMENTS)
        else:
            proxy = stack.enter_context(STARTS[way](folder, f"http://127.0.0.1:{port}/mcp"))
        call = _ready_call(proxy)
        proxy.program.wait_for_rest()
        proxies = () if way is Way.DIRECT else proxy.program.pids()
        yield Open(way, proxy.port, call, upstream.process.pid, proxies)


def _ready_call(proxy: Proxy) -> bytes:
    """The call, once it is answered with what it says: a proxy may still be asking the upstream what it has."""
    with connected(proxy.port) as connection:
        session = frames.shake_hands(connection, proxy.port)
    call = frames.call(proxy.port, proxy.tool, proxy.arguments, session)

    def obstacle() -> str | None:
        with connected(proxy.port) as connection:
            answer = exchange(connection, call)
        return None if frames.says_it_back(answer) else answer.decode(errors="replace")

    proxy.program.wait_while(obstacle)
    return call


def _upstream(way: Way, folder: Path) -> AbstractContextManager[Program]:
    command = [sys.executable, "-m", "bench.servers.upstream", str(TOOLS)]
    return started(f"upstream-{way}", command, folder, {"PYTHONPATH": str(ROOT)})


@contextmanager
def _desk(folder: Path, upstream: str) -> Generator[Proxy]:
    command = [sys.executable, "-m", "frontdesk", "up", "--host", "127.0.0.1", "--port", "0"]
    variables = {
        "PYTHONPATH": str(ROOT / "src"),
        "FRONTDESK_DATA": str(folder / Way.DESK / "data"),
        "FRONTDESK_MCP_SERVERS": json.dumps([{"name": UPSTREAM, "url": upstream}]),
    }
    arguments = {"name": f"{UPSTREAM}::{CALLED}", "arguments": frames.ARGUMENTS}
    with started(Way.DESK, command, folder, variables) as program:
        yield Proxy(program, program.said_port(), CALL_TOOL, arguments)


@contextmanager
def _mcp_proxy(folder: Path, upstream: str) -> Generator[Proxy]:
    """It passes HTTP on to stdio, or stdio on to HTTP, so it takes two of it to get from HTTP to HTTP."""
    command = [installed("mcp-proxy", "mcp-proxy"), "--log-level", "WARNING"]
    port = free_port()
    chain = [*command, "--port", str(port), "--", *command, "--transport", "streamablehttp", upstream]
    with started(Way.MCP_PROXY, chain, folder, {}) as program:
        program.wait_for_port(port)
        yield Proxy(program, port, CALLED, frames.ARGUMENTS)


@contextmanager
def _contextforge(folder: Path, upstream: str) -> Generator[Proxy]:
    port = free_port()
    command = [installed("contextforge", "mcpgateway"), "--host", "127.0.0.1", "--port", str(port), "--no-access-log"]
    with started(Way.CONTEXTFORGE, command, folder, contextforge.variables(folder / Way.CONTEXTFORGE)) as program:
        program.wait_for_port(port)
        contextforge.register(port, UPSTREAM, upstream)
        yield Proxy(program, port, contextforge.tool_name(UPSTREAM, CALLED), frames.ARGUMENTS)


STARTS: Mapping[Way, Callable[[Path, str], AbstractContextManager[Proxy]]] = {
    Way.MCP_PROXY: _mcp_proxy,
    Way.CONTEXTFORGE: _contextforge,
    Way.DESK: _desk,
}
