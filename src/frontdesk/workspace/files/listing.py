"""What is in a folder of the workspace, for a model to look through."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from frontdesk.workspace.files.walk import Entry, Kind, OutOfTime, walk
from frontdesk.workspace.roots import Roots

DEPTH = 3
LIMIT = 1000
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Listing:
    """Names from the working folder; a folder ends in a slash, a link says where it leads. `cut`: there is more."""

    names: tuple[str, ...]
    cut: bool


async def list_files(
    roots: Roots, path: Path, depth: int = DEPTH, limit: int = LIMIT, seconds: float = SECONDS
) -> Listing:
    """A folder and those in it, so many levels down, without what git ignores; a file is `NotFound` as a folder."""
    until = time.monotonic() + seconds
    return await to_thread.run_sync(_listed, roots, path, depth, limit, until, abandon_on_cancel=True)


def _listed(roots: Roots, path: Path, depth: int, limit: int, until: float) -> Listing:
    names: list[str] = []
    try:
        for entry in walk(roots, path, until, depth):
            if len(names) == limit:
                return Listing(tuple(names), cut=True)
            names.append(_shown(roots, entry))
    except OutOfTime:
        return Listing(tuple(names), cut=True)
    return Listing(tuple(names), cut=False)


def _shown(roots: Roots, entry: Entry) -> str:
    shown = roots.shown(entry.path)
    match entry.kind:
        case Kind.FOLDER:
            return f"{shown}/"
        case Kind.LINK:
            return f"{shown} -> {_target(entry)}"
        case Kind.FILE:
            return shown


def _target(entry: Entry) -> str:
    try:
        target = os.readlink(entry.at.name, dir_fd=entry.at.folder)
    except OSError:
        return "?"
    return target if target.isprintable() else "?"
