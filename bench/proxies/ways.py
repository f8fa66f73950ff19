"""The ways of a call to an upstream with 1,000 tools: directly, or through a proxy that is set up to be cheap."""

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
    """How a call reaches the upstream."""

    DIRECT = "direct"
    MCP_PROXY = "mcp-proxy"
    CONTEXTFORGE = "contextforge"
    DESK = "desk"


@dataclass(frozen=True, slots=True)
class Open:
    """A way that is ready: the address, the bytes of a request, and the processes of the upstream and of the proxy."""

    way: Way
    port: int
    call: bytes
    upstream: int
    proxies: tuple[int, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.upstream, *self.proxies)

    def resident_bytes(self) -> int:
        """Memory of the proxy, or of the upstream where there is no proxy."""
        return sum(map(resident_bytes, self.proxies or (self.upstream,)))


@dataclass(frozen=True, slots=True)
class Proxy:
    """A listening proxy, and the name that the upstream's tool has there."""

    program: Program
    port: int
    tool: str
    arguments: Mapping[str, Any]


@contextmanager
def opened(way: Way, folder: Path) -> Generator[Open]:
    """Each way has an upstream of its own, so that the requests of the proxies stay separate."""
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
    """Call until the answer is right: a proxy may still be fetching the upstream's tools."""
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
    """mcp-proxy translates HTTP to stdio or stdio to HTTP, so HTTP to HTTP takes two of them."""
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
