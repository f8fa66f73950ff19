"""A whole scheduler for a test: database, clock, receiver and workers; and storms that kill workers from a seed."""

import random
import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from frontdesk.db.engine import Database
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.model import Misfire, Overlap, ScheduleDefinition, SchedulePolicy, Trigger, TriggerKind
from frontdesk.schedules.store import ScheduleStore
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.settings import Settings
from tests.support.schedules import oracle
from tests.support.schedules.child import Orders
from tests.support.schedules.clock import SharedClock
from tests.support.schedules.history import (
    TABLES,
    Arrival,
    Books,
    Cancelled,
    Diary,
    History,
    Lost,
    read_history,
    read_visits,
)
from tests.support.schedules.invariants import violations
from tests.support.schedules.outages import is_locked
from tests.support.schedules.processes import Nursery, Receiver, open_receiver
from tests.support.schedules.receiver import How

# Short forms of schedules for an installation under faults


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
PROMPT = "Look after the garden."


def once(agent: str, at_us: int, *, attempts: int = 10, overlap: Overlap = Overlap.QUEUE) -> ScheduleDefinition:
    at = (EPOCH + timedelta(microseconds=at_us)).isoformat()
    return ScheduleDefinition(
        agent, PROMPT, Trigger(TriggerKind.ONCE, at), policy=SchedulePolicy(overlap=overlap, attempts=attempts)
    )


def every(
    agent: str,
    value: str,
    start_us: int,
    *,
    times: int | None = None,
    end_us: int | None = None,
    policy: SchedulePolicy | None = None,
) -> ScheduleDefinition:
    """At an interval; all missed runs are caught up, unless the policy says otherwise."""
    trigger = Trigger(TriggerKind.INTERVAL, value, start_us=start_us, end_us=end_us)
    return ScheduleDefinition(
        agent, PROMPT, trigger, policy=policy or SchedulePolicy(misfire=Misfire.ALL), max_repetitions=times
    )


def cron(agent: str, rule: str, start_us: int, *, policy: SchedulePolicy | None = None) -> ScheduleDefinition:
    trigger = Trigger(TriggerKind.CRON, rule, start_us=start_us)
    return ScheduleDefinition(agent, PROMPT, trigger, policy=policy or SchedulePolicy(misfire=Misfire.ALL))


# A test's whole scheduler: database, clock, receiver, workers, and a log of actions


SECONDS = 60
POLL_SECONDS = 0.02
UNDER_WAY = "SELECT id FROM occurrences WHERE standing IN ('running', 'waiting')"
DUE = "SELECT id FROM schedules WHERE state = 'active' AND fire_us <= {now}"
LATER = "SELECT id FROM schedules WHERE state = 'active' AND fire_us IS NOT NULL"
FENCES = "SELECT id, fence FROM occurrences WHERE schedule_id = {number}"


@dataclass(slots=True)
class Installation:
    """The addresses and paths, and the requests: each schedule as it was created."""

    folder: Path
    settings: Settings
    books: Books
    database: Database
    store: ScheduleStore
    past: HistoryStore
    clock: SharedClock
    receiver: Receiver
    nursery: Nursery
    orders: Orders
    diary: Diary = field(default_factory=Diary)
    made: dict[int, ScheduleDefinition] = field(default_factory=dict[int, ScheduleDefinition])

    async def add(self, *news: ScheduleDefinition) -> list[int]:
        """Create schedules; the oracle calculates the first time of each."""
        firsts = [oracle.first(new.trigger) for new in news]
        numbers = await self.store.add_many(list(zip(news, firsts, strict=True)), self.clock())
        self.made |= dict(zip(numbers, news, strict=True))
        self.diary.known_us |= dict.fromkeys(numbers, self.clock())
        return list(numbers)

    async def cancel(self, number: int) -> None:
        """Cancel the unfinished schedules, and record when that was acknowledged and which deliveries ran then."""
        if not await self.store.cancel(number, self.clock()):
            return
        acknowledged = self.clock()
        fences = frozenset((row["id"], row["fence"]) for row in self.books.rows(FENCES.format(number=number)))
        self.diary.cancelled.append(Cancelled(number, acknowledged, fences))

    def start(self, count: int = 1, orders: Orders | None = None) -> list[int]:
        return [self.nursery.spawn(orders or self.orders) for _ in range(count)]

    def doomed(self, die_at: int) -> Orders:
        return replace(self.orders, die_at=die_at, changes=(*self.orders.changes, "no pruning"))

    def kill(self, worker: int) -> None:
        self.diary.lost.append(Lost(worker, time.monotonic_ns()))
        self.nursery.signal(worker, signal.SIGKILL)
        assert self.nursery.ended(worker) == -signal.SIGKILL, self.said()

    async def hold_still(self, worker: int) -> None:
        """Pause it; but not while it holds the write lock of a SQLite file, which would block all others."""

        def still() -> bool:
            self.nursery.signal(worker, signal.SIGSTOP)
            held = self.settings.database_url is None and is_locked(self.settings.data / "frontdesk.db")
            if held:
                self.go_on(worker)
            return not held

        before = time.monotonic_ns()
        await self.until(still)
        self.diary.lost.append(Lost(worker, before))

    def go_on(self, worker: int) -> None:
        self.nursery.signal(worker, signal.SIGCONT)

    def kill_receiver(self) -> None:
        self.diary.receiver_killed.append(time.monotonic_ns())
        self.receiver.kill()

    def stop(self, *workers: int) -> None:
        """Stop them as an operator would, and check that they end."""
        for worker in workers:
            self.nursery.signal(worker, signal.SIGTERM)
        for worker in workers:
            assert self.nursery.ended(worker) == 0, self.said()

    def cut_short(self, worker: int) -> None:
        """Stop it although it cannot finish its work."""
        self.diary.lost.append(Lost(worker, time.monotonic_ns()))
        self.stop(worker)

    def arrivals(self) -> list[Arrival]:
        return read_visits(self.receiver.log)

    def begun(self) -> int:
        """How many deliveries the receiver has recorded, read cheaply."""
        return self.receiver.log.read_bytes().count(b'"begin"') if self.receiver.log.exists() else 0

    def failures(self) -> int:
        return len(self.books.rows(TABLES["attempts"]))

    def is_quiet(self) -> bool:
        """Whether nothing runs and nothing is due."""
        # In this order: due prompts become running ones, and not the reverse.
        return not self.books.rows(DUE.format(now=self.clock())) and not self.books.rows(UNDER_WAY)

    def is_over(self) -> bool:
        """Whether nothing runs and nothing ever will."""
        return not self.books.rows(LATER) and not self.books.rows(UNDER_WAY)

    async def until(self, true: Callable[[], bool], seconds: float = SECONDS) -> None:
        for _ in range(int(seconds / POLL_SECONDS)):
            if await anyio.to_thread.run_sync(true):
                return
            await anyio.sleep(POLL_SECONDS)
        raise AssertionError(f"it did not come to that in {seconds} s\n{self.said()}")

    def history(self) -> History:
        return read_history(self.books, self.receiver.log, self.diary, self.clock())

    def check(self) -> History:
        """The whole history, after the check that nothing is wrong with it."""
        history = self.history()
        wrong = violations(history, self.made)
        assert not wrong, "\n".join([f"{len(wrong)} things are wrong", *wrong[:20], self.said()])
        return history

    def said(self) -> str:
        """The end of the workers' output."""
        return self.said_by_all()[-4000:]

    def said_by_all(self) -> str:
        log = Path(self.orders.log)
        return log.read_text() if log.exists() else ""


@asynccontextmanager
async def open_installation(
    folder: Path, settings: Settings, nursery: Nursery, **orders: object
) -> AsyncGenerator[Installation]:
    """Everything except workers; workers that still run at the end are killed."""
    database, books = await Database.open(settings), Books(settings)
    given = {"FRONTDESK_DATA": str(settings.data)}
    if settings.database_url is not None:
        given["FRONTDESK_DATABASE_URL"] = settings.database_url.get_secret_value()
    with SharedClock(folder / "clock") as clock, open_receiver(folder, clock.path) as receiver:
        told = Orders(given, receiver.url, str(clock.path), str(folder / "workers.log"))
        notifier = WakeupNotifier(database)
        stores = (books, database, ScheduleStore(database, notifier), HistoryStore(database, notifier))
        installation = Installation(folder, settings, *stores, clock, receiver, nursery, replace(told, **orders))
        try:
            yield installation
        finally:
            for worker in nursery.alive():
                nursery.signal(worker, signal.SIGCONT)
                nursery.signal(worker, signal.SIGKILL)
                nursery.ended(worker)
            books.close()
            await database.close()


# A storm from a seed: workers are killed during work, others replace them, and people continue to use Frontdesk


AGENTS = [f"agent-{number}" for number in range(12)]
SHARES = {How.ERROR: 0.04, How.BUSY: 0.03, How.DROP: 0.03, How.CUT: 0.02, How.UNKNOWN: 0.01}
SLOWEST = 0.06
# The limits of a wait for work to continue: the number of pauses, and the longest pause in seconds.
PATIENCE, MOMENT = 30, 0.02
OVER_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Storm:
    """The strength of the storm."""

    seed: int
    kills: int
    workers: int
    repetitions: int


async def blow(installation: Installation, storm: Storm) -> None:
    """Kill this many times, then let the remaining workers finish everything."""
    dice = random.Random(storm.seed)
    installation.receiver.chance(storm.seed, SLOWEST, SHARES)
    recurring = await installation.add(*_recurring(installation.clock(), storm.repetitions))
    crew = installation.start(storm.workers)
    for _ in range(storm.kills):
        await installation.add(*_one_shots(dice, installation.clock()))
        await _some_work(installation, dice)
        victim = crew.pop(dice.randrange(len(crew)))
        installation.kill(victim)
        crew += installation.start()
        await _somebody(installation, dice, recurring)
    await installation.until(installation.is_over, OVER_SECONDS)
    installation.stop(*crew)


async def _somebody(installation: Installation, dice: random.Random, recurring: list[int]) -> None:
    """Now and then a person cancels a schedule, or starts a run immediately."""
    chosen, wish = dice.randrange(len(recurring)), dice.random()
    if wish < 0.1 and len(recurring) > 1:
        await installation.cancel(recurring.pop(chosen))
    elif wish < 0.3:
        await installation.store.run_now(recurring[chosen], installation.clock())


def _recurring(now_us: int, times: int) -> Iterator[ScheduleDefinition]:
    """Two for each agent, with every policy; each ends by itself."""
    start = now_us + SECOND // 2
    for number, agent in enumerate(AGENTS):
        yield every(agent, "1s", start + number, times=times)
        policy = list(_policies())[number % 5]
        yield every(agent, "2s", start - number, end_us=start + times * SECOND, policy=policy)


def _policies() -> Iterator[SchedulePolicy]:
    yield SchedulePolicy(misfire=Misfire.ALL, attempts=2)
    yield SchedulePolicy(misfire=Misfire.ONCE)
    yield SchedulePolicy(misfire=Misfire.SKIP)
    yield SchedulePolicy(misfire=Misfire.ALL, overlap=Overlap.SKIP)
    yield SchedulePolicy(misfire=Misfire.ALL, overlap=Overlap.ALLOW, max_late_s=30)


def _one_shots(dice: random.Random, now_us: int) -> list[ScheduleDefinition]:
    return [once(dice.choice(AGENTS), now_us + dice.randrange(SECOND // 3)) for _ in range(4)]


async def _some_work(installation: Installation, dice: random.Random) -> None:
    """Wait until a few more deliveries have begun, so that the next kill can come at any point of them."""
    wanted = installation.begun() + dice.randrange(6)
    for _ in range(PATIENCE):
        await anyio.sleep(dice.random() * MOMENT)
        if installation.begun() >= wanted:
            return
