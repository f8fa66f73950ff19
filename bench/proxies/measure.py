"""Measures what a call costs along each way, in rounds that visit all of them by turns."""

import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

from bench.calls import IDLE_SECONDS, SETTLE_SECONDS, SLICE, SLICE_SECONDS, WARM_UP_SECONDS, Effort
from bench.proxies.programs import cpu_seconds
from bench.proxies.ways import CALL_TOOL, Open, Way, opened
from bench.wire import AGENT, connected, timed

LIMIT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Passage:
    """The cost of a call in one round: CPU of the upstream and of each proxy, and the time until the answer."""

    upstream_us: float
    proxies_us: tuple[float, ...]
    latency_us: float
    counted: int

    @property
    def cpu_us(self) -> float:
        return self.upstream_us + sum(self.proxies_us)


@dataclass(frozen=True, slots=True)
class ProxiesMeasured:
    """Every round of a way, and the memory of its proxies at the end."""

    passages: dict[Way, list[Passage]]
    resident: dict[Way, int]

    def cpu_us(self, way: Way) -> float:
        return statistics.median(passage.cpu_us for passage in self.passages[way])

    def latency_us(self, way: Way) -> float:
        return statistics.median(passage.latency_us for passage in self.passages[way])

    def added_us(self, way: Way) -> list[float]:
        """CPU beyond the direct call, round by round: what a proxy spends, and what it makes the upstream spend."""
        pairs = zip(self.passages[way], self.passages[Way.DIRECT], strict=True)
        return [through.cpu_us - direct.cpu_us for through, direct in pairs]

    def first_proxy_us(self, way: Way) -> list[float]:
        """CPU of the one process that receives the call."""
        return [passage.proxies_us[0] for passage in self.passages[way]]


def measure_proxies(effort: Effort, folder: Path, ways: Sequence[Way] = tuple(Way)) -> ProxiesMeasured:
    """Run all ways side by side; each round uses all of them."""
    until = time.monotonic() + LIMIT_SECONDS
    passages: dict[Way, list[Passage]] = defaultdict(list)
    with ExitStack() as stack:
        standing = [stack.enter_context(opened(way, folder)) for way in ways]
        for number in range(effort.rounds):
            if time.monotonic() > until:
                raise RuntimeError(f"the proxies are not measured after {LIMIT_SECONDS} s; is the machine busy?")
            for way, passage in _round(standing if number % 2 == 0 else standing[::-1], effort):
                passages[way].append(passage)
        resident = {way.way: way.resident_bytes() for way in standing}
    measured = ProxiesMeasured(passages, resident)
    if Way.DESK in ways:
        _check_journal(folder, sum(passage.counted for passage in passages[Way.DESK]))
    return measured


def _round(ways: Sequence[Open], effort: Effort) -> Iterator[tuple[Way, Passage]]:
    """Use the ways by turns, a slice of calls each, so that other load on the machine affects all of them."""
    with ExitStack() as stack:
        lines = [_Line(way, stack.enter_context(connected(way.port))) for way in ways]
        for line in lines:
            timed(line.connection, line.way.call, SLICE, WARM_UP_SECONDS)
        time.sleep(SETTLE_SECONDS)
        idle = [_Stand.of(line.way) for line in lines]
        time.sleep(IDLE_SECONDS)
        before = [_Stand.of(line.way) for line in lines]
        while waiting := [line for line in lines if not line.done(effort)]:
            for line in waiting:
                line.taken += timed(line.connection, line.way.call, SLICE, SLICE_SECONDS)[0]
        time.sleep(SETTLE_SECONDS)
        for line, at_rest, start in zip(lines, idle, before, strict=True):
            yield line.way.way, line.passage(_spent(at_rest, start, _Stand.of(line.way)))


@dataclass(frozen=True, slots=True)
class _Stand:
    """The clocks at one moment, in seconds: wall time, and the CPU of each process on a way."""

    wall: float
    cpu: tuple[float, ...]

    @classmethod
    def of(cls, way: Open) -> "_Stand":
        return cls(time.monotonic(), tuple(map(cpu_seconds, way.pids)))


def _spent(idle: _Stand, start: _Stand, end: _Stand) -> list[float]:
    """CPU seconds of each process from start to end, minus what it spends when idle."""
    at_rest, busy = start.wall - idle.wall, end.wall - start.wall
    clocks = zip(idle.cpu, start.cpu, end.cpu, strict=True)
    return [last - first - (first - before) / at_rest * busy for before, first, last in clocks]


@dataclass(slots=True)
class _Line:
    """The connection to one way during a round, and the nanoseconds that each call took."""

    way: Open
    connection: socket
    taken: list[int] = field(default_factory=list[int])

    def done(self, effort: Effort) -> bool:
        return len(self.taken) >= effort.calls or sum(self.taken) > effort.seconds * 1e9

    def passage(self, spent: Sequence[float]) -> Passage:
        counted = len(self.taken)
        upstream, *proxies = (seconds / counted * 1e6 for seconds in spent)
        return Passage(upstream, tuple(proxies), statistics.median(self.taken) / 1e3, counted)


def _check_journal(folder: Path, calls: int) -> None:
    """Fail if Frontdesk did not write its journal: then it was not measured as it really runs."""
    with closing(sqlite3.connect(folder / Way.DESK / "data" / "frontdesk.db")) as database:
        wanted = "SELECT count(*) FROM journal WHERE action = ? AND outcome = 'ok' AND agent_id = ?"
        (written,) = database.execute(wanted, (CALL_TOOL, AGENT)).fetchone()
    if written < calls:
        raise RuntimeError(f"the desk passed on {calls} calls and has {written} of them in its journal")
