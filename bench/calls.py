"""Measures what one `tools/call` costs Frontdesk, a bare Starlette handler and FastMCP, in rounds that visit each."""

import sqlite3
import statistics
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from socket import socket

from bench.processes import Kind, Running, running
from bench.servers.listening import CALLED
from bench.wire import AGENT, Era, call_bytes, check_answer, connected, timed

SIZES = (1, 100, 1000)
# Few enough that a disturbance of the machine spans several servers, enough that each has warm caches.
SLICE = 100
SLICE_SECONDS = 0.3
WARM_UP_SECONDS = 0.4
# Longer than the journal waits before it writes: the writes that a round causes are counted in that round.
SETTLE_SECONDS = 0.5
IDLE_SECONDS = 1.0
LIMIT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure: a server that needs more than `seconds` for the calls of a round gets fewer calls."""

    rounds: int
    calls: int
    seconds: float


FULL = Effort(rounds=9, calls=600, seconds=1.0)
QUICK = Effort(rounds=3, calls=200, seconds=0.7)


@dataclass(frozen=True, slots=True)
class Case:
    """One measured case: a server with a number of tools, called in one era."""

    kind: Kind
    tools: int
    era: Era


@dataclass(frozen=True, slots=True)
class Sample:
    """The results of one round of a case: `counted` calls were measured, `made` is the total."""

    cpu_us: float
    latency_us: float
    answer_bytes: int
    counted: int
    made: int


@dataclass(frozen=True, slots=True)
class Measured:
    """All rounds of a case, in order, and the memory of each server at the end."""

    samples: dict[Case, list[Sample]]
    resident: dict[tuple[Kind, int], int]

    def cpu_us(self, case: Case) -> float:
        return statistics.median(sample.cpu_us for sample in self.samples[case])

    def latency_us(self, case: Case) -> float:
        return statistics.median(sample.latency_us for sample in self.samples[case])

    def calls_made(self, server: Running) -> int:
        cases = (Case(server.kind, server.tools, era) for era in Era)
        return sum(sample.made for case in cases for sample in self.samples[case])

    def ratios(self, case: Case, other: Case) -> list[float]:
        """The ratio of `case` to `other`, round by round: a disturbance of the machine affects both."""
        pairs = zip(self.samples[case], self.samples[other], strict=True)
        return [one.cpu_us / two.cpu_us for one, two in pairs]

    def ratio(self, case: Case, other: Case) -> float:
        return statistics.median(self.ratios(case, other))


def measure(effort: Effort, folder: Path) -> Measured:
    """Run all servers side by side; each round calls all of them in one era."""
    until = time.monotonic() + LIMIT_SECONDS
    samples: dict[Case, list[Sample]] = defaultdict(list)
    with ExitStack() as stack:
        servers = [stack.enter_context(running(kind, tools, folder)) for tools, kind in product(SIZES, Kind)]
        for number, era in product(range(effort.rounds), Era):
            if time.monotonic() > until:
                raise RuntimeError(f"the bench is not done after {LIMIT_SECONDS} s; is the machine busy?")
            order = servers if number % 2 == 0 else servers[::-1]
            for server, sample in _round(order, era, effort):
                samples[Case(server.kind, server.tools, era)].append(sample)
        resident = {(server.kind, server.tools): server.resident_bytes() for server in servers}
    measured = Measured(samples, resident)
    for server in servers:
        if server.kind is Kind.DESK:
            _check_journal(server, measured.calls_made(server))
    return measured


def _round(servers: list[Running], era: Era, effort: Effort) -> list[tuple[Running, Sample]]:
    """Call the servers by turns, a slice each, so that other load on the machine affects all of them."""
    with ExitStack() as stack:
        lines = [
            _Line(server, stack.enter_context(connected(server.port)), call_bytes(era, server.port))
            for server in servers
        ]
        for line in lines:
            line.warm_up()
        time.sleep(SETTLE_SECONDS)
        idle = [_Stand.of(line.server) for line in lines]
        time.sleep(IDLE_SECONDS)
        before = [_Stand.of(line.server) for line in lines]
        while waiting := [line for line in lines if not line.done(effort)]:
            for line in waiting:
                line.call_slice()
        time.sleep(SETTLE_SECONDS)
        stands = zip(lines, idle, before, strict=True)
        return [
            (line.server, line.sample(_spent(at_rest, start, _Stand.of(line.server))))
            for line, at_rest, start in stands
        ]


@dataclass(frozen=True, slots=True)
class _Stand:
    """The readings of the clocks at one moment, in seconds."""

    cpu: float
    wall: float

    @classmethod
    def of(cls, server: Running) -> "_Stand":
        return cls(server.cpu_seconds(), time.monotonic())


def _spent(idle: _Stand, start: _Stand, end: _Stand) -> float:
    """CPU seconds from start to end, minus what an idle server spends.

    Uvicorn checks ten times a second whether it should stop. While the other servers have their turn, that adds up to a
    tenth of the cost of the minimal server, and would make the servers that are compared with it look better.
    """
    at_rest = (start.cpu - idle.cpu) / (start.wall - idle.wall)
    return end.cpu - start.cpu - at_rest * (end.wall - start.wall)


@dataclass(slots=True)
class _Line:
    """One server's connection during a round."""

    server: Running
    connection: socket
    call: bytes
    warmed: int = 0
    size: int = 0
    taken: list[int] = field(default_factory=list[int])

    def warm_up(self) -> None:
        check_answer(self.connection, self.call)
        self.warmed = 1 + len(timed(self.connection, self.call, SLICE, WARM_UP_SECONDS)[0])

    def call_slice(self) -> None:
        # A slow server gets one call where others get a slice: otherwise the others' connections would become stale.
        taken, self.size = timed(self.connection, self.call, SLICE, SLICE_SECONDS)
        self.taken += taken

    def done(self, effort: Effort) -> bool:
        return len(self.taken) >= effort.calls or sum(self.taken) > effort.seconds * 1e9

    def sample(self, spent: float) -> Sample:
        counted = len(self.taken)
        return Sample(
            spent / counted * 1e6, statistics.median(self.taken) / 1e3, self.size, counted, counted + self.warmed
        )


def _check_journal(server: Running, calls: int) -> None:
    """Fail if Frontdesk did not write its journal: then it was not measured as it really runs."""
    with closing(sqlite3.connect(server.data / "frontdesk.db")) as database:
        wanted = "SELECT count(*) FROM journal WHERE action = ? AND outcome = 'ok' AND agent_id = ?"
        (written,) = database.execute(wanted, (CALLED, AGENT)).fetchone()
    if written != calls:
        raise RuntimeError(f"desk-{server.tools} answered {calls} calls and has {written} of them in its journal")
