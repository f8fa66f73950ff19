"""A measured case: an engine on a database with a number of schedules and workers; some schedules fall due at once."""

import json
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.processes import ROOT
from bench.proxies.programs import cpu_seconds
from bench.schedule import desk_tables
from bench.schedule.due import DueSet, now_us
from bench.schedule.programs import Program, started

PEERS_PYTHON = str(ROOT / ".venvs" / "schedulers" / "bin" / "python")
LOOK_SECONDS = 0.05
ANSWER_SECONDS = 30
# From the choice of the time until a table has it and every worker is idle; more where that was too late.
LEADS_US = (2_000_000, 6_000_000, 15_000_000)
# Workers that get the signal to begin later than this are still starting when the prompts fall due.
LEAST_LEAD_US = 400_000
JUST_BEFORE_US = 20_000


class Engine(StrEnum):
    """The scheduler."""

    DESK = "Frontdesk"
    APSCHEDULER = "APScheduler"
    APSCHEDULER_WAL = "APScheduler, WAL"
    PROCRASTINATE = "Procrastinate"


class Store(StrEnum):
    """The database of the schedules."""

    SQLITE = "SQLite"
    POSTGRES = "PostgreSQL"


@dataclass(frozen=True, slots=True)
class Case:
    """An engine, its database, the number of schedules, and the number of its worker processes."""

    engine: Engine
    store: Store
    schedules: int
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Firing:
    """What the receiver got of the `due` prompts: how late each was, and the CPU of all workers."""

    due: int
    late_us: Sequence[int]
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return len(self.late_us) / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_seconds / max(1, len(self.late_us)) * 1e6

    def late_ms(self, share: float) -> float | None:
        """The lateness that this share of the due prompts did not exceed; None if too many never came."""
        at = min(self.due - 1, int(share * self.due))
        return sorted(self.late_us)[at] / 1e3 if at < len(self.late_us) else None


@dataclass(frozen=True, slots=True)
class Receiver:
    """The receiver of the prompts."""

    port: int

    def wait_for(self, number: int, until_us: int) -> None:
        while int(self._ask("/count")) < number and now_us() < until_us:
            time.sleep(LOOK_SECONDS)

    def take(self) -> dict[str, Any]:
        return json.loads(self._ask("/"))

    def _ask(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=ANSWER_SECONDS) as answer:
            return answer.read()


@dataclass(frozen=True, slots=True)
class Table:
    """The schedules of one engine, filled once and made due again and again."""

    engine: Engine
    url: str
    schedules: int
    folder: Path

    def fill(self) -> None:
        if self.engine is Engine.DESK:
            desk_tables.fill(self.url, self.schedules)
        else:
            self._peer("fill", self.schedules)

    def make_due(self, due: int, apart_us: int, lead_us: int) -> int:
        """When the first of them is due, soon."""
        if self.engine is not Engine.DESK:
            return int(self._peer("due", self.schedules, due, apart_us, lead_us))
        first_us = now_us() + lead_us
        desk_tables.make_due(self.url, DueSet(self.schedules, due, apart_us).times(first_us))
        return first_us

    def worker(self, port: int) -> list[str]:
        if self.engine is Engine.DESK:
            return [sys.executable, "-m", "bench.schedule.desk_worker", self.url, str(port)]
        return self._peer_command("work", port)

    def _peer(self, task: str, *numbers: int) -> str:
        with started(f"{self.engine.name}-{task}", self._peer_command(task, *numbers), self.folder) as program:
            return program.hear()

    def _peer_command(self, task: str, *numbers: int) -> list[str]:
        peer = self.engine.name.lower()
        return [PEERS_PYTHON, "-m", "bench.schedule.peers", peer, task, self.url, *map(str, numbers)]


def fire(table: Table, workers: int, receiver: Receiver, due: int, limit_s: float, apart_us: int = 1) -> Firing:
    """Make this many due, together or some time apart, and wait for them until `limit_s` after the last."""
    for lead_us in LEADS_US:
        with ExitStack() as stack:
            programs = [_worker(stack, table, receiver, number) for number in range(workers)]
            first_us = table.make_due(due, apart_us, lead_us)
            if now_us() + LEAST_LEAD_US > first_us:
                continue
            for program in programs:
                program.tell("go")
            # The cost of a start does not belong to any run.
            time.sleep(max(0, first_us - now_us() - JUST_BEFORE_US) / 1e6)
            before = _cpu(programs)
            receiver.wait_for(due, first_us + due * apart_us + int(limit_s * 1e6))
            until_us = now_us()
            spent = _cpu(programs) - before
        return _firing(receiver.take(), due, first_us, until_us, spent)
    raise RuntimeError("the schedules fell due before the workers were ready; is the machine busy?")


def _worker(stack: ExitStack, table: Table, receiver: Receiver, number: int) -> Program:
    program = stack.enter_context(
        started(f"{table.engine.name}-worker-{number}", table.worker(receiver.port), table.folder)
    )
    program.hear()
    return program


def _firing(got: dict[str, Any], due: int, first_us: int, until_us: int, spent: float) -> Firing:
    if len(set(got["ids"])) < len(got["ids"]):
        raise RuntimeError(f"{len(got['ids']) - len(set(got['ids']))} prompts came twice")
    late = [at - due_us for at, due_us in zip(got["at_us"], got["due_us"], strict=True)]
    if late and min(late) < 0:
        raise RuntimeError(f"a prompt came {-min(late)} µs early")
    if late and min(got["due_us"]) < first_us:
        raise RuntimeError("a prompt came again that was due some time ago")
    last_us = max(got["at_us"]) if len(late) == due else until_us
    return Firing(due, late, (last_us - first_us) / 1e6, spent)


def _cpu(programs: Sequence[Program]) -> float:
    return sum(cpu_seconds(program.process.pid) for program in programs)
