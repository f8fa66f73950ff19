"""Measures the schedulers by turns: prompts due at once, prompts one after the other, and the cost of waiting."""

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.postgres import Postgres, open_postgres

from bench.schedule.cases import Case, Engine, Firing, Receiver, Store, Table, fire
from bench.schedule.idle import Idle, measure_idle
from bench.schedule.programs import started

# As a careful administrator would configure it: everything that is reported as stored is on the disk.
POSTGRES = ("fsync=on", "shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=30min")
PEERS = (Engine.APSCHEDULER, Engine.PROCRASTINATE)
PROCRASTINATE_WORKERS = 2
# It waits for the disk at each job, does some 150 a second, and delivers nothing before it has finished.
AS_IT_COMES_LIMIT_S = 100.0
# As many a second as in a busy installation; each wakes the worker.
APART_US = 20_000
LATE_LIMIT_S = 5.0
DESK_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure: `limit_s` is how long a peer may take for the due prompts, `spread` how many come singly."""

    sizes: tuple[int, int]
    peers_sizes: tuple[int, ...]
    due: int
    rounds: int
    workers: tuple[int, ...]
    limit_s: float
    spread: int
    idle_s: float


FULL = Effort((100_000, 1_000_000), (100_000, 1_000_000), 10_000, 7, (1, 2, 4), 30.0, 1_000, 20.0)
QUICK = Effort((20_000, 200_000), (20_000,), 2_000, 1, (1, 2), 8.0, 200, 8.0)


@dataclass(frozen=True, slots=True)
class ScheduleMeasured:
    """All runs of a case, those of single prompts by database, and the cost of waiting."""

    effort: Effort
    firings: Mapping[Case, Sequence[Firing]]
    single: Mapping[Store, Firing]
    idle: Idle

    def per_second(self, case: Case) -> float:
        return statistics.median(firing.per_second for firing in self.firings[case])

    def late_ms(self, case: Case, share: float) -> float | None:
        late = [firing.late_ms(share) for firing in self.firings[case]]
        known = [one for one in late if one is not None]
        return statistics.median(known) if len(known) == len(late) else None

    def best_peer(self, schedules: int) -> float:
        """Runs a second of the fastest other engine in its default setup, with as many schedules, on each database."""
        peers = [case for case in self.firings if case.engine in PEERS and case.schedules == schedules]
        return max(map(self.per_second, peers))


def measure_schedule(effort: Effort, folder: Path) -> ScheduleMeasured:
    firings: dict[Case, list[Firing]] = defaultdict(list)
    with _receiving(folder) as receiver, open_postgres(*POSTGRES) as postgres:
        installation = _Installation(folder, postgres)
        for number in range(effort.rounds):
            for case in _cases(effort, peers=number == 0):
                firings[case].append(_fired(installation, case, receiver, effort))
                print(f"  {_told(case)}: {firings[case][-1].per_second:,.0f} fires/s", flush=True)
        most = effort.sizes[-1]
        single = {
            store: fire(
                installation.table(Engine.DESK, store, most), 1, receiver, effort.spread, LATE_LIMIT_S, APART_US
            )
            for store in Store
        }
        urls = {store: installation.table(Engine.DESK, store, most).url for store in Store}
        return ScheduleMeasured(effort, firings, single, measure_idle(urls, effort.idle_s, folder))


def _cases(effort: Effort, *, peers: bool) -> Iterator[Case]:
    """Engines that are compared run side by side: a machine's speed changes within a minute.

    The peers run in one round, since they take long and are far behind; the tuned one runs in all rounds.
    """
    for engine in (Engine.DESK, Engine.APSCHEDULER_WAL):
        for schedules in effort.sizes:
            yield Case(engine, Store.SQLITE, schedules)
    for workers in effort.workers:
        for schedules in effort.sizes:
            yield Case(Engine.DESK, Store.POSTGRES, schedules, workers)
    if peers:
        for schedules in effort.peers_sizes:
            yield Case(Engine.APSCHEDULER, Store.POSTGRES, schedules)
            yield Case(Engine.PROCRASTINATE, Store.POSTGRES, schedules, PROCRASTINATE_WORKERS)
        yield Case(Engine.APSCHEDULER, Store.SQLITE, effort.sizes[0])


def _fired(installation: "_Installation", case: Case, receiver: Receiver, effort: Effort) -> Firing:
    table = installation.table(case.engine, case.store, case.schedules)
    firing = fire(table, case.workers, receiver, effort.due, _limit_s(case, effort))
    if case.engine is Engine.DESK and len(firing.late_us) < effort.due:
        raise RuntimeError(f"{_told(case)}: {effort.due - len(firing.late_us)} of the due prompts never came")
    return firing


def _limit_s(case: Case, effort: Effort) -> float:
    if case.engine is Engine.DESK:
        return DESK_LIMIT_S
    return AS_IT_COMES_LIMIT_S if case == Case(Engine.APSCHEDULER, Store.SQLITE, case.schedules) else effort.limit_s


def _told(case: Case) -> str:
    workers = f", {case.workers} workers" if case.workers > 1 else ""
    return f"{case.engine} on {case.store}{workers}, {case.schedules:,} schedules"


class _Installation:
    """The tables of the run, each created on first use."""

    def __init__(self, folder: Path, postgres: Postgres) -> None:
        self._folder = folder
        self._postgres = postgres
        self._tables: dict[tuple[Engine, Store, int], Table] = {}

    def table(self, engine: Engine, store: Store, schedules: int) -> Table:
        key = engine, store, schedules
        if key not in self._tables:
            began = time.monotonic()
            path = self._folder / f"{engine.name}-{schedules}.db"
            url = f"sqlite:///{path}" if store is Store.SQLITE else self._postgres.create_database()
            table = Table(engine, url, schedules, self._folder)
            table.fill()
            self._tables[key] = table
            print(f"  {schedules:,} schedules of {engine} on {store} in {time.monotonic() - began:.0f} s", flush=True)
        return self._tables[key]


@contextmanager
def _receiving(folder: Path) -> Generator[Receiver]:
    with ExitStack() as stack:
        command = [sys.executable, "-m", "bench.schedule.receiver"]
        yield Receiver(int(stack.enter_context(started("receiver", command, folder)).hear()))
