"""What agents remember, as files that an editor can open and show; the agents' host alone says what is in them."""

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

from frontdesk.agents.blocks import row_of
from frontdesk.agents.host import Block

SUFFIX = ".md"
# With the suffix and a temporary name's letters, far from what any file system takes.
LONGEST = 120
SHOWN = 50
FOLDER_MODE = 0o700
FILE_MODE = 0o444
BEING_WRITTEN = ".new-"
# `quote` leaves these as they are; they could make a name special, or end in a suffix.
LEFT_ALONE = {".": "%2E", "~": "%7E"}
CUT_SHORT = re.compile(r"%[0-9A-F]?$")

log = structlog.get_logger("frontdesk.workspace")


class Mirror:
    """A folder for each agent, beneath one of ours, and in it one for each person but the one at this machine.

    That it cannot be written is for the log, and fails no turn.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._warned = False

    def path_of(self, agent_id: str, label: str, user_id: str | None = None) -> Path:
        """Where a block is shown to a person, whatever its label is made of."""
        return self._home_of(agent_id, user_id) / f"{_component(label)}{SUFFIX}"

    async def write(self, agent_id: str, blocks: Sequence[Block], user_id: str | None = None) -> None:
        """Make the files of an agent for a person say what these blocks say, and no more."""
        wanted = {self.path_of(agent_id, block.label, user_id): block.value for block in blocks}
        await self._aside(lambda: _make_equal(self._home_of(agent_id, user_id), wanted))

    async def put(self, agent_id: str, label: str, value: str, user_id: str | None = None) -> None:
        """Show one block as it is now."""
        await self._aside(lambda: _put(self.path_of(agent_id, label, user_id), value))

    async def forget(self, user_id: str, agents: Collection[str]) -> None:
        """Delete what every agent's files show of a person, and all the files of these agents."""
        homes = [self._home_of(agent_id, None) for agent_id in agents]
        await self._aside(lambda: _forget(self._folder, row_of(user_id), homes))

    def _home_of(self, agent_id: str, user_id: str | None) -> Path:
        home, person = self._folder / _component(agent_id), row_of(user_id)
        return home / _component(person) if person else home

    async def _aside(self, work: Callable[[], None]) -> None:
        try:
            await anyio.to_thread.run_sync(work)
        except OSError as error:
            if not self._warned:
                self._warned = True
                log.warning("memory_not_mirrored", folder=str(self._folder), error=error.strerror or str(error))


def _component(name: str) -> str:
    """A name that is one step of a path, and never a way out of it; no two names become the same."""
    safe = quote(name, safe="", errors="surrogatepass")
    for sign, code in LEFT_ALONE.items():
        safe = safe.replace(sign, code)
    if 0 < len(safe) <= LONGEST:
        return safe
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    # `%-` is what no encoded name has.
    return f"{CUT_SHORT.sub('', safe[:SHOWN])}%-{digest}"


def _make_equal(home: Path, wanted: Mapping[Path, str]) -> None:
    for path, value in wanted.items():
        _put(path, value)
    if not home.is_dir():
        return
    for found in home.iterdir():
        if found.suffix == SUFFIX and found not in wanted:
            found.unlink(missing_ok=True)


def _forget(folder: Path, person: str, homes: Collection[Path]) -> None:
    for home in folder.iterdir() if folder.is_dir() else ():
        theirs = home / _component(person) if person else home
        for file in [*theirs.glob(f"*{SUFFIX}"), *(home.rglob(f"*{SUFFIX}") if home in homes else ())]:
            file.unlink(missing_ok=True)
        if person and theirs.is_dir():
            theirs.rmdir()


def _put(path: Path, value: str) -> None:
    """Replace a file as a whole, so that whoever reads it sees the old text or the new one."""
    text = value.encode(errors="replace")
    with suppress(FileNotFoundError):
        if path.read_bytes() == text:
            return
    for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    number, new = tempfile.mkstemp(prefix=BEING_WRITTEN, dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text)
            os.fchmod(number, FILE_MODE)
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
