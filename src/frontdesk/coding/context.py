"""Holds what the coding tools of one session work with, and reads files as the editor shows them."""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from frontdesk.coding.commands import CommandRunner
from frontdesk.coding.files import Files, LocalFiles
from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import AskPermission, FileDiff, FileLocation
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.errors import NotFound

__all__ = ["AskPermission", "CodingContext", "ShowItem", "ShownItem", "TerminalOutput"]


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """The command of a call runs in this terminal of the editor's."""

    terminal_id: str


ShownItem = FileDiff | FileLocation | TerminalOutput
# Shows something of a call that is under way, by its id.
ShowItem = Callable[[str, ShownItem], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CodingContext:
    """All that the tools of one session need.

    `disk` has the same files as they lie on this machine, and `commands` runs what is run; each is None where the
    editor is elsewhere and does not do it for us, and the tools that need it are not offered then. `guard` knows which
    files are asked about each time.
    """

    roots: WorkspaceRoots
    files: Files
    commands: CommandRunner | None
    ask_permission: AskPermission
    show: ShowItem
    disk: LocalFiles | None
    guard: PathGuard


# Some disks note the time of a change in steps as coarse as this.
TIMESTAMP_GRAIN_SECONDS = 2.0
NEVER = math.inf
ALWAYS = 0.0


class FileView:
    """Knows from when on a change of a file on the disk was not made through the editor, but by a command or by us."""

    def __init__(self, bench: CodingContext) -> None:
        self._files = bench.files
        self._disk = bench.disk
        self._since = NEVER
        self._since_of: dict[Path, float] = {}

    def note_command(self) -> None:
        """What changes on the disk from now on may be the work of a command."""
        now = time.time() - TIMESTAMP_GRAIN_SECONDS
        self._since = min(self._since, now)
        self._since_of = {path: min(since, now) for path, since in self._since_of.items()}

    def note_removal(self, path: Path) -> None:
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

    async def read_if_exists(self, path: Path) -> str | None:
        """The same; None where there is no such file."""
        try:
            return await self.read(path)
        except NotFound:
            return None

    async def write(self, path: Path, text: str) -> None:
        """Through the editor alone, which therefore knows best until the next command."""
        await self._files.write(path, text)
        self._since_of[path] = NEVER
