"""Gives a session its files: the port, the files of this machine, listings, and searches that end in time.

Plain text is searched in a thread. A regular expression can take forever on a single line and cannot be stopped, so it
runs in a process of its own, which is killed when its time is up; the lines found until then are returned.
"""

import json
import math
import os
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Protocol

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from frontdesk.coding import disk
from frontdesk.coding.disk import FolderEntry, FolderEntryKind, WalkTimeout, walk_folder
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.scan import FileLine, FileQuery, scan_files
from frontdesk.errors import Invalid, NotFound


class Files(Protocol):
    """Whole text files. Every path is absolute, and was resolved by `WorkspaceRoots`.

    Raises `NotFound` for a missing file, and `Invalid` for one that is not text, too large, or no longer inside.
    """

    async def read(self, path: Path) -> str: ...

    async def write(self, path: Path, text: str) -> None:
        """Create or replace a file as a whole, with the folders it needs."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """`Files` on the disk, and operations that only a disk has. A cancel abandons a read, but never a change."""

    roots: WorkspaceRoots

    async def read(self, path: Path) -> str:
        return await to_thread.run_sync(disk.read_file, self.roots, path, abandon_on_cancel=True)

    async def write(self, path: Path, text: str) -> None:
        await to_thread.run_sync(disk.write_file, self.roots, path, text)

    async def delete(self, path: Path) -> None:
        """Delete a file or a link; raises `Invalid` for a folder."""
        await to_thread.run_sync(disk.delete_file, self.roots, path)

    async def move(self, source: Path, target: Path) -> None:
        """Move to a free name; raises `Invalid` where the name is taken."""
        await to_thread.run_sync(disk.move_path, self.roots, source, target)

    async def modified(self, path: Path) -> float | None:
        """The time of the last change; None where there is no file."""
        return await to_thread.run_sync(disk.modification_time, self.roots, path, abandon_on_cancel=True)


# Some disks note the time of a change in steps as coarse as this.
TIMESTAMP_GRAIN_SECONDS = 2.0
NEVER = math.inf
ALWAYS = 0.0


class FileView:
    """Reads and writes files as a session sees them, and decides whether the editor or the disk has the newest text.

    For each file it knows since when a change on the disk may come from a command or from us, and not from the editor.
    `disk` is None where the editor is on another machine.
    """

    def __init__(self, files: Files, disk: LocalFiles | None) -> None:
        self._files = files
        self._disk = disk
        self._since = NEVER
        self._since_of: dict[Path, float] = {}

    def note_command(self) -> None:
        """From now on a command may change files on the disk."""
        now = time.time() - TIMESTAMP_GRAIN_SECONDS
        self._since = min(self._since, now)
        self._since_of = {path: min(since, now) for path, since in self._since_of.items()}

    def note_removal(self, path: Path) -> None:
        """We removed this file from the disk, and the editor may still have it open."""
        self._since_of[path] = ALWAYS

    async def read(self, path: Path) -> str:
        since = self._since_of.get(path, self._since)
        if self._disk is not None and since != NEVER:
            modified = await self._disk.modified(path)
            # A file that is gone from the disk is gone, even where the editor has it open.
            if modified is None or modified >= since:
                return await self._disk.read(path)
        return await self._files.read(path)

    async def read_if_exists(self, path: Path) -> str | None:
        try:
            return await self.read(path)
        except NotFound:
            return None

    async def write(self, path: Path, text: str) -> None:
        """Write through the editor alone, which then has the newest text until the next command."""
        await self._files.write(path, text)
        self._since_of[path] = NEVER


LISTING_DEPTH = 3
LISTING_LIMIT = 1000
LISTING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class FolderListing:
    """Names relative to the working folder; folders end in a slash, links show their target. `cut`: there are more."""

    names: tuple[str, ...]
    cut: bool


async def list_files(
    roots: WorkspaceRoots,
    path: Path,
    depth: int = LISTING_DEPTH,
    limit: int = LISTING_LIMIT,
    seconds: float = LISTING_SECONDS,
) -> FolderListing:
    """List a folder to a depth, without what git ignores; raises `NotFound` for a file."""
    until = time.monotonic() + seconds
    return await to_thread.run_sync(_list_now, roots, path, depth, limit, until, abandon_on_cancel=True)


def _list_now(roots: WorkspaceRoots, path: Path, depth: int, limit: int, until: float) -> FolderListing:
    names: list[str] = []
    try:
        for entry in walk_folder(roots, path, until, depth):
            if len(names) == limit:
                return FolderListing(tuple(names), cut=True)
            names.append(_entry_text(roots, entry))
    except WalkTimeout:
        return FolderListing(tuple(names), cut=True)
    return FolderListing(tuple(names), cut=False)


def _entry_text(roots: WorkspaceRoots, entry: FolderEntry) -> str:
    shown = roots.display(entry.path)
    match entry.kind:
        case FolderEntryKind.FOLDER:
            return f"{shown}/"
        case FolderEntryKind.LINK:
            return f"{shown} -> {_link_target(entry)}"
        case FolderEntryKind.FILE:
            return shown


def _link_target(entry: FolderEntry) -> str:
    try:
        target = os.readlink(entry.at.name, dir_fd=entry.at.folder)
    except OSError:
        return "?"
    return target if target.isprintable() else "?"


SEARCH_SECONDS = 20.0
LONGEST_PATTERN = 1000
MOST_LINES = 1000
MOST_CONTEXT = 10
LONGEST_ANSWER = 100_000


@dataclass(frozen=True, slots=True)
class FileSearchResults:
    """The lines found. `cut`: there are more; `timed_out`: not all files were searched."""

    lines: tuple[FileLine, ...]
    cut: bool = False
    timed_out: bool = False


async def search_files(
    roots: WorkspaceRoots, query: FileQuery, path: Path | None = None, seconds: float = SEARCH_SECONDS
) -> FileSearchResults:
    """Search a file, a folder or the whole workspace for matching lines, without what git ignores."""
    asked = _clamp_query(query)
    paths = roots.all if path is None else (path,)
    if query.plain:
        until = time.monotonic() + seconds
        return await to_thread.run_sync(_search_now, roots, paths, asked, until, abandon_on_cancel=True)
    return await _search_in_process(roots, paths, asked, seconds)


def _clamp_query(query: FileQuery) -> FileQuery:
    if not query.pattern or len(query.pattern) > LONGEST_PATTERN:
        raise Invalid(f"Give something to look for, of {LONGEST_PATTERN} characters at most")
    if len(query.glob) > LONGEST_PATTERN:
        raise Invalid(f"Give a glob of {LONGEST_PATTERN} characters at most")
    context = min(max(query.context, 0), MOST_CONTEXT)
    return replace(query, context=context, limit=min(max(query.limit, 1), MOST_LINES))


def _search_now(roots: WorkspaceRoots, paths: Sequence[Path], query: FileQuery, until: float) -> FileSearchResults:
    lines: list[FileLine] = []
    try:
        lines.extend(scan_files(roots, paths, query, until))
    except WalkTimeout:
        return _limit_results(lines, query, timed_out=True)
    return _limit_results(lines, query)


def _limit_results(lines: Sequence[FileLine], query: FileQuery, *, timed_out: bool = False) -> FileSearchResults:
    """Cut the matches at the limit; the search finds one more, to know whether there are more."""
    matched = [index for index, line in enumerate(lines) if line.matched]
    cut = len(matched) > query.limit
    return FileSearchResults(tuple(lines[: matched[query.limit]] if cut else lines), cut, timed_out)


async def _search_in_process(
    roots: WorkspaceRoots, paths: Sequence[Path], query: FileQuery, seconds: float
) -> FileSearchResults:
    asked = {
        "cwd": str(roots.cwd),
        "others": [str(one) for one in roots.others],
        "paths": [str(one) for one in paths],
        "query": asdict(query),
        "seconds": math.ceil(seconds),
    }
    lines: list[FileLine] = []
    with anyio.move_on_after(seconds):
        async with _scanner() as process:
            finished = await _read_answers(process, json.dumps(asked).encode(), lines)
            return _limit_results(lines, query, timed_out=not finished)
    return _limit_results(lines, query, timed_out=True)


@asynccontextmanager
async def _scanner() -> AsyncGenerator[Process]:
    """A process that scans, killed at the end. It runs in the root folder, so it imports nothing from a workspace."""
    command = [sys.executable, "-P", "-m", scan_files.__module__]
    top = Path(sys.executable).anchor
    process = await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=top)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _read_answers(process: Process, asked: bytes, lines: list[FileLine]) -> bool:
    """Add the lines as they come; returns whether the scan finished."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process was opened without its pipes")
    await process.stdin.send(asked)
    await process.stdin.aclose()
    answers = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.IncompleteRead):
        while True:
            match json.loads(await answers.receive_until(b"\n", LONGEST_ANSWER)):
                case [str(path), int(number), str(text), bool(matched)]:
                    lines.append(FileLine(path, number, text, matched))
                case [kind, str(message)]:
                    raise NotFound(message) if kind == NotFound.__name__ else Invalid(message)
                case [bool(finished)]:
                    return finished
                case _:
                    raise RuntimeError("the scan answered with what is no line")
    return False
