"""Finds a path strictly beneath the session's folders, so that what is used is what was checked, whoever moves links.

Each folder on the way is opened from the one before it, and never through a link: a link is read, and followed by
walking its target from a root, if its target is in one. `..` is taken by the letter, before anything is opened.
"""

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from frontdesk.errors import FrontdeskError, Invalid, NotFound
from frontdesk.workspace.roots import LONGEST, Roots

LINKS = 40

# Not every system has each of these; O_PATH lets us pass a folder that we may enter but not list.
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
PLAIN: int = NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
FOLDER: int = NO_LINK | getattr(os, "O_DIRECTORY", 0)
PASSING: int = FOLDER | getattr(os, "O_PATH", os.O_RDONLY)
WALKS = {os.open, os.stat, os.mkdir, os.unlink, os.rename, os.readlink} <= os.supports_dir_fd


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open folder. Without a folder it is a whole path: a root's, or any where folders are not opened."""

    folder: int | None
    name: str


@contextmanager
def spot(roots: Roots, path: Path, *, make: bool = False, follow: bool = True) -> Generator[Spot]:
    """Where a path ends, for as long as this lasts; `make` makes the folders it needs, `follow` goes on from a link."""
    with _plain_words(roots, path):
        if not WALKS:
            yield _checked(roots, path, make=make, follow=follow)
            return
        found = _follow(roots, path, make=make, follow=follow)
        try:
            yield found
        finally:
            _close(found.folder)


@contextmanager
def entered(at: Spot) -> Generator[int | str]:
    """An open folder, to be listed; where folders cannot be opened, its path."""
    if not WALKS:
        yield at.name
        return
    folder = os.open(at.name, os.O_RDONLY | FOLDER, dir_fd=at.folder)
    try:
        yield folder
    finally:
        os.close(folder)


def within(folder: int | str, name: str) -> Spot:
    """A name in a folder that was entered."""
    return Spot(folder, name) if isinstance(folder, int) else Spot(None, str(Path(folder, name)))


def _follow(roots: Roots, path: Path, *, make: bool, follow: bool) -> Spot:
    at = path
    for _ in range(LINKS):
        root, names = roots.split(at)
        found = _walk(root, names, make=make, follow=follow)
        if isinstance(found, Spot):
            return found
        at = found
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _walk(root: Path, names: Sequence[str], *, make: bool, follow: bool) -> Spot | Path:
    """The spot at the end; or, where a link is met, the path to go on with instead."""
    here = Spot(None, str(root))
    for passed, name in enumerate(names):
        at = root.joinpath(*names[:passed])
        try:
            entered_folder = _pass(here, make=make)
            if isinstance(entered_folder, str):
                return at.parent.joinpath(entered_folder, *names[passed:])
        finally:
            _close(here.folder)
        here = Spot(entered_folder, name)
    if not follow or not names or not (target := _target(here)):
        return here
    _close(here.folder)
    return root.joinpath(*names[:-1], target)


def _pass(here: Spot, *, make: bool) -> int | str:
    """The folder opened; or the target of the link that is in its place."""
    try:
        return _open_folder(here, make=make)
    except OSError as error:
        # Which of the two a link gives depends on the system.
        target = _target(here) if error.errno in {errno.ENOTDIR, errno.ELOOP} and here.folder is not None else None
        if target is None:
            raise
        return target


def _open_folder(here: Spot, *, make: bool) -> int:
    try:
        return os.open(here.name, PASSING, dir_fd=here.folder)
    except FileNotFoundError:
        if not make or here.folder is None:
            raise
    # Somebody may be faster; what they made is looked at like anything else.
    with suppress(FileExistsError):
        os.mkdir(here.name, dir_fd=here.folder)
    return os.open(here.name, PASSING, dir_fd=here.folder)


def _target(here: Spot) -> str | None:
    """What a link says; None where there is none, and whoever uses the name finds out what is there instead."""
    try:
        return os.readlink(here.name, dir_fd=here.folder)
    except OSError:
        return None


def _close(folder: int | None) -> None:
    if folder is not None:
        os.close(folder)


def _checked(roots: Roots, path: Path, *, make: bool, follow: bool) -> Spot:
    """For systems that cannot open from a folder (Windows): links are followed first, and a race can be lost."""
    real = roots.inside(str(path)) if follow else roots.entry(str(path))
    if make:
        real.parent.mkdir(parents=True, exist_ok=True)
    return Spot(None, str(real))


@contextmanager
def _plain_words(roots: Roots, path: Path) -> Generator[None]:
    """What the system says of a path, as our own errors."""
    given = str(path)
    if "\0" in given or len(given) > LONGEST:
        raise Invalid("Give the path of a file in the workspace")
    try:
        os.fsencode(path)
        yield
    except OSError as error:
        raise _said(error, roots.shown(path)[:200]) from error
    except UnicodeEncodeError as error:  # a lone surrogate is no part of any name
        raise Invalid("That path has characters that no file name has; give a plain one") from error


def _said(error: OSError, shown: str) -> FrontdeskError:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return NotFound(f"There is no '{shown}' in the workspace; list the files to see what there is")
        case errno.ELOOP:
            return Invalid(f"'{shown}' is a link that leads nowhere, or is being changed; name the real file")
        case errno.ENAMETOOLONG:
            return Invalid(f"'{shown}' is too long for a path; give a shorter one")
        case errno.EEXIST | errno.ENOTEMPTY:
            return Invalid(f"'{shown}' is there already; choose another name")
        case _:
            return Invalid(f"'{shown}' cannot be used: {error.strerror or type(error).__name__}")
