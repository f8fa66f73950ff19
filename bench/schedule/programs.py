"""Starts the programs of a measurement, exchanges lines with them, and stops them in every case."""

import os
import selectors
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import KEPT_VARIABLES, ROOT, STOP_SECONDS

SAY_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Program:
    """A running program: it reads and writes lines, and its errors go to a file."""

    process: subprocess.Popen[str]
    log: Path

    def hear(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(SAY_SECONDS) else ""
        if not line:
            raise RuntimeError(f"{self.log.stem} said nothing:\n{self.complaints()}")
        return line.strip()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def complaints(self) -> str:
        return self.log.read_text()[-2000:]


@contextmanager
def started(name: str, command: Sequence[str], folder: Path) -> Generator[Program]:
    """Run it until the end of the block."""
    if not Path(command[0]).exists():
        raise RuntimeError(f"{Path(command[0]).relative_to(ROOT)} is missing; ./dev bench installs it")
    kept = {variable: os.environ[variable] for variable in KEPT_VARIABLES if variable in os.environ}
    log = folder / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            env={**kept, "PYTHONPATH": str(ROOT)},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    try:
        yield Program(process, log)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=STOP_SECONDS)
