"""Mirrors agents' memory into files that an editor can open."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import anyio
import structlog

from frontdesk.agents.host import MemoryBlock
from frontdesk.agents.memory_blocks import block_row_user

SUFFIX = ".md"
# With the suffix and a temporary name, still far below the limit of any file system.
LONGEST_NAME = 120
NAME_SHOWN = 50
FOLDER_MODE = 0o700
FILE_MODE = 0o444
DRAFT_PREFIX = ".new-"
# `quote` does not encode these; they could make a name special, or end in a suffix.
ALSO_QUOTED = {".": "%2E", "~": "%7E"}
CUT_SHORT = re.compile(r"%[0-9A-F]?$")

log = structlog.get_logger("frontdesk.coding")


class MemoryMirror:
    """Writes a folder for each agent, and in it one for each person but the local user.

    If a file cannot be written, this is logged, and fails no turn.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._warned = False

    def path_of(self, agent_id: str, label: str, user_id: str | None = None) -> Path:
        """The file that shows a block to a person; any label gives a valid path."""
        return self._folder_of(agent_id, user_id) / f"{_path_component(label)}{SUFFIX}"

    async def write_blocks(self, agent_id: str, blocks: Sequence[MemoryBlock], user_id: str | None = None) -> None:
        """Write these blocks to an agent's files for a person, and delete all others."""
        wanted = {self.path_of(agent_id, block.label, user_id): block.value for block in blocks}
        await self._in_thread(lambda: _write_all(self._folder_of(agent_id, user_id), wanted))

    async def write_block(self, agent_id: str, label: str, value: str, user_id: str | None = None) -> None:
        """Write one block."""
        await self._in_thread(lambda: _write_file(self.path_of(agent_id, label, user_id), value))

    async def delete_person(self, user_id: str, agents: Collection[str]) -> None:
        """Delete a person's files of every agent, and all files of these agents."""
        homes = [self._folder_of(agent_id, None) for agent_id in agents]
        await self._in_thread(lambda: _delete_person(self._folder, block_row_user(user_id), homes))

    def _folder_of(self, agent_id: str, user_id: str | None) -> Path:
        home, person = self._folder / _path_component(agent_id), block_row_user(user_id)
        return home / _path_component(person) if person else home

    async def _in_thread(self, work: Callable[[], None]) -> None:
        try:
            await anyio.to_thread.run_sync(work)
        except OSError as error:
            if not self._warned:
                self._warned = True
                log.warning("memory_not_mirrored", folder=str(self._folder), error=error.strerror or str(error))


def _path_component(name: str) -> str:
    """Encode a name as one step of a path that cannot lead out of it; different names stay different."""
    safe = quote(name, safe="", errors="surrogatepass")
    for sign, code in ALSO_QUOTED.items():
        safe = safe.replace(sign, code)
    if 0 < len(safe) <= LONGEST_NAME:
        return safe
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    # No encoded name contains `%-`.
    return f"{CUT_SHORT.sub('', safe[:NAME_SHOWN])}%-{digest}"


def _write_all(home: Path, wanted: Mapping[Path, str]) -> None:
    for path, value in wanted.items():
        _write_file(path, value)
    if not home.is_dir():
        return
    for found in home.iterdir():
        if found.suffix == SUFFIX and found not in wanted:
            found.unlink(missing_ok=True)


def _delete_person(folder: Path, person: str, homes: Collection[Path]) -> None:
    for home in folder.iterdir() if folder.is_dir() else ():
        theirs = home / _path_component(person) if person else home
        for file in [*theirs.glob(f"*{SUFFIX}"), *(home.rglob(f"*{SUFFIX}") if home in homes else ())]:
            file.unlink(missing_ok=True)
        if person and theirs.is_dir():
            theirs.rmdir()


def _write_file(path: Path, value: str) -> None:
    """Replace a file as a whole, so that a reader sees the old text or the new one."""
    text = value.encode(errors="replace")
    with suppress(FileNotFoundError):
        if path.read_bytes() == text:
            return
    for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    number, new = tempfile.mkstemp(prefix=DRAFT_PREFIX, dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text)
            os.fchmod(number, FILE_MODE)
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
