"""What a forked worker does: the real `Worker` on the real database, delivering over HTTP, until it is told to stop."""

import os
import signal
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import anyio
import httpx2
import structlog
from sqlalchemy import make_url

from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.db.engine import Database, _create_engine, database_url
from frontdesk.db.sqlite import InPlaceWriter, ThreadWriter
from frontdesk.schedules.model import DeliverRun, DeliveryFailed, Occurrence
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.schedules.worker import Worker
from frontdesk.settings import Settings
from tests.support.schedule.clock import SharedClock
from tests.support.schedule.points import Points
from tests.support.schedule.tampering import tamper


@dataclass(frozen=True, slots=True)
class Orders:
    """How a worker is to live, and where it is to die: at the n-th point that it comes by.

    Without a `clock` it has what it would have anywhere; a `machine` is one it only believes to be on.
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
    # What is taken away from the scheduler, or made quicker for it.
    changes: tuple[str, ...] = ()


def warm() -> None:
    """Import what is only imported when it is first used, once for all who are forked from here."""
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
    # A traceback with all its trimmings takes a second.
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, plain])
    tamper(orders.changes)
    anyio.run(_work, orders)


async def _work(orders: Orders) -> None:
    points = Points(orders.die_at)
    # The schema is there: a worker that only lives for a moment need not look again.
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
