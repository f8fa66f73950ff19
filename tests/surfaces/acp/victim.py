"""`frontdesk acp` as a process of its own, and everything that it says, checked frame by frame."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import Any, cast

from tests.support.desk import clean_environment

# Far more than any answer takes, for a machine that is busy with other things.
SECONDS = 30
INITIALIZE: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
BUG = {"code": -32603, "message": "Internal error"}


class Victim:
    """What is sent goes by a thread, so that a process that reads no more is found out and not waited for."""

    def __init__(self, folder: Path, ears: int | None = None) -> None:
        """`ears` is after how many frames it listens no more."""
        self.log = folder / "log"
        self.heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.litter: list[bytes] = []
        self.bugs: list[dict[str, Any]] = []
        self._ears = ears
        self._numbers = count(1)
        self._unsent: queue.Queue[bytes | None] = queue.Queue()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "frontdesk", "acp"],
                env=clean_environment(FRONTDESK_DATA=str(folder / "data"), FRONTDESK_EMBEDDINGS="off"),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True).start()

    def say(self, *lines: bytes | dict[str, Any]) -> None:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0", **line}).encode()
            self._unsent.put(data + b"\n")

    def cut(self, data: bytes) -> None:
        """The last that is said, wherever it breaks off."""
        self._unsent.put(data)
        self._unsent.put(None)

    def ask(self, method: str, params: object = None) -> dict[str, Any]:
        """The answer to a request that is in order; whatever else comes meanwhile was for others."""
        number = f"probe-{next(self._numbers)}"
        self.say({"id": number, "method": method, "params": {} if params is None else params})
        while True:
            frame = self.heard.get(timeout=SECONDS)
            assert frame is not None, f"ended:\n{self.log.read_text()[-2000:]}"
            if frame.get("id") == number and "method" not in frame:
                return frame

    def is_well(self) -> None:
        """It answers, it has said nothing but frames, and nothing in it has failed."""
        # Whatever was said may have been to log out.
        assert "result" in self.ask("authenticate", {"methodId": "frontdesk"})
        assert "result" in self.ask("session/list")
        assert self.litter == []
        assert self.bugs == []

    def leave(self) -> int:
        """Its exit status, once it has ended of itself; nothing that it started is left."""
        self._unsent.put(None)
        status = self.process.wait(SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 0)
            raise AssertionError("a child is left")
        return status

    def listen_to_the_end(self) -> None:
        while self.heard.get(timeout=SECONDS) is not None:
            pass

    def stop(self) -> None:
        self._unsent.put(None)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait(SECONDS)

    def _write(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError), self.process.stdin as stdin:
            while (data := self._unsent.get()) is not None:
                stdin.write(data)
                stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in islice(stdout, self._ears):
                self._take(line)
        self.heard.put(None)

    def _take(self, line: bytes) -> None:
        frame = _frame(line)
        if frame is None:
            self.litter.append(line)
            return
        if frame.get("error") == BUG:
            self.bugs.append(frame)
        self.heard.put(frame)


@contextmanager
def victim(folder: Path, ears: int | None = None) -> Generator[Victim]:
    """A process that knows nobody yet."""
    folder.mkdir(exist_ok=True)
    started = Victim(folder, ears)
    try:
        yield started
    finally:
        started.stop()


def _frame(line: bytes) -> dict[str, Any] | None:
    """The frame in a line of its own; None where it is none."""
    try:
        frame: Any = json.loads(line, parse_constant=lambda _name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return None
    if not line.endswith(b"\n") or not isinstance(frame, dict):
        return None
    return _checked(cast("dict[str, Any]", frame))


def _checked(frame: dict[str, Any]) -> dict[str, Any] | None:
    is_answer = "id" in frame and ("result" in frame) != ("error" in frame) and "method" not in frame
    is_said = isinstance(frame.get("method"), str) and "result" not in frame and "error" not in frame
    return frame if frame.get("jsonrpc") == "2.0" and (is_answer or is_said) else None
