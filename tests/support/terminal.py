"""Runs the frontdesk command in a real pseudo-terminal, with a person's input and output."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.desk import START_SECONDS, STOP_SECONDS, clean_environment

CONTROL_C = "\x03"
CONTROL_D = "\x04"
AGAIN_SECONDS = 1
# The terminal must be the process' own; otherwise Ctrl-C would not reach it.
LAUNCH = "import os, runpy; os.login_tty(0); runpy.run_module('frontdesk', run_name='__main__', alter_sys=True)"


class Terminal:
    """A running command in a terminal; its output is read up to an expected text."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self._screen = screen
        self._unread = b""
        self._over = False

    def type(self, text: str) -> None:
        """Type a line."""
        self.press(f"{text}\n")

    def press(self, keys: str) -> None:
        """Type without Enter."""
        os.write(self._screen, keys.encode())

    def until(self, text: str, *, pressing: str = "") -> str:
        """All output since the last call, up to and including a text; `pressing` keys as long as nothing happens.

        A Ctrl-C that comes while readline handles a key is noticed only with the next one.
        """
        wanted, deadline = text.encode(), time.monotonic() + START_SECONDS
        self.press(pressing)
        while wanted not in self._unread and not self._over and time.monotonic() < deadline:
            if not self._read():
                self.press(pressing)
        assert wanted in self._unread, f"waiting for {text!r}, there was:\n{self._unread.decode()}"
        found, _, self._unread = self._unread.partition(wanted)
        return (found + wanted).decode()

    def ended(self, *, pressing: str = "") -> int:
        """The exit code, when it is over."""
        deadline = time.monotonic() + STOP_SECONDS
        self.press(pressing)
        while not self._over and time.monotonic() < deadline:
            if not self._read():
                self.press(pressing)
        return self.process.wait(STOP_SECONDS)

    def _read(self) -> bool:
        """Read the output; False if there was none for a while."""
        ready, _, _ = select.select([self._screen], [], [], AGAIN_SECONDS)
        if ready:
            try:
                more = os.read(self._screen, 65536)
            except OSError:
                # How Linux reports that no process holds the other end any more.
                more = b""
            self._over = not more
            self._unread = (self._unread + more).replace(b"\r\n", b"\n")
        return bool(ready)


@contextmanager
def open_terminal(*arguments: str, data: Path, **settings: str) -> Generator[Terminal]:
    """Start the command in a terminal of its own; it has always ended at the end of the block."""
    screen, keyboard = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *arguments],
            env=clean_environment(FRONTDESK_DATA=str(data), TERM="xterm", **settings),
            cwd=data.parent,
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
        )
    finally:
        os.close(keyboard)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait(STOP_SECONDS)
        os.close(screen)
