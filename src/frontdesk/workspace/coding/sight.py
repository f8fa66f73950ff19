"""Reads a file as it is now: as the editor has it, unless the disk has something newer that it may not show yet."""

import math
import time
from pathlib import Path

from frontdesk.errors import NotFound
from frontdesk.workspace.coding.model import Bench

# Some disks note the time of a change in steps as coarse as this.
COARSE_SECONDS = 2.0
NEVER = math.inf
ALWAYS = 0.0


class Sight:
    """Knows from when on a change of a file on the disk was not made through the editor, but by a command or by us."""

    def __init__(self, bench: Bench) -> None:
        self._files = bench.files
        self._disk = bench.disk
        self._since = NEVER
        self._since_of: dict[Path, float] = {}

    def command_begins(self) -> None:
        """What changes on the disk from now on may be the work of a command."""
        now = time.time() - COARSE_SECONDS
        self._since = min(self._since, now)
        self._since_of = {path: min(since, now) for path, since in self._since_of.items()}

    def gone(self, path: Path) -> None:
        """We took it from the disk ourselves, and the editor may still have it open."""
        self._since_of[path] = ALWAYS

    async def read(self, path: Path) -> str:
        since = self._since_of.get(path, self._since)
        if self._disk is not None and since != NEVER:
            modified = await self._disk.modified(path)
            # What is gone from the disk is gone, whatever is still open.
            if modified is None or modified >= since:
                return await self._disk.read(path)
        return await self._files.read(path)

    async def found(self, path: Path) -> str | None:
        """The same; None where there is no such file."""
        try:
            return await self.read(path)
        except NotFound:
            return None

    async def write(self, path: Path, text: str) -> None:
        """Through the editor alone, which therefore knows best until the next command."""
        await self._files.write(path, text)
        self._since_of[path] = NEVER
