"""The files of this machine, for a session whose editor does not offer its own."""

from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from frontdesk.workspace.files import disk
from frontdesk.workspace.roots import Roots


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """`Files` on the disk, and what only a disk can do. A read may be left behind; a change is always seen through."""

    roots: Roots

    async def read(self, path: Path) -> str:
        return await to_thread.run_sync(disk.read, self.roots, path, abandon_on_cancel=True)

    async def write(self, path: Path, text: str) -> None:
        await to_thread.run_sync(disk.write, self.roots, path, text)

    async def delete(self, path: Path) -> None:
        """A file, or a link itself; `Invalid` for a folder."""
        await to_thread.run_sync(disk.delete, self.roots, path)

    async def move(self, source: Path, target: Path) -> None:
        """To a name that is free; `Invalid` where it is not."""
        await to_thread.run_sync(disk.move, self.roots, source, target)

    async def modified(self, path: Path) -> float | None:
        """When it was last changed, so that a change of somebody else's is seen; None where there is nothing."""
        return await to_thread.run_sync(disk.modified, self.roots, path, abandon_on_cancel=True)
