"""Standard input and output for frames alone: nothing else in the process can read the one or write the other."""

import os
import sys
from typing import Self

from frontdesk.surfaces.acp.wire.pipes import MOST_BYTES, Inlet, Outlet

FLUSH_SECONDS = 5


class Stdio:
    """Frames as lines; a `Carrier`."""

    def __init__(self, reading: int, writing: int, most_bytes: int = MOST_BYTES) -> None:
        """Both descriptors are this carrier's own from now on."""
        self._inlet = Inlet(reading, most_bytes)
        # Who does not listen has left, even if he keeps the other direction open.
        self._outlet = Outlet(writing, self._inlet.end)

    @classmethod
    def open(cls) -> Self:
        """Take the standard descriptors over; what is printed goes to standard error, and children read nothing.

        Before the event loop is there, which would be given the number of one that we were started without.
        """
        if sys.stdout is not None:
            sys.stdout.flush()
        _fill_gaps()
        reading, writing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(reading, writing)

    async def receive(self) -> bytes | None:
        return await self._inlet.take()

    async def send(self, frame: bytes) -> None:
        await self._outlet.send(frame)

    async def close(self) -> None:
        await self._outlet.close(FLUSH_SECONDS)


def _fill_gaps() -> None:
    """A standard descriptor that we were started without would be given to the next file that is opened."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            # The lowest that is free, so it is the one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
