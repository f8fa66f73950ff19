"""A clock that several processes read and a test moves: this machine's clock, with an offset, or stopped."""

import mmap
import struct
import time
from pathlib import Path
from typing import Self

# The offset, and the moment at which it stands still (0: it runs); microseconds.
FORM = struct.Struct("=qq")
SECOND = 1_000_000


class SharedClock:
    """Kept in a file, so that a worker that started an hour ago sees a move immediately."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(FORM.size))
        self.path = path
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), FORM.size)

    def __call__(self) -> int:
        """The time now, in microseconds since the epoch."""
        off, held = FORM.unpack(self._memory)
        return (held or time.time_ns() // 1000) + off

    def move(self, seconds: float) -> None:
        off, held = FORM.unpack(self._memory)
        FORM.pack_into(self._memory, 0, off + round(seconds * SECOND), held)

    def hold(self) -> int:
        """Stop the clock, and return its time."""
        off, _ = FORM.unpack(self._memory)
        FORM.pack_into(self._memory, 0, off, time.time_ns() // 1000)
        return self()

    def close(self) -> None:
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
