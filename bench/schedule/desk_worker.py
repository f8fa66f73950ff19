"""One worker of Frontdesk, which hands prompts to the receiver instead of an agent; it begins when told to."""

import asyncio
import signal
import sys

import anyio
import uvloop

from bench.schedule.desk_tables import settings
from bench.schedule.sender import AT_A_TIME, Sender
from frontdesk.db.engine import Database
from frontdesk.schedule.bell import Bell
from frontdesk.schedule.model import Delivered, Occurrence
from frontdesk.schedule.worker import Worker
from frontdesk.surfaces import logs
from frontdesk.surfaces.cli.running import spare_collector


async def work(url: str, port: int) -> None:
    sender = Sender(port)

    async def deliver(occurrence: Occurrence) -> Delivered:
        await sender.send(occurrence.id, occurrence.intended_us, occurrence.prompt)
        return Delivered("Done.")

    database = await Database.open(settings(url))
    spare_collector()
    async with anyio.create_task_group() as tasks:
        # Told to go, it settles what it has begun, so that the next one finds nothing left over.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tasks.cancel_scope.cancel)
        tasks.start_soon(Worker(database, deliver, Bell(database), concurrency=AT_A_TIME).run)
    await database.close()


def main() -> None:
    url, port = sys.argv[1:]
    logs.configure(settings(url))
    print("ready", flush=True)
    sys.stdin.readline()
    uvloop.run(work(url, int(port)))


if __name__ == "__main__":
    main()
