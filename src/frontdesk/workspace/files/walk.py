"""Walks through a folder of the workspace: in order, past what git ignores, through no link, and not for ever."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from frontdesk.errors import FrontdeskError
from frontdesk.workspace.files.beneath import Spot, entered, spot, within
from frontdesk.workspace.files.disk import contents
from frontdesk.workspace.files.ignored import Ignored
from frontdesk.workspace.roots import Roots

DEEPEST = 64


class OutOfTime(Exception):
    """The walk was not done when its time was up."""


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was met. `name` is from its root, with slashes; `at` is good until the next one is asked for."""

    path: Path
    name: str
    kind: Kind
    at: Spot


def walk(roots: Roots, path: Path, until: float, depth: int = DEEPEST) -> Generator[Entry]:
    """All that is in a folder, by name, each folder before what is in it; `OutOfTime` when the clock passes `until`."""
    root, names = roots.split(path)
    with spot(roots, path) as start, entered(start) as folder:
        yield from _in_folder(_Step(path, "/".join(names), folder, _rules_above(roots, root, names), depth), until)


@dataclass(frozen=True, slots=True)
class _Step:
    path: Path
    name: str
    folder: int | str
    ignored: Ignored
    depth: int


def _in_folder(step: _Step, until: float) -> Generator[Entry]:
    ignored = step.ignored.and_in(step.name, _rules_in(step.folder))
    for found, kind in _sorted(step.folder, until):
        name = f"{step.name}/{found}" if step.name else found
        if ignored.has(name, folder=kind is Kind.FOLDER):
            continue
        entry = Entry(step.path / found, name, kind, within(step.folder, found))
        yield entry
        if kind is Kind.FOLDER and step.depth > 1:
            # A folder that is gone, closed to us, or a link by now is passed over.
            with suppress(OSError), entered(entry.at) as inner:
                yield from _in_folder(_Step(entry.path, name, inner, ignored, step.depth - 1), until)


def _sorted(folder: int | str, until: float) -> list[tuple[str, Kind]]:
    found: list[tuple[str, Kind]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > until:
                raise OutOfTime
            found.append((entry.name, _kind(entry)))
    return sorted(found)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return Kind.LINK
    return Kind.FOLDER if entry.is_dir(follow_symlinks=False) else Kind.FILE


def _rules_above(roots: Roots, root: Path, names: Sequence[str]) -> Ignored:
    """What counts in a folder before its own file does: the exclusions of the repository, and the files above it."""
    ignored = Ignored().and_in("", _rules_at(roots, root / ".git" / "info" / "exclude"))
    for count in range(len(names)):
        above = names[:count]
        ignored = ignored.and_in("/".join(above), _rules_at(roots, root.joinpath(*above, ".gitignore")))
    return ignored


def _rules_at(roots: Roots, path: Path) -> bytes:
    try:
        with spot(roots, path, follow=False) as at:
            return contents(at, path.name)
    except FrontdeskError:
        return b""


def _rules_in(folder: int | str) -> bytes:
    try:
        return contents(within(folder, ".gitignore"), ".gitignore")
    except (OSError, FrontdeskError):
        return b""
