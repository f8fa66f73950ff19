"""Measures what waiting costs: workers with many schedules and nothing due, beside programs that only poll or sleep."""

import asyncio
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psycopg

from bench.proxies.programs import cpu_seconds
from bench.schedule.cases import Store
from bench.schedule.due import now_us
from bench.schedule.programs import started

SETTLE_SECONDS = 4.0
ASK_SECONDS = 1.0
DUE = "SELECT name FROM lanes WHERE due_us IS NOT NULL AND (due_us <="


class Floor(StrEnum):
    """A program that does next to nothing."""

    ASKING_SQLITE = "asks SQLite what is due, once a second"
    ASKING_POSTGRES = "asks PostgreSQL what is due, once a second"
    ASLEEP = "wakes once a second"


ASKING = {Store.SQLITE: Floor.ASKING_SQLITE, Store.POSTGRES: Floor.ASKING_POSTGRES}


@dataclass(frozen=True, slots=True)
class Idle:
    """The share of a core that each program used."""

    workers: Mapping[Store, float]
    floors: Mapping[Floor, float]


def measure_idle(urls: Mapping[Store, str], seconds: float, folder: Path) -> Idle:
    """All at the same time, so that other load on the machine affects all of them."""
    with ExitStack() as stack:
        waiting = {store: [sys.executable, "-m", "bench.schedule.desk_worker", url, "0"] for store, url in urls.items()}
        asked = {floor: urls[store] for store, floor in ASKING.items()}
        resting = {
            floor: [sys.executable, "-m", "bench.schedule.idle", floor.name, asked.get(floor, "")] for floor in Floor
        }
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


async def _rest(floor: Floor, url: str) -> None:
    ask = _asking(floor, url)
    while True:
        ask()
        await asyncio.sleep(ASK_SECONDS)


def _asking(floor: Floor, url: str) -> Callable[[], object]:
    if floor is Floor.ASKING_SQLITE:
        file = sqlite3.connect(url.removeprefix("sqlite:///"))
        return lambda: file.execute(f"{DUE} ?) LIMIT 1", [now_us()]).fetchall()
    if floor is Floor.ASKING_POSTGRES:
        server = psycopg.connect(url, autocommit=True)
        return lambda: server.execute(f"{DUE} %s) LIMIT 1", [now_us()]).fetchall()
    return lambda: None


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(_rest(Floor[sys.argv[1]], sys.argv[2]))
