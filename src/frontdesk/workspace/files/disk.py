"""Reads, writes, deletes and moves single files on this machine, each through the one place it was found in."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from frontdesk.errors import Invalid, NotFound
from frontdesk.workspace.files.beneath import PLAIN, Spot, spot
from frontdesk.workspace.roots import Roots

LARGEST = 10_000_000


def read(roots: Roots, path: Path) -> str:
    """The text of a file, its line ends as they are."""
    with spot(roots, path) as at:
        return text_of(contents(at, roots.shown(path)), roots.shown(path))


def write(roots: Roots, path: Path, text: str) -> None:
    """Put a text in the place of a file, whole or not at all; a file that is there keeps its mode and its owner."""
    shown = roots.shown(path)
    data = _encoded(text, shown)
    with spot(roots, path, make=True) as at:
        before = _replaceable(at, shown)
        draft = _beside(at)
        try:
            _put(draft, data, before)
            os.replace(draft.name, at.name, src_dir_fd=at.folder, dst_dir_fd=at.folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft.name, dir_fd=draft.folder)
            raise


def delete(roots: Roots, path: Path) -> None:
    """Remove a file, or a link and not what it leads to."""
    with spot(roots, path, follow=False) as at:
        mode = _looked_at(at).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise Invalid(f"'{roots.shown(path)}' is no file; only files can be deleted")
        os.unlink(at.name, dir_fd=at.folder)


def move(roots: Roots, source: Path, target: Path) -> None:
    """Give a file, a link or a folder another name; nothing that is there is overwritten."""
    root, names = roots.split(source)
    if root.joinpath(*names) in roots.all or target.is_relative_to(source):
        raise Invalid(f"'{roots.shown(source)}' cannot be moved there; choose a place outside it")
    with spot(roots, source, follow=False) as start:
        folder = stat.S_ISDIR(_looked_at(start).st_mode)
        with spot(roots, target, make=True, follow=False) as end:
            _rename(start, end, folder=folder)


def modified(roots: Roots, path: Path) -> float | None:
    """When a file was last changed, in seconds since 1970; None where there is none."""
    try:
        with spot(roots, path) as at:
            return _looked_at(at).st_mtime
    except NotFound:
        return None


def contents(at: Spot, shown: str) -> bytes:
    """All of a regular file that is not too large; whatever else there is does not make us wait."""
    with open(os.open(at.name, os.O_RDONLY | PLAIN, dir_fd=at.folder), "rb") as file:  # noqa: PTH123 - it is open already
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Invalid(f"'{shown}' is no regular file; name one that is")
        # A file may grow while it is read.
        data = b"" if found.st_size > LARGEST else file.read(LARGEST + 1)
    if found.st_size > LARGEST or len(data) > LARGEST:
        raise Invalid(f"'{shown}' is larger than {LARGEST // 1_000_000} MB; use a command to look at parts of it")
    return data


def text_of(data: bytes, shown: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"'{shown}' is no UTF-8 text; use a command to look at it") from error
    if "\0" in text:
        raise Invalid(f"'{shown}' is no text; use a command to look at it")
    return text


def _encoded(text: str, shown: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"What should go into '{shown}' is no text that UTF-8 has; leave out lone surrogates") from error
    if len(data) > LARGEST:
        raise Invalid(f"'{shown}' would be larger than {LARGEST // 1_000_000} MB; write less, or use a command")
    return data


def _looked_at(at: Spot) -> os.stat_result:
    return os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)


def _replaceable(at: Spot, shown: str) -> os.stat_result | None:
    try:
        found = _looked_at(at)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Invalid(f"'{shown}' is no regular file; name one that is, or a new one")
    if not found.st_mode & 0o222:
        raise Invalid(f"'{shown}' is read-only; change its mode first")
    return found


def _beside(at: Spot) -> Spot:
    return Spot(at.folder, str(Path(at.name).with_name(f".frontdesk-{secrets.token_hex(8)}")))


def _put(draft: Spot, data: bytes, before: os.stat_result | None) -> None:
    # What only its owner may read is not there for others for a moment either.
    mode = 0o666 if before is None else before.st_mode & 0o600
    made = os.open(draft.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, mode, dir_fd=draft.folder)
    with open(made, "wb") as file:  # noqa: PTH123 - it is open already
        file.write(data)
        file.flush()
        if before is not None and hasattr(os, "fchown"):
            _keep(made, before)
        os.fsync(made)


def _keep(made: int, before: os.stat_result) -> None:
    """The owner as far as we may say so, and the mode."""
    with suppress(PermissionError):
        os.fchown(made, before.st_uid, before.st_gid)
    os.fchmod(made, before.st_mode & 0o777)


def _rename(start: Spot, end: Spot, *, folder: bool) -> None:
    """Take the new name with something empty first: that fails where there is anything, and a rename would not."""
    if folder:
        os.mkdir(end.name, dir_fd=end.folder)
    else:
        os.close(os.open(end.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, dir_fd=end.folder))
    try:
        os.replace(start.name, end.name, src_dir_fd=start.folder, dst_dir_fd=end.folder)
    except OSError as error:
        (os.rmdir if folder else os.unlink)(end.name, dir_fd=end.folder)
        if error.errno == errno.EXDEV:
            raise Invalid("That is on another disk; write it there and delete it here") from error
        raise
