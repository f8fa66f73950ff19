"""Starts the measured servers, reads what they cost, and stops them in every case."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
PEERS_PYTHON = ROOT / ".venvs" / "peers" / "bin" / "python"
START_SECONDS = 60
STOP_SECONDS = 15
# What a program needs to run at all; any other variable could configure one server differently from another.
KEPT_VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")


class Kind(StrEnum):
    """The kind of server."""

    FLOOR = "floor"
    FASTMCP = "fastmcp"
    DESK = "desk"


MODULES = {Kind.FLOOR: "floor", Kind.FASTMCP: "fastmcp_peer", Kind.DESK: "desk"}


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    kind: Kind
    tools: int
    port: int
    process: subprocess.Popen[bytes]
    data: Path

    def cpu_seconds(self) -> float:
        """User and system time of the process with all its threads, so background work of a request counts too."""
        if sys.platform == "linux":
            # The process' own CPU clock (clock_getcpuclockid) counts nanoseconds; /proc counts hundredths of a second.
            return time.clock_gettime((~self.process.pid << 3) | 2)
        spent = psutil.Process(self.process.pid).cpu_times()
        return spent.user + spent.system

    def resident_bytes(self) -> int:
        return psutil.Process(self.process.pid).memory_info().rss


@contextmanager
def running(kind: Kind, tools: int, folder: Path) -> Generator[Running]:
    """Start a server with this many tools; everything it writes goes below `folder`."""
    name = f"{kind}-{tools}"
    log, data = folder / f"{name}.log", folder / name
    python = PEERS_PYTHON if kind is Kind.FASTMCP else Path(sys.executable)
    if not python.exists():
        raise RuntimeError(f"{python.relative_to(ROOT)} is missing; ./dev bench installs it")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [str(python), "-m", f"bench.servers.{MODULES[kind]}", str(tools)],
            env=_environment(data),
            cwd=folder,
            stdout=sink,
            stderr=sink,
        )
    try:
        yield Running(kind, tools, _port(process, log), process, data)
    finally:
        _stop(process)


def _environment(data: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT), "FRONTDESK_DATA": str(data)}


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        found = re.search(r"is open: http://127\.0\.0\.1:(\d+)/", log.read_text())
        if found:
            return int(found[1])
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError(f"{log.stem} did not open:\n{log.read_text()[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
