"""Measures how soon a command answers and how long the application takes to build, beside the imports they cannot do
without."""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.claims import Verdict
from bench.processes import ROOT

FULL_ROUNDS, QUICK_ROUNDS = 15, 3
# What every command imports, and nothing else.
FLOOR = (sys.executable, "-c", "import cyclopts, pydantic, sqlalchemy")
FRONTDESK = (sys.executable, "-m", "frontdesk")
COMMANDS = ("--help", "agents list", "journal", "doctor", "schedule list", "tasks list")
CLAIMED = COMMANDS[:4]
MOST_FLOORS = 1.5
MOST_BUILD_MS = 60.0
# Builds the application of an empty installation, once its modules are loaded, and prints the CPU that it took.
BUILD = """
import pathlib, sys, time
import anyio
import frontdesk.operation_table
from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.settings import Settings

async def build():
    async with open_app(Settings(data=pathlib.Path(sys.argv[1]))) as app:
        before = time.process_time()
        build_application(app)
        print(time.process_time() - before)

anyio.run(build)
"""


@dataclass(frozen=True, slots=True)
class StartsMeasured:
    """CPU seconds in each round: of the imports alone, of each command, and of building the application."""

    floor: Sequence[float]
    commands: Mapping[str, Sequence[float]]
    build: Sequence[float]

    def floors(self, command: str) -> list[float]:
        """The CPU of a command as a multiple of the imports', round by round."""
        return [found / floor for found, floor in zip(self.commands[command], self.floor, strict=True)]


def measure_starts(folder: Path, rounds: int) -> StartsMeasured:
    """Run the imports and each command by turns, in an installation that exists already."""
    environment = {**os.environ, "FRONTDESK_DATA": str(folder / "starts"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    # A user's Python keeps what it compiled.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    floor: list[float] = []
    commands: dict[str, list[float]] = {command: [] for command in COMMANDS}
    build: list[float] = []
    for command in COMMANDS:
        _cpu_seconds([*FRONTDESK, *command.split()], environment)
    for number in range(rounds):
        floor.append(_cpu_seconds(FLOOR, environment))
        for command in COMMANDS:
            commands[command].append(_cpu_seconds([*FRONTDESK, *command.split()], environment))
        build.append(_build_seconds(folder / f"build-{number}", environment))
    return StartsMeasured(floor, commands, build)


def _cpu_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _build_seconds(data: Path, environment: Mapping[str, str]) -> float:
    command = [sys.executable, "-c", BUILD, str(data)]
    return float(subprocess.run(command, env=environment, capture_output=True, check=True).stdout.split()[-1])


def starts_verdicts(measured: StartsMeasured) -> list[Verdict]:
    return [
        *(
            Verdict(
                f"`frontdesk {command}` takes at most {MOST_FLOORS:g}x the CPU of importing SQLAlchemy, pydantic and "
                "cyclopts alone",
                statistics.median(measured.floors(command)),
                MOST_FLOORS,
                tuple(measured.floors(command)),
            )
            for command in CLAIMED
        ),
        Verdict(
            f"building the application takes at most {MOST_BUILD_MS:g} ms of CPU",
            statistics.median(measured.build) * 1e3,
            MOST_BUILD_MS,
            tuple(found * 1e3 for found in measured.build),
        ),
    ]


def table(measured: StartsMeasured) -> str:
    """One line for each command, and one for building the application."""
    rows = [("", "CPU", "x imports"), ("imports alone", _milliseconds(measured.floor), "1.00")]
    rows += [
        (f"frontdesk {command}", _milliseconds(found), f"{statistics.median(measured.floors(command)):.2f}")
        for command, found in measured.commands.items()
    ]
    rows.append(("build the application", _milliseconds(measured.build), ""))
    widths = [max(len(row[index]) for row in rows) for index in range(3)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _milliseconds(found: Sequence[float]) -> str:
    return f"{statistics.median(found) * 1e3:.0f} ms"
