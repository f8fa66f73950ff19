"""Runs a forked worker: the real `Worker` on the real database, with points to stop at and removed safeguards."""

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import httpx2
import structlog
from sqlalchemy import Connection, Engine, event, make_url, text

from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.db import sqlite
from frontdesk.db.engine import Database, _create_engine, database_url
from frontdesk.db.sqlite import InPlaceWriter, ThreadWriter
from frontdesk.schedules import claim_store as claiming
from frontdesk.schedules import delivery_rules as retry
from frontdesk.schedules import delivery_store as due
from frontdesk.schedules import model, worker
from frontdesk.schedules.claim_store import DUE_QUEUES
from frontdesk.schedules.delivery_rules import ActiveRun, ClaimContext, SettledRun
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.model import DeliverRun, DeliveryFailed, Occurrence
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.schedules.worker import Worker
from frontdesk.settings import Settings
from tests.support.schedules.clock import SharedClock

# The numbered points of a worker's life: before each statement and commit, and around each delivery


class Points:
    """Counts the points that it passes, prints each, and dies at one of them as from kill -9."""

    def __init__(self, die_at: int) -> None:
        self._die_at = die_at
        self._passed = 0

    def count(self) -> None:
        """From now on; a worker that is not to die is left alone."""
        if self._die_at:
            event.listen(Engine, "before_cursor_execute", self._statement)
            event.listen(Engine, "commit", self._commit)

    def around(
        self, deliver: Callable[[Occurrence], Awaitable[str | None]]
    ) -> Callable[[Occurrence], Awaitable[str | None]]:
        async def delivered(occurrence: Occurrence) -> str | None:
            self._reach("deliver")
            answer = await deliver(occurrence)
            self._reach("delivered")
            return answer

        return delivered if self._die_at else deliver

    def _statement(self, _connection: Connection, _cursor: Any, statement: str, *_: object) -> None:
        self._reach(" ".join(statement.split())[:60])

    def _commit(self, _connection: Connection) -> None:
        self._reach("COMMIT")

    def _reach(self, name: str) -> None:
        self._passed += 1
        os.write(1, f"point {self._passed}: {name}\n".encode())
        if self._passed == self._die_at:
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)


# Safeguards that a forked worker's scheduler lacks, so that a test can show that they are necessary.
#
# And delays that are shorter for it, so that a test need not wait.


HOUR_NS = 3_600_000_000_000
OURS_AGAIN = text("UPDATE occurrences SET owner = :owner, standing = 'running' WHERE id = :id RETURNING fence")


def quick_retries() -> None:
    retry.FIRST_RETRY_S, retry.LONGEST_RETRY_S, retry.FIRST_BUSY_RETRY_S, retry.LONGEST_BUSY_RETRY_S = (
        0.05,
        0.2,
        0.05,
        0.1,
    )


def quick_busy() -> None:
    """A locked file is reported after one second instead of ten."""
    sqlite.BUSY_SECONDS = 1


def light_sleep() -> None:
    worker.IDLE_S = 0.2


def an_hour_fast() -> None:
    """This machine's clock is wrong."""
    model.time_ns = lambda: time.time_ns() + HOUR_NS


def an_hour_slow() -> None:
    model.time_ns = lambda: time.time_ns() - HOUR_NS


def without_pruning() -> None:
    """No old rows are deleted, so that every counted point belongs to a delivery."""

    async def forget(self: worker.Worker) -> None:
        await anyio.sleep_forever()

    worker.Worker._prune_history = forget


def without_fence() -> None:
    """A worker settles a result whether it still holds the lease or not."""
    real = due.settle_runs

    def settle(connection: Connection, owner: str, settled: Sequence[SettledRun], now_us: int) -> list[SettledRun]:
        forced: list[SettledRun] = []
        for one in settled:
            fence = connection.execute(OURS_AGAIN, {"owner": owner, "id": one.occurrence.id}).scalar_one()
            forced.append(replace(one, occurrence=replace(one.occurrence, fence=fence)))
        return real(connection, owner, forced, now_us)

    due.settle_runs = settle


def without_renewal() -> None:
    """No worker renews its lease."""

    async def renew(self: DeliveryStore) -> frozenset[str]:
        return frozenset()

    DeliveryStore.renew = renew


def without_takeover() -> None:
    """A lease never expires."""

    def abandoned(self: ClaimContext, one: ActiveRun) -> bool:
        return False

    ClaimContext.is_abandoned = abandoned


def without_lock() -> None:
    """Two workers may look at the same queue at the same time."""
    open_to_all = copy(DUE_QUEUES)
    open_to_all._for_update_arg = None
    claiming.DUE_QUEUES = open_to_all


CHANGES: dict[str, Callable[[], None]] = {
    "quick retries": quick_retries,
    "quick busy": quick_busy,
    "light sleep": light_sleep,
    "an hour fast": an_hour_fast,
    "an hour slow": an_hour_slow,
    "no pruning": without_pruning,
    "no fence": without_fence,
    "no renewal": without_renewal,
    "no takeover": without_takeover,
    "no lock": without_lock,
}


def tamper(names: Iterable[str]) -> None:
    for name in names:
        CHANGES[name]()


# A forked worker: the real `Worker` on the real database, which delivers over HTTP until it is stopped


@dataclass(frozen=True, slots=True)
class Orders:
    """How a worker lives, and where it dies: at the n-th point that it passes.

    Without a `clock` it has the usual one; a `machine` is a host name that it only believes to have.
    """

    settings: dict[str, str]
    receiver: str
    clock: str
    log: str
    concurrency: int = 16
    lease_s: float = 5
    timeout_s: float = 10
    drain_s: float = 2
    machine: str = ""
    die_at: int = 0
    # Removed safeguards and shorter delays.
    changes: tuple[str, ...] = ()


def warm() -> None:
    """Import the modules that are otherwise imported on first use, once for all forks."""
    httpx2.AsyncClient(verify=False, trust_env=False)
    for address in ("sqlite+aiosqlite://", "sqlite+pysqlite://", "postgresql+psycopg://"):
        make_url(address).get_dialect().import_dbapi()
    for module in ("anyio._backends._asyncio", "psycopg_binary"):
        import_module(module)


def live(orders: Orders) -> None:
    sink = os.open(orders.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    # A fully formatted traceback takes a second.
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, plain])
    tamper(orders.changes)
    anyio.run(_work, orders)


async def _work(orders: Orders) -> None:
    points = Points(orders.die_at)
    # The schema is there: a worker that lives only for a moment need not check again.
    url = database_url(Settings.model_validate(orders.settings))
    sqlite = url.drivername.startswith("sqlite")
    database = Database(
        _create_engine(url), url, *((InPlaceWriter(url), ThreadWriter(url)) if sqlite else (None, None))
    )
    client = httpx2.AsyncClient(base_url=orders.receiver, timeout=None, verify=False, trust_env=False)
    worker = Worker(
        database,
        points.around(_deliverer(client)),
        WakeupNotifier(database),
        concurrency=orders.concurrency,
        lease_s=orders.lease_s,
        timeout_s=orders.timeout_s,
        drain_s=orders.drain_s,
        clock=SharedClock(Path(orders.clock)) if orders.clock else None,
        owner=LeaseOwner(orders.machine) if orders.machine else None,
    )
    with anyio.open_signal_receiver(signal.SIGTERM) as told:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        async with anyio.create_task_group() as tasks:
            points.count()
            tasks.start_soon(worker.run)
            async for _ in told:
                tasks.cancel_scope.cancel()
    await client.aclose()
    await database.close()


def _deliverer(client: httpx2.AsyncClient) -> DeliverRun:
    async def deliver(occurrence: Occurrence) -> str | None:
        try:
            answer = await client.post("/deliver", json=_told(occurrence))
        except httpx2.ConnectError as error:
            raise DeliveryFailed(f"nobody there: {error}") from error
        except httpx2.TransportError as error:
            raise DeliveryFailed(f"cut off: {error}", in_doubt=True) from error
        return _read(answer)

    return deliver


def _told(occurrence: Occurrence) -> dict[str, object]:
    return {
        "id": occurrence.id,
        "schedule_id": occurrence.schedule_id,
        "agent": occurrence.agent_id,
        "intended_us": occurrence.intended_us,
        "attempt": occurrence.attempt,
        "fence": occurrence.fence,
        "in_doubt": occurrence.in_doubt,
        "worker": os.getpid(),
    }


def _read(answer: httpx2.Response) -> str | None:
    match answer.status_code:
        case 200:
            return answer.json()["answer"]
        case 404:
            raise DeliveryFailed("no such agent", permanent=True)
        case 409:
            raise DeliveryFailed("the agent is busy", counted=False)
        case 429:
            raise DeliveryFailed("too many", retry_after=float(answer.headers["retry-after"]))
        case status:
            raise DeliveryFailed(f"answered {status}", in_doubt=True)
