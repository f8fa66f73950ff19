"""The processes of a scheduler under faults, as a test controls them: the receiver, and workers from the nursery."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from signal import Signals
from typing import Any

from tests.support.desk import ROOT, clean_environment
from tests.support.schedules.child import Orders
from tests.support.schedules.receiver import EVERYBODY, How, Manner

SECONDS = 30


@dataclass(slots=True)
class Receiver:
    """The agents' server. After a kill it can be started again at the same address, with the same log."""

    log: Path
    clock: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = _program("tests.support.schedules.receiver", str(self.port), str(self.log), str(self.clock))
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(SECONDS)
            _close(self.process)
            self.process = None

    def manners(self, agent: str, *following: Manner, always: Manner | None = None) -> None:
        """What to do with the next deliveries to an agent, and with those after them."""
        self._tell("/manners", {"agent": agent, "next": [asdict(one) for one in following]})
        if always is not None:
            self._tell("/manners", {"agent": agent, "always": asdict(always)})

    def chance(self, seed: int, slowest: float, shares: dict[How, float] | None = None) -> None:
        said = {"agent": EVERYBODY, "seed": seed, "slowest": slowest, "shares": shares or {}}
        self._tell("/manners", said)

    def release(self, agent: str) -> None:
        """Let hanging deliveries continue, now and later."""
        self._tell("/release", {"agent": agent})

    def _tell(self, path: str, said: dict[str, Any]) -> None:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as connection:
            connection.request("POST", path, json.dumps(said))
            assert connection.getresponse().read() == b"{}"


@dataclass(slots=True)
class Nursery:
    """The process that forks workers, and its reports of their ends."""

    process: subprocess.Popen[str]
    ready: threading.Event = field(default_factory=threading.Event)
    born: list[int] = field(default_factory=list[int])
    gone: dict[int, int] = field(default_factory=dict[int, int])
    changed: threading.Condition = field(default_factory=threading.Condition)

    def spawn(self, orders: Orders) -> int:
        """The process id of a new worker."""
        assert self.process.stdin is not None
        before = len(self.born)
        self.process.stdin.write(f"{json.dumps(asdict(orders))}\n")
        self.process.stdin.flush()
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.born) > before, SECONDS), "the nursery forked nobody"
            return self.born[before]

    def ended(self, pid: int, seconds: float = SECONDS) -> int:
        """How it ended: an exit status, or minus a signal."""
        with self.changed:
            assert self.changed.wait_for(lambda: pid in self.gone, seconds), f"worker {pid} did not end"
            return self.gone[pid]

    def signal(self, pid: int, number: Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def alive(self) -> list[int]:
        with self.changed:
            return [pid for pid in self.born if pid not in self.gone]

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            with self.changed:
                match said:
                    case {"ready": True}:
                        self.ready.set()
                    case {"born": pid}:
                        self.born.append(pid)
                    case {"gone": pid, "code": code}:
                        self.gone[pid] = code
                    case _:
                        raise AssertionError(said)
                self.changed.notify_all()


@contextmanager
def open_nursery() -> Generator[Nursery]:
    process = _program("tests.support.schedules.nursery")
    nursery = Nursery(process)
    listener = threading.Thread(target=nursery.listen)
    listener.start()
    try:
        assert nursery.ready.wait(SECONDS), "the nursery did not open"
        yield nursery
    finally:
        assert process.stdin is not None
        # It ends when its input is closed, together with its children.
        process.stdin.close()
        process.wait(SECONDS)
        listener.join(SECONDS)
        _close(process)


@contextmanager
def open_receiver(folder: Path, clock: Path) -> Generator[Receiver]:
    receiver = Receiver(folder / "receiver.log", clock)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.kill()


def _program(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=clean_environment(PYTHONPATH=str(ROOT)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def _close(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
