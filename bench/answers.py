"""Measures calls through the gateway with answers of all sizes, cut at random, eight calls at a time."""

import itertools
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio

from bench.claims import Verdict
from bench.processes import ROOT
from bench.proxies.programs import started
from bench.servers.sized import CALLED, text_of
from frontdesk.identity.model import Caller
from frontdesk.mcp_client.model import McpServer
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.tools.calls import CallPolicy, ToolGateway
from frontdesk.tools.model import CatalogueTool

SIZES = (*(step * 10**power for power in range(7) for step in (1, 3)), 10**7)
FULL_CALLS, QUICK_CALLS = 10_000, 1_000
AT_ONCE = 8
PEOPLE = 3
# Each size has this many texts, so that an answer that goes to the wrong call is noticed.
TEXTS = 4
WARM_UP = 64
SECONDS = 60.0
MOST_TIMES = 10.0
TOOL = CatalogueTool(f"sized::{CALLED}", "sized", CALLED, "", {"type": "object"})


@dataclass(frozen=True, slots=True)
class AnswersMeasured:
    """Seconds of each call by the size of its answer, the number of incomplete answers, and the CPU of all calls."""

    taken: dict[int, list[float]]
    broken: list[str]
    cpu_seconds: float

    @property
    def count(self) -> int:
        return sum(map(len, self.taken.values()))

    def worst(self, size: int) -> float:
        """The slowest call of a size, as a multiple of the median."""
        return max(self.taken[size]) / statistics.median(self.taken[size])


def measure_answers(folder: Path, calls: int) -> AnswersMeasured:
    """Make this many calls, with the sizes evenly distributed and in random order."""
    command = [sys.executable, "-m", "bench.servers.sized"]
    with started("sized", command, folder, {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}) as program:
        url = f"http://127.0.0.1:{program.said_port()}/mcp"
        return anyio.run(_measure, url, calls, backend_options={"use_uvloop": True})


async def _measure(url: str, calls: int) -> AnswersMeasured:
    clients = McpClientPool(timeout=SECONDS)
    gateway = ToolGateway(
        KnownServers([McpServer("sized", url)]), clients, "bench", CallPolicy(max_result=2 * SIZES[-1])
    )
    for size, seed in itertools.product(SIZES, range(TEXTS)):
        _expected(size, seed)
    await _call_all(gateway, _wanted(WARM_UP))
    before = time.process_time()
    taken, broken = await _call_all(gateway, _wanted(calls))
    spent = time.process_time() - before
    await clients.close()
    return AnswersMeasured(taken, broken, spent)


def _wanted(calls: int) -> Iterator[tuple[int, int]]:
    wanted = [(SIZES[number % len(SIZES)], number // len(SIZES) % TEXTS) for number in range(calls)]
    random.Random(calls).shuffle(wanted)
    return iter(wanted)


async def _call_all(
    gateway: ToolGateway, wanted: Iterator[tuple[int, int]]
) -> tuple[dict[int, list[float]], list[str]]:
    taken: dict[int, list[float]] = defaultdict(list)
    broken: list[str] = []

    async def call_on(caller: Caller) -> None:
        for size, seed in wanted:
            began = time.perf_counter()
            result = await gateway.call(caller, TOOL, {"size": size, "seed": seed})
            taken[size].append(time.perf_counter() - began)
            if result.text != _expected(size, seed):
                broken.append(f"{size} bytes: {result.text[:200]}")

    async with anyio.create_task_group() as tasks:
        for number in range(AT_ONCE):
            tasks.start_soon(partial(call_on, Caller("bench", agent_id="bench", user_id=f"user-{number % PEOPLE}")))
    return taken, broken


@cache
def _expected(size: int, seed: int) -> str:
    return text_of(size, seed)


def answers_verdicts(measured: AnswersMeasured) -> list[Verdict]:
    calls = f"{measured.count:,} calls with answers of {SIZES[0]} B to {SIZES[-1] // 10**6} MB, {AT_ONCE} at once"
    worst = [measured.worst(size) for size in SIZES]
    return [
        Verdict(f"of {calls}, so many are not answered whole", len(measured.broken), 0, ()),
        Verdict(f"of {calls}, the slowest takes so many times the median of its size", max(worst), MOST_TIMES, ()),
    ]


def table(measured: AnswersMeasured) -> str:
    """One line per size."""
    rows = [("answer", "calls", "p50", "slowest", "times p50")]
    rows += [_row(size, measured.taken[size], measured.worst(size)) for size in SIZES]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def document(measured: AnswersMeasured) -> dict[str, Any]:
    taken = {str(size): measured.taken[size] for size in SIZES}
    return {"taken": taken, "broken": measured.broken, "cpu_seconds": measured.cpu_seconds}


def _row(size: int, taken: Sequence[float], worst: float) -> tuple[str, ...]:
    p50 = statistics.median(taken)
    return (f"{size:,} B", f"{len(taken):,}", f"{p50 * 1e3:.2f} ms", f"{max(taken) * 1e3:.2f} ms", f"{worst:.1f}")
