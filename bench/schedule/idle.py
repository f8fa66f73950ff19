"""What it costs to wait: workers with many schedules and nothing due, beside programs that only ask or sleep."""

import asyncio
import sqlite3
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.proxies.programs import cpu_seconds
from bench.schedule.cases import Store
from bench.schedule.due import now_us
from bench.schedule.programs import started

SETTLE_SECONDS = 4.0
ASK_SECONDS = 1.0
DUE = "SELECT name FROM lanes WHERE due_us IS NOT NULL AND due_us <= ? LIMIT 1"


class Floor(StrEnum):
    """A program that does next to nothing."""

    ASKING = "asks what is due, once a second"
    ASLEEP = "wakes once a second"


@dataclass(frozen=True, slots=True)
class Idle:
    """Which part of a core each program took."""

    workers: Mapping[Store, float]
    floors: Mapping[Floor, float]


def measure_idle(urls: Mapping[Store, str], seconds: float, folder: Path) -> Idle:
    """All at once, so that they share whatever else the machine does."""
    with ExitStack() as stack:
        waiting = {store: [sys.executable, "-m", "bench.schedule.desk_worker", url, "0"] for store, url in urls.items()}
        path = urls[Store.SQLITE].removeprefix("sqlite:///")
        resting = {floor: [sys.executable, "-m", "bench.schedule.idle", floor.name, path] for floor in Floor}
        programs = {
            key: stack.enter_context(started(f"idle-{key.name}", command, folder))
            for key, command in {**waiting, **resting}.items()
        }
        for program in programs.values():
            program.hear()
            program.tell("go")
        time.sleep(SETTLE_SECONDS)
        began = time.monotonic()
        before = {key: cpu_seconds(program.process.pid) for key, program in programs.items()}
        time.sleep(seconds)
        took = time.monotonic() - began
        shares = {key: (cpu_seconds(programs[key].process.pid) - at) / took for key, at in before.items()}
    return Idle({store: shares[store] for store in urls}, {floor: shares[floor] for floor in Floor})


async def _rest(floor: Floor, path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        while True:
            if floor is Floor.ASKING:
                connection.execute(DUE, [now_us()]).fetchall()
            await asyncio.sleep(ASK_SECONDS)


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(_rest(Floor[sys.argv[1]], sys.argv[2]))
