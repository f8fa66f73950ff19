"""The port to whoever reads and writes files: this machine, or the editor that has them open."""

from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """Whole text files. Every path is absolute, and lies in the session's folders by what `Roots.inside` said of it.

    What is not there is `NotFound`; what is no text, too large, or no longer inside is `Invalid`.
    """

    async def read(self, path: Path) -> str: ...

    async def write(self, path: Path, text: str) -> None:
        """Make or replace a file, with the folders it needs; once, and whole or not at all."""
        ...
