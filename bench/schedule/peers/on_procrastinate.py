"""Procrastinate: one job for each schedule, deferred until it is due; any number of workers."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import psycopg
import uvloop

from bench.schedule.due import waiting
from bench.schedule.sender import AT_A_TIME, Sender

QUEUE, TASK = "prompts", "deliver"
# How often it polls for due jobs; its default is every five seconds.
ASK_SECONDS = 0.5
FILL = f"""
INSERT INTO procrastinate_jobs (id, queue_name, task_name, scheduled_at)
SELECT number + 1, '{QUEUE}', '{TASK}', to_timestamp(at_us / 1000000.0) FROM waiting
"""
# Its triggers would record and announce each job; only the run is measured.
QUIETLY = "SET session_replication_role = replica"
WRITE = "COPY procrastinate_jobs (id, queue_name, task_name, args, scheduled_at) FROM STDIN"


def work(url: str, port: int) -> None:
    uvloop.run(_work(url, port))


async def _work(url: str, port: int) -> None:
    sender = Sender(port)
    application = _application(url)

    async def deliver(number: int, due_us: int) -> None:
        await sender.send(f"job-{number}", due_us)

    application.task(deliver, name=TASK, queue=QUEUE)
    async with application.open_async():
        await application.run_worker_async(
            queues=[QUEUE], concurrency=AT_A_TIME, fetch_job_polling_interval=ASK_SECONDS
        )


def fill(url: str, schedules: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(import_module("procrastinate.schema").SchemaManager.get_schema())
        connection.execute(QUIETLY)
        connection.execute(FILL.replace("waiting", f"({waiting(schedules)}) AS waiting").encode())
        connection.execute("VACUUM ANALYZE procrastinate_jobs")


def make_due(url: str, times: Mapping[int, int]) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(QUIETLY)
        cursor.execute("DELETE FROM procrastinate_jobs WHERE id = ANY(%s)", [[_id(number) for number in times]])
        with cursor.copy(WRITE) as copy:
            for number, due_us in times.items():
                arguments = json.dumps({"number": number, "due_us": due_us})
                copy.write_row((_id(number), QUEUE, TASK, arguments, datetime.fromtimestamp(due_us / 1e6, UTC)))


def _application(url: str) -> Any:  # noqa: ANN401 - Procrastinate lives in another environment, unseen by the checker
    procrastinate = import_module("procrastinate")
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=16))


def _id(number: int) -> int:
    """Procrastinate takes a job with the number 0 for one that was not stored."""
    return number + 1
