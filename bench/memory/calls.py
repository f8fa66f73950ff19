"""Measures what a call of a memory tool costs, against `whoami` on the same server in the same run."""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

from bench.claims import Verdict
from bench.processes import KEPT_VARIABLES, ROOT, START_SECONDS, STOP_SECONDS
from bench.wire import connected, exchange

VERSION = "2026-07-28"
FLOOR = "whoami"
OPEN = re.compile(r"is open: http://127\.0\.0\.1:(\d+)/")
KEY = re.compile(r"\bzm_\w+")
NOTE = "Ada prefers the window seat on the night train to Vienna, and two pillows if there are any"
# Lists and searches run over this many, about as many as a person has after some weeks.
KEPT = 1_000
WARM_UP = 20
MOST_FLOORS = 8.0


@dataclass(frozen=True, slots=True)
class Served:
    """`frontdesk up` on an empty folder, with the key that it made."""

    port: int
    key: str


@dataclass(frozen=True, slots=True)
class Tool:
    """The calls, and how many a second each round made, one after the other."""

    name: str
    rates: tuple[float, ...]
    latencies_ms: tuple[float, ...]

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def p95_ms(self) -> float:
        return statistics.quantiles(self.latencies_ms, n=20)[18]

    def dearer_than(self, floor: "Tool") -> list[float]:
        """How many calls of `whoami` take as long as one call, round by round."""
        return [other / own for own, other in zip(self.rates, floor.rates, strict=True)]


def measure_calls(folder: Path, rounds: int, calls: int) -> list[Tool]:
    """Each round calls every tool; `whoami` is the first."""
    with _served(folder) as server, connected(server.port) as line:
        first = _furnish(line, server)
        asked = _asked(first)
        taken: dict[str, list[list[int]]] = {name: [] for name in asked}
        for _ in range(rounds):
            for name, given in asked.items():
                taken[name].append(_timed(line, server, name, given, calls))
    return [_tool(name, found) for name, found in taken.items()]


def _asked(task_id: str) -> Mapping[str, Mapping[str, object]]:
    return {
        FLOOR: {},
        "get_task": {"id": task_id},
        "search_tasks": {"limit": 20},
        "create_task": {"title": "Book the train", "due_date": "2030-01-01", "tags": ["travel"]},
        "add_memory": {"note": NOTE, "tags": ["travel"]},
        "search_memories": {"search": "where does Ada like to sit", "limit": 10},
    }


def _tool(name: str, rounds: list[list[int]]) -> Tool:
    rates = tuple(1e9 / statistics.mean(one) for one in rounds)
    return Tool(name, rates, tuple(each / 1e6 for one in rounds for each in one))


def _furnish(line: socket, server: Served) -> str:
    """The id of one task among as many as one person has."""
    for number in range(KEPT // 2):
        _call(line, server, "add_memory", {"note": f"{NOTE}, said on day {number}"})
    made = [_call(line, server, "create_task", {"title": f"Task {number}"}) for number in range(KEPT // 2)]
    return made[0]["structuredContent"]["task"]["id"]


def _timed(line: socket, server: Served, name: str, given: Mapping[str, object], calls: int) -> list[int]:
    request = _request(server, name, given)
    for _ in range(WARM_UP):
        _answer(exchange(line, request))
    taken: list[int] = []
    for _ in range(calls):
        started = time.perf_counter_ns()
        exchange(line, request)
        taken.append(time.perf_counter_ns() - started)
    return taken


def _call(line: socket, server: Served, name: str, given: Mapping[str, object]) -> dict[str, Any]:
    return _answer(exchange(line, _request(server, name, given)))


def _answer(answer: bytes) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] or json.loads(body)["result"].get("isError"):
        raise RuntimeError(f"a call went wrong: {answer.decode(errors='replace')[:1000]}")
    return json.loads(body)["result"]


def _request(server: Served, name: str, given: Mapping[str, object]) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": dict[str, object](),
    }
    params = {"name": name, "arguments": given, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "Host": f"127.0.0.1:{server.port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        "Authorization": f"Bearer {server.key}",
        "Content-Length": str(len(body)),
    }
    head = "".join(f"{header}: {value}\r\n" for header, value in headers.items())
    return f"POST /mcp/memory HTTP/1.1\r\n{head}\r\n".encode() + body


@contextmanager
def _served(folder: Path) -> Generator[Served]:
    log, data = folder / "memory-calls.log", folder / "memory-calls"
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "frontdesk", "up", "--port", "0"],
            env=kept | {"PYTHONPATH": str(ROOT), "FRONTDESK_DATA": str(data)},
            cwd=folder,
            stdout=sink,
            stderr=sink,
        )
    try:
        yield _ready(process, log)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _ready(process: subprocess.Popen[bytes], log: Path) -> Served:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        said = log.read_text()
        port, key = OPEN.search(said), KEY.search(said)
        if port and key:
            return Served(int(port[1]), key[0])
        time.sleep(0.05)
    raise RuntimeError(f"the server did not open, or made no key:\n{log.read_text()[-2000:]}")


def table(tools: list[Tool]) -> str:
    """Calls per second, one after the other over one connection, and each in calls of `whoami`."""
    rows = [
        f"{one.name:<18}{one.rate:>8,.0f} a second{one.p95_ms:>9.2f} ms p95"
        f"{statistics.median(one.dearer_than(tools[0])):>8.1f} x {FLOOR}"
        for one in tools
    ]
    return "\n".join([f"with {KEPT:,} tasks and memories, on SQLite", *rows])


def calls_verdicts(tools: list[Tool]) -> list[Verdict]:
    floor, named = tools[0], {one.name: one for one in tools}
    times = named["get_task"].dearer_than(floor)
    claim = f"to get a task takes at most {MOST_FLOORS:g} times as long as `{FLOOR}`, which touches no record"
    return [Verdict(claim, statistics.median(times), MOST_FLOORS, tuple(times))]
