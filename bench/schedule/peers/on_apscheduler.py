"""APScheduler with its SQLAlchemy store: coroutines as jobs in one process, since its store supports only one."""

import asyncio
import pickle
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import import_module

import psycopg
import sqlalchemy
import uvloop
from sqlalchemy import event

from bench.schedule.due import now_us, waiting
from bench.schedule.sender import Sender

JOB = "bench.schedule.peers.on_apscheduler:deliver"
FILL = """
INSERT INTO apscheduler_jobs (id, next_run_time, job_state)
SELECT CAST(number AS VARCHAR(20)), at_us / 1000000.0, :state FROM waiting
"""
WRITE_SQLITE = "INSERT OR REPLACE INTO apscheduler_jobs (id, next_run_time, job_state) VALUES (?, ?, ?)"
WRITE_POSTGRES = "COPY apscheduler_jobs (id, next_run_time, job_state) FROM STDIN"
Row = tuple[str, float, bytes]
senders: list[Sender] = []
# None: SQLite with its defaults.
pragmas: list[str] = []


async def deliver(number: int, due_us: int) -> None:
    await senders[0].send(f"job-{number}", due_us)


def work(url: str, port: int) -> None:
    uvloop.run(_work(url, port))


async def _work(url: str, port: int) -> None:
    senders.append(Sender(port))
    scheduler = import_module("apscheduler.schedulers.asyncio").AsyncIOScheduler(timezone=UTC)
    scheduler.add_jobstore(import_module("apscheduler.jobstores.sqlalchemy").SQLAlchemyJobStore(engine=_engine(url)))
    scheduler.start()
    await asyncio.Event().wait()


def fill(url: str, schedules: int) -> None:
    """Nothing reads a job that is not due, so all of these hold the same."""
    engine = _engine(url)
    import_module("apscheduler.jobstores.sqlalchemy").SQLAlchemyJobStore(engine=engine).jobs_t.create(engine)
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text(FILL.replace("waiting", f"({waiting(schedules)}) AS waiting")),
            {"state": _state(0, now_us())},
        )
    if not url.startswith("sqlite"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE apscheduler_jobs")
    engine.dispose()


def make_due(url: str, times: Mapping[int, int]) -> None:
    if not url.startswith("sqlite"):
        with psycopg.connect(url) as connection:
            connection.execute("DELETE FROM apscheduler_jobs WHERE id = ANY(%s)", [[str(number) for number in times]])
    _write(url, ((str(number), due_us / 1e6, _state(number, due_us)) for number, due_us in times.items()))


def _engine(url: str) -> sqlalchemy.Engine:
    if not url.startswith("sqlite"):
        return sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    engine = sqlalchemy.create_engine(url)

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", set_up)
    return engine


def _state(number: int, next_us: int) -> bytes:
    """A job as the store keeps it; without a grace period, APScheduler would drop late jobs."""
    at = datetime.fromtimestamp(next_us / 1e6, UTC)
    state: dict[str, object] = {
        "version": 1,
        "id": str(number),
        "func": JOB,
        "trigger": import_module("apscheduler.triggers.date").DateTrigger(at),
        "executor": "default",
        "args": (number, next_us),
        "kwargs": {},
        "name": "deliver",
        "misfire_grace_time": None,
        "coalesce": True,
        "max_instances": 1,
        "next_run_time": at,
    }
    return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)


def _write(url: str, rows: Iterable[Row]) -> None:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.executemany(WRITE_SQLITE, rows)
        return
    with psycopg.connect(url) as connection, connection.cursor().copy(WRITE_POSTGRES) as copy:
        for row in rows:
            copy.write_row(row)
