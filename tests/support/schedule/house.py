"""A scheduler's whole installation for a test: database, clock, receiver, workers, and a log of what was done."""

import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from frontdesk.db.engine import Database
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.model import ScheduleDefinition
from frontdesk.schedules.store import ScheduleStore
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.settings import Settings
from tests.support.schedule import oracle
from tests.support.schedule.books import Books
from tests.support.schedule.child import Orders
from tests.support.schedule.clock import SharedClock
from tests.support.schedule.history import TABLES, Arrival, Cancelled, Diary, History, Lost, read_history, read_visits
from tests.support.schedule.invariants import violations
from tests.support.schedule.outages import is_locked
from tests.support.schedule.processes import Nursery, Receiver, open_receiver

SECONDS = 60
POLL_SECONDS = 0.02
UNDER_WAY = "SELECT id FROM occurrences WHERE standing IN ('running', 'waiting')"
DUE = "SELECT id FROM schedules WHERE state = 'active' AND fire_us <= {now}"
LATER = "SELECT id FROM schedules WHERE state = 'active' AND fire_us IS NOT NULL"
FENCES = "SELECT id, fence FROM occurrences WHERE schedule_id = {number}"


@dataclass(slots=True)
class Installation:
    """Where everything is, and what was asked for: each schedule as it was made."""

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
        """Make schedules; the first time of each is the oracle's."""
        firsts = [oracle.first(new.trigger) for new in news]
        numbers = await self.store.add_many(list(zip(news, firsts, strict=True)), self.clock())
        self.made |= dict(zip(numbers, news, strict=True))
        self.diary.known_us |= dict.fromkeys(numbers, self.clock())
        return list(numbers)

    async def cancel(self, number: int) -> None:
        """Cancel what has not ended, and note when that was acknowledged and what was under way then."""
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
        """Stop it in its tracks; not where it holds the writer's place of a SQLite file, which nobody could go past."""

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
        """Ask them to stop, as an operator would, and see that they do."""
        for worker in workers:
            self.nursery.signal(worker, signal.SIGTERM)
        for worker in workers:
            assert self.nursery.ended(worker) == 0, self.said()

    def cut_short(self, worker: int) -> None:
        """Have it stop though it cannot bring to its end what it does."""
        self.diary.lost.append(Lost(worker, time.monotonic_ns()))
        self.stop(worker)

    def arrivals(self) -> list[Arrival]:
        return read_visits(self.receiver.log)

    def begun(self) -> int:
        """How many deliveries the receiver has noted, at the least cost."""
        return self.receiver.log.read_bytes().count(b'"begin"') if self.receiver.log.exists() else 0

    def failures(self) -> int:
        return len(self.books.rows(TABLES["attempts"]))

    def is_quiet(self) -> bool:
        """Whether nothing is under way and nothing is due."""
        # In this order: what is due comes under way, and not the other way round.
        return not self.books.rows(DUE.format(now=self.clock())) and not self.books.rows(UNDER_WAY)

    def is_over(self) -> bool:
        """Whether nothing is under way and nothing will ever be."""
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
        """All that happened, when nothing is wrong with it."""
        history = self.history()
        wrong = violations(history, self.made)
        assert not wrong, "\n".join([f"{len(wrong)} things are wrong", *wrong[:20], self.said()])
        return history

    def said(self) -> str:
        """The end of what the workers had to say."""
        return self.said_by_all()[-4000:]

    def said_by_all(self) -> str:
        log = Path(self.orders.log)
        return log.read_text() if log.exists() else ""


@asynccontextmanager
async def open_installation(
    folder: Path, settings: Settings, nursery: Nursery, **orders: object
) -> AsyncGenerator[Installation]:
    """Everything but workers; those still there at the end are killed."""
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
