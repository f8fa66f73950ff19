"""The port to whoever runs commands: this machine, or the editor in a terminal of its own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# Called with the id of the editor's terminal as soon as there is one, so that it can be shown.
Opened = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a command. `exit_code` is None where a signal ended it, or it was stopped for taking too long."""

    output: str
    exit_code: int | None = None
    signal: str | None = None
    truncated: bool = False
    timed_out: bool = False


class Commands(Protocol):
    """Runs one command line at a time, through a shell; whoever is cancelled leaves no process behind."""

    async def run(self, command: str, cwd: Path, seconds: float, opened: Opened) -> Ran: ...
