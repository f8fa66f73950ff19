"""A webhook receiver's process as a test sees it: its address, and the requests that it got."""

import json
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("webhook_receiver.py")
STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """A running receiver."""

    url: str
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def received(self, path: str | None = None) -> Sequence[Received]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        every = [Received(**json.loads(line)) for line in lines]
        return [one for one in every if path in (None, one.path)]


@contextmanager
def open_webhooks(log: Path, *certificate: str) -> Generator[Webhooks]:
    """Start a receiver and end it at the end of the block; with a certificate and its key it speaks TLS."""
    command = [sys.executable, str(PROGRAM), str(log), *certificate]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the receiver did not start"
            yield Webhooks(url, log)
        finally:
            process.kill()
            process.wait(STOP_SECONDS)
