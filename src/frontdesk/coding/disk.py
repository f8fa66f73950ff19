"""Reads, writes, deletes, moves and walks through files inside a session's folders."""

import errno
import os
import secrets
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from frontdesk.coding.gitignore import IgnoreRules
from frontdesk.coding.paths import FILE_FLAGS, OpenPath, WorkspaceRoots, enter_folder, open_path, path_in_folder
from frontdesk.errors import FrontdeskError, Invalid, NotFound

LARGEST_FILE = 10_000_000


def read_file(roots: WorkspaceRoots, path: Path) -> str:
    """The text of a file, with its line ends."""
    with open_path(roots, path) as at:
        return decode_text(read_contents(at, roots.display(path)), roots.display(path))


def write_file(roots: WorkspaceRoots, path: Path, text: str) -> None:
    """Replace a file as a whole; an existing file keeps its mode and owner."""
    shown = roots.display(path)
    data = _encode_text(text, shown)
    with open_path(roots, path, make=True) as at:
        before = _check_replaceable(at, shown)
        draft = _draft_path(at)
        try:
            _write_draft(draft, data, before)
            os.replace(draft.name, at.name, src_dir_fd=at.folder, dst_dir_fd=at.folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft.name, dir_fd=draft.folder)
            raise


def delete_file(roots: WorkspaceRoots, path: Path) -> None:
    """Delete a file, or a link but not its target."""
    with open_path(roots, path, follow=False) as at:
        mode = _stat(at).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise Invalid(f"'{roots.display(path)}' is no file; only files can be deleted")
        os.unlink(at.name, dir_fd=at.folder)


def move_path(roots: WorkspaceRoots, source: Path, target: Path) -> None:
    """Rename a file, a link or a folder; nothing is overwritten."""
    root, names = roots.split(source)
    if root.joinpath(*names) in roots.all or target.is_relative_to(source):
        raise Invalid(f"'{roots.display(source)}' cannot be moved there; choose a place outside it")
    with open_path(roots, source, follow=False) as start:
        folder = stat.S_ISDIR(_stat(start).st_mode)
        with open_path(roots, target, make=True, follow=False) as end:
            _rename(start, end, folder=folder)


def modification_time(roots: WorkspaceRoots, path: Path) -> float | None:
    """The time of a file's last change in seconds since 1970; None where there is no file."""
    try:
        with open_path(roots, path) as at:
            return _stat(at).st_mtime
    except NotFound:
        return None


def read_contents(at: OpenPath, shown: str) -> bytes:
    """The content of a regular file that is not too large; never waits on a pipe or a device."""
    with open(os.open(at.name, os.O_RDONLY | FILE_FLAGS, dir_fd=at.folder), "rb") as file:  # noqa: PTH123 - it is open already
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Invalid(f"'{shown}' is no regular file; name one that is")
        # A file may grow while it is read.
        data = b"" if found.st_size > LARGEST_FILE else file.read(LARGEST_FILE + 1)
    if found.st_size > LARGEST_FILE or len(data) > LARGEST_FILE:
        raise Invalid(f"'{shown}' is larger than {LARGEST_FILE // 1_000_000} MB; use a command to look at parts of it")
    return data


def decode_text(data: bytes, shown: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"'{shown}' is no UTF-8 text; use a command to look at it") from error
    if "\0" in text:
        raise Invalid(f"'{shown}' is no text; use a command to look at it")
    return text


def _encode_text(text: str, shown: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"What should go into '{shown}' is no text that UTF-8 has; leave out lone surrogates") from error
    if len(data) > LARGEST_FILE:
        raise Invalid(f"'{shown}' would be larger than {LARGEST_FILE // 1_000_000} MB; write less, or use a command")
    return data


def _stat(at: OpenPath) -> os.stat_result:
    return os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)


def _check_replaceable(at: OpenPath, shown: str) -> os.stat_result | None:
    try:
        found = _stat(at)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Invalid(f"'{shown}' is no regular file; name one that is, or a new one")
    if not found.st_mode & 0o222:
        raise Invalid(f"'{shown}' is read-only; change its mode first")
    return found


def _draft_path(at: OpenPath) -> OpenPath:
    return OpenPath(at.folder, str(Path(at.name).with_name(f".frontdesk-{secrets.token_hex(8)}")))


def _write_draft(draft: OpenPath, data: bytes, before: os.stat_result | None) -> None:
    # A private file must not be readable for others even for a moment.
    mode = 0o666 if before is None else before.st_mode & 0o600
    made = os.open(draft.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, mode, dir_fd=draft.folder)
    with open(made, "wb") as file:  # noqa: PTH123 - it is open already
        file.write(data)
        file.flush()
        if before is not None and hasattr(os, "fchown"):
            _keep_owner_and_mode(made, before)
        os.fsync(made)


def _keep_owner_and_mode(made: int, before: os.stat_result) -> None:
    """Set the mode, and the owner where we may."""
    with suppress(PermissionError):
        os.fchown(made, before.st_uid, before.st_gid)
    os.fchmod(made, before.st_mode & 0o777)


def _rename(start: OpenPath, end: OpenPath, *, folder: bool) -> None:
    """Create the new name as something empty first: that fails where the name is taken, and a rename would not."""
    if folder:
        os.mkdir(end.name, dir_fd=end.folder)
    else:
        os.close(os.open(end.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, dir_fd=end.folder))
    try:
        os.replace(start.name, end.name, src_dir_fd=start.folder, dst_dir_fd=end.folder)
    except OSError as error:
        (os.rmdir if folder else os.unlink)(end.name, dir_fd=end.folder)
        if error.errno == errno.EXDEV:
            raise Invalid("That is on another disk; write it there and delete it here") from error
        raise


MAX_DEPTH = 64


class WalkTimeout(Exception):
    """Going through the files took too long."""


class FolderEntryKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder that was found. `name` is relative to the root; `at` is valid until the next entry."""

    path: Path
    name: str
    kind: FolderEntryKind
    at: OpenPath


def walk_folder(roots: WorkspaceRoots, path: Path, until: float, depth: int = MAX_DEPTH) -> Generator[FolderEntry]:
    """Walk through a folder in the order of names, each folder before its content; raises `WalkTimeout` at `until`."""
    root, names = roots.split(path)
    with open_path(roots, path) as start, enter_folder(start) as folder:
        yield from _walk_step(_WalkStep(path, "/".join(names), folder, _rules_above(roots, root, names), depth), until)


@dataclass(frozen=True, slots=True)
class _WalkStep:
    path: Path
    name: str
    folder: int | str
    ignored: IgnoreRules
    depth: int


def _walk_step(step: _WalkStep, until: float) -> Generator[FolderEntry]:
    ignored = step.ignored.with_file(step.name, _rules_in(step.folder))
    for found, kind in _sorted_entries(step.folder, until):
        name = f"{step.name}/{found}" if step.name else found
        if ignored.ignores(name, folder=kind is FolderEntryKind.FOLDER):
            continue
        entry = FolderEntry(step.path / found, name, kind, path_in_folder(step.folder, found))
        yield entry
        if kind is FolderEntryKind.FOLDER and step.depth > 1:
            # A folder that is gone, not readable, or a link by now is skipped.
            with suppress(OSError), enter_folder(entry.at) as inner:
                yield from _walk_step(_WalkStep(entry.path, name, inner, ignored, step.depth - 1), until)


def _sorted_entries(folder: int | str, until: float) -> list[tuple[str, FolderEntryKind]]:
    found: list[tuple[str, FolderEntryKind]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > until:
                raise WalkTimeout
            found.append((entry.name, _entry_kind(entry)))
    return sorted(found)


def _entry_kind(entry: os.DirEntry[str]) -> FolderEntryKind:
    if entry.is_symlink():
        return FolderEntryKind.LINK
    return FolderEntryKind.FOLDER if entry.is_dir(follow_symlinks=False) else FolderEntryKind.FILE


def _rules_above(roots: WorkspaceRoots, root: Path, names: Sequence[str]) -> IgnoreRules:
    """The rules for a folder without its own file: the repository's exclusions, and the files above the folder."""
    ignored = IgnoreRules().with_file("", _rules_at(roots, root / ".git" / "info" / "exclude"))
    for count in range(len(names)):
        above = names[:count]
        ignored = ignored.with_file("/".join(above), _rules_at(roots, root.joinpath(*above, ".gitignore")))
    return ignored


def _rules_at(roots: WorkspaceRoots, path: Path) -> bytes:
    try:
        with open_path(roots, path, follow=False) as at:
            return read_contents(at, path.name)
    except FrontdeskError:
        return b""


def _rules_in(folder: int | str) -> bytes:
    try:
        return read_contents(path_in_folder(folder, ".gitignore"), ".gitignore")
    except (OSError, FrontdeskError):
        return b""
