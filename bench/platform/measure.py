"""Measures the platform's client and its alternatives, by turns in one process."""

import logging
import statistics
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice, permutations
from typing import Any

import anyio
import anyio.lowlevel

from bench.platform.asking import Ask, DiscoveryCall, Silent, Source, Way, asked, environment, ours, theirs
from bench.processes import ROOT
from frontdesk.agent365 import McpToolServerConfigurationService, reset_application_name_cache

WARM_UP = 30
SERVERS = 5
WATCHED = "pyproject.toml"
SETTLING = 5
# Neighbouring orders are similar; steps of this size visit all 120 in a mixed sequence.
APART = 37


@dataclass(frozen=True, slots=True)
class Effort:
    """The rounds, and the requests of each way in a round."""

    rounds: int
    requests: int


FULL = Effort(9, 300)
QUICK = Effort(3, 60)


@dataclass(frozen=True, slots=True)
class PlatformMeasured:
    """Seconds of each request by source of the id, way and round, and the number of reads of the project's file."""

    seconds: Mapping[Source, Mapping[Way, Sequence[Sequence[float]]]]
    requests: int
    reads: int

    def p50_us(self, source: Source, way: Way) -> float:
        return statistics.median(one for taken in self.seconds[source][way] for one in taken) * 1e6

    def ratios(self, source: Source, way: Way, other: Way) -> tuple[float, ...]:
        """For each round, the ratio of the medians of two ways."""
        both = zip(self.seconds[source][way], self.seconds[source][other], strict=True)
        return tuple(statistics.median(one) / statistics.median(two) for one, two in both)


def measure_platform(effort: Effort) -> PlatformMeasured:
    # The clients' own log events would be measured too.
    logging.disable(logging.WARNING)
    try:
        with _platform() as port, environment(port), _reads() as reads:
            reset_application_name_cache()
            seconds = {source: anyio.run(_measure, effort, source) for source in Source}
            return PlatformMeasured(seconds, effort.rounds * effort.requests * 3 * len(Source), len(reads))
    finally:
        logging.disable(logging.NOTSET)


async def _measure(effort: Effort, source: Source) -> Mapping[Way, Sequence[Sequence[float]]]:
    request = asked(source)
    async with McpToolServerConfigurationService() as kept:
        ways = {
            Way.WITH: ours(McpToolServerConfigurationService()),
            Way.WITHOUT: ours(Silent()),
            Way.AGAIN: ours(Silent()),
            Way.KEPT: ours(kept),
            Way.SDK: theirs(),
        }
        for ask in ways.values():
            for _ in range(WARM_UP):
                await _timed(ask, request)
        found: defaultdict[Way, list[list[float]]] = defaultdict(list)
        for _ in range(effort.rounds):
            taken = await _round(ways, request, effort.requests)
            for way, seconds in taken.items():
                found[way].append(seconds)
    return found


async def _round(ways: Mapping[Way, Ask], request: DiscoveryCall, count: int) -> Mapping[Way, list[float]]:
    """One of each by turns, in all orders equally: the leftovers of one slow down the next."""
    taken: defaultdict[Way, list[float]] = defaultdict(list)
    orders = cycle(permutations(ways))
    for order in islice(orders, 0, count * APART, APART):
        for way in order:
            taken[way].append(await _timed(ways[way], request))
            await _settle()
    return taken


async def _settle() -> None:
    """Let closed connections end before the next request is timed."""
    for _ in range(SETTLING):
        await anyio.lowlevel.checkpoint()


async def _timed(ask: Ask, request: DiscoveryCall) -> float:
    began = time.perf_counter()
    if await ask(request) != SERVERS:
        raise RuntimeError("the platform's servers were not found")
    return time.perf_counter() - began


@contextmanager
def _platform() -> Generator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.platform.answering"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the platform says nothing")
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate(timeout=10)


@contextmanager
def _reads() -> Generator[list[str]]:
    """Records each time the project's file is opened; the stack shows which reads are the SDK's own."""
    found: list[str] = []
    on = True

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if on and event == "open" and str(arguments[0]).endswith(WATCHED) and not _is_theirs():
            found.append(str(arguments[0]))

    # An audit hook cannot be removed, only switched off.
    sys.addaudithook(hear)
    try:
        yield found
    finally:
        on = False


def _is_theirs() -> bool:
    return any("microsoft_agents_a365" in frame.f_code.co_filename for frame, _ in traceback.walk_stack(None))
