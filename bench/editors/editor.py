"""An editor that costs next to nothing: it writes frames by hand to the pipes of an agent that it starts."""

import json
import os
import select
import subprocess
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.processes import KEPT_VARIABLES, ROOT, STOP_SECONDS

ANSWER_SECONDS = 60
PART = 1 << 16


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds to the first piece of text and to the end, and how many pieces there were."""

    first: float
    whole: float
    pieces: int


@dataclass(slots=True)
class Editor:
    """One connection; one request at a time."""

    process: subprocess.Popen[bytes]
    log: Path
    _asked: int = 0
    _lines: deque[bytes] = field(default_factory=deque[bytes])
    _rest: bytes = b""

    def ask(self, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the method takes
        """What the agent answers."""
        return self.timed(method, **params)[0]

    def crowd(self, method: str, count: int) -> None:
        """Send the same request many times at a time, so that the agent opens as many connections as it ever does."""
        waiting = {f"crowd-{number}" for number in range(count)}
        self._lines.clear()
        for number in waiting:
            self._send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {}}).encode() + b"\n")
        while waiting:
            waiting -= {str(said.get("id")) for said in map(json.loads, self._heard())}

    def timed(self, method: str, **params: Any) -> tuple[dict[str, Any], Taken]:  # noqa: ANN401 - as above
        """The agent's answer, the time when it came, and the pieces that came before it."""
        self._asked += 1
        frame = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        # Output after the previous answer does not belong to this one.
        self._lines.clear()
        first, pieces = 0.0, 0
        started = time.perf_counter()
        self._send(json.dumps(frame).encode() + b"\n")
        while True:
            for said in map(json.loads, self._heard()):
                if said.get("id") == self._asked:
                    return self._result(said), Taken(first - started, time.perf_counter() - started, pieces)
                if _is_piece(said):
                    first, pieces = first or time.perf_counter(), pieces + 1
                elif "id" in said:
                    raise RuntimeError(f"the agent asks for something that it should not need: {said}")

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _heard(self) -> Generator[bytes]:
        """The available lines, at least one; lines that nobody reads are kept."""
        if not self._lines:
            self._read()
        while self._lines:
            yield self._lines.popleft()

    def _read(self) -> None:
        assert self.process.stdout is not None
        reading = self.process.stdout.fileno()
        while not self._lines:
            if not select.select([reading], [], [], ANSWER_SECONDS)[0]:
                raise RuntimeError(f"{self.log.stem} said nothing for {ANSWER_SECONDS} s:\n{self.complaints()}")
            if not (data := os.read(reading, PART)):
                raise RuntimeError(f"{self.log.stem} has left:\n{self.complaints()}")
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines += lines

    def _result(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        if "result" not in answer:
            raise RuntimeError(f"{self.log.stem} refused: {answer}\n{self.complaints()}")
        return answer["result"]

    def complaints(self) -> str:
        return self.log.read_text()[-2000:]


def _is_piece(said: Mapping[str, Any]) -> bool:
    params: Mapping[str, Any] = said.get("params") or {}
    update: Mapping[str, Any] = params.get("update") or {}
    return update.get("sessionUpdate") == "agent_message_chunk"


@contextmanager
def started(name: str, command: Sequence[str], folder: Path, settings: Mapping[str, str]) -> Generator[Editor]:
    """An agent as an editor starts it, with only these settings; it ends when the editor ends."""
    kept = {variable: os.environ[variable] for variable in KEPT_VARIABLES if variable in os.environ}
    log = folder / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            env={**kept, "PYTHONPATH": str(ROOT), **settings},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
        )
    try:
        yield Editor(process, log)
    finally:
        _stop(process)


def initialize(editor: Editor) -> None:
    editor.ask("initialize", protocolVersion=1, clientCapabilities={})


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
