"""Runs one worker of Frontdesk, which sends prompts to the receiver instead of an agent; it waits for a signal."""

import asyncio
import signal
import sys

import anyio
import uvloop

from bench.schedule.desk_tables import settings
from bench.schedule.sender import AT_A_TIME, Sender
from frontdesk.db.engine import Database
from frontdesk.interfaces import logs
from frontdesk.interfaces.app_runner import freeze_garbage
from frontdesk.schedules.model import Occurrence
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.schedules.worker import Worker


async def work(url: str, port: int) -> None:
    sender = Sender(port)

    async def deliver(occurrence: Occurrence) -> str | None:
        await sender.send(occurrence.id, occurrence.intended_us, occurrence.prompt)
        return "Done."

    database = await Database.open(settings(url))
    freeze_garbage()
    async with anyio.create_task_group() as tasks:
        # On the signal to stop, it settles what it has begun, so that the next worker finds nothing unfinished.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tasks.cancel_scope.cancel)
        tasks.start_soon(Worker(database, deliver, WakeupNotifier(database), concurrency=AT_A_TIME).run)
    await database.close()


def main() -> None:
    url, port = sys.argv[1:]
    logs.configure_logs(settings(url))
    print("ready", flush=True)
    sys.stdin.readline()
    uvloop.run(work(url, int(port)))


if __name__ == "__main__":
    main()
