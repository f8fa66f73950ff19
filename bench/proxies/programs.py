"""Starts the programs between caller and upstream, waits until they are ready, reads what they cost, stops them."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.processes import KEPT_VARIABLES, ROOT, STOP_SECONDS

# ContextForge creates its database first, which takes half a minute on a busy machine.
START_SECONDS = 120
LOOK_SECONDS = 0.1
REST_SECONDS = 1.0
# A server that uses more than this share of a core has not finished its start.
AT_REST = 0.05
OPEN = re.compile(r"is open: http://127\.0\.0\.1:(\d+)/")


@dataclass(frozen=True, slots=True)
class Program:
    """A running process, and the file with its output."""

    process: subprocess.Popen[bytes]
    log: Path

    def pids(self) -> tuple[int, ...]:
        """The process, then the processes that it started."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return (self.process.pid, *(child.pid for child in children))

    def wait_while(self, obstacle: Callable[[], str | None]) -> None:
        """Wait until there are none, at most as long as a start may take."""
        found: str | None = "it ended"
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            if (found := obstacle()) is None:
                return
            time.sleep(LOOK_SECONDS)
        raise RuntimeError(f"{self.log.stem} is not ready: {found}\n{self.log.read_text()[-2000:]}")

    def said_port(self) -> int:
        """The port that the program printed."""
        self.wait_while(lambda: None if OPEN.search(self.log.read_text()) else "it did not say that it is open")
        return int(OPEN.findall(self.log.read_text())[0])

    def wait_for_port(self, port: int) -> None:
        self.wait_while(lambda: None if _listens(port) else f"port {port} is closed")

    def wait_for_rest(self) -> None:
        """Wait until a program's work after its start is done, so that it is not counted as a call's cost."""
        self.wait_while(lambda: None if self._share_of_a_core() < AT_REST else "it is busy with something")

    def _share_of_a_core(self) -> float:
        before = sum(map(cpu_seconds, self.pids()))
        time.sleep(REST_SECONDS)
        return (sum(map(cpu_seconds, self.pids())) - before) / REST_SECONDS


@contextmanager
def started(name: str, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Generator[Program]:
    """Run a program in a folder of its own below `folder`."""
    own = folder / name
    own.mkdir()
    kept = {variable: os.environ[variable] for variable in KEPT_VARIABLES if variable in os.environ}
    log = own / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, env={**kept, **variables}, cwd=own, stdout=sink, stderr=sink)
    program = Program(process, log)
    try:
        yield program
    finally:
        _stop(program)


def installed(environment: str, command: str) -> str:
    """A command from one of the environments of the programs that Frontdesk is measured against."""
    path = ROOT / ".venvs" / environment / "bin" / command
    if not path.exists():
        raise RuntimeError(f"{path.relative_to(ROOT)} is missing; ./dev bench installs it")
    return str(path)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads."""
    if sys.platform == "linux":
        # The process' own CPU clock (clock_getcpuclockid) counts nanoseconds; /proc counts hundredths of a second.
        return time.clock_gettime((~pid << 3) | 2)
    spent = psutil.Process(pid).cpu_times()
    return spent.user + spent.system


def resident_bytes(pid: int) -> int:
    return psutil.Process(pid).memory_info().rss


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), LOOK_SECONDS).close()
    except OSError:
        return False
    return True


def _stop(program: Program) -> None:
    """Stop the program and all processes that it started."""
    if program.process.poll() is not None:
        return
    processes = [psutil.Process(pid) for pid in program.pids()]
    program.process.terminate()
    _, alive = psutil.wait_procs(processes, STOP_SECONDS)
    for process in alive:
        process.kill()
    program.process.wait(STOP_SECONDS)
