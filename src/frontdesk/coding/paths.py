"""Resolves paths inside a session's folders, and opens them so that no link leads out of these folders.

Each folder on the way is opened from the one before it, and never through a link: a link is read, and its target is
opened from a root in the same way, if it is inside one. `..` is resolved as text, before anything is opened.
"""

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from frontdesk.errors import FrontdeskError, Invalid, NotFound

LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class WorkspaceRoots:
    """The folders of a session; relative paths begin at `cwd`. All are absolute, with links resolved."""

    cwd: Path
    others: tuple[Path, ...] = ()

    @classmethod
    def from_folders(cls, cwd: Path, others: Sequence[Path] = ()) -> "WorkspaceRoots":
        return cls(_resolve_links(cwd), tuple(_resolve_links(one) for one in others))

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.cwd, *self.others)

    def resolve(self, text: str) -> Path:
        """The real path (`~` is an ordinary name); raises `Invalid` if it is outside these folders."""
        return self._require_inside(_resolve_links(self.cwd / _check_path_text(text)), text)

    def resolve_entry(self, text: str) -> Path:
        """Like `resolve`, for a file that is deleted or moved: a link at the end is not followed."""
        path = self.cwd / _check_path_text(text)
        if path.name in {"", ".."}:
            return self.resolve(text)
        return self._require_inside(_resolve_links(path.parent) / path.name, text)

    def display(self, path: Path) -> str:
        """A path on one line, relative to the working folder where it is inside."""
        return _printable(str(path.relative_to(self.cwd)) if path.is_relative_to(self.cwd) else str(path))

    def split(self, path: Path) -> tuple[Path, tuple[str, ...]]:
        """The outermost of these folders around a path, by its text alone, and the names from there."""
        plain = Path(os.path.normpath(self.cwd / path))
        around = [root for root in self.all if plain.is_relative_to(root)]
        if not around:
            raise self._outside(str(path))
        root = min(around, key=lambda one: len(one.parts))
        return root, plain.relative_to(root).parts

    def _require_inside(self, path: Path, text: str) -> Path:
        if not any(path.is_relative_to(root) for root in self.all):
            raise self._outside(text)
        return path

    def _outside(self, text: str) -> Invalid:
        return Invalid(f"'{_printable(text[:200])}' is outside the workspace; stay in {', '.join(map(str, self.all))}")


def _check_path_text(text: str) -> str:
    if not text.strip() or "\0" in text or len(text) > LONGEST_PATH:
        raise Invalid("Give the path of a file in the workspace")
    return text


def _printable(name: str) -> str:
    return name if name.isprintable() else "".join(one if one.isprintable() else "?" for one in name)


def _resolve_links(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError, RuntimeError) as error:
        raise Invalid("That path cannot be followed; give a plain one") from error


MAX_LINKS = 40

# Not every system has all of these; O_PATH allows to pass a folder that may be entered but not listed.
NO_LINK_FLAGS: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
FILE_FLAGS: int = NO_LINK_FLAGS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
FOLDER_FLAGS: int = NO_LINK_FLAGS | getattr(os, "O_DIRECTORY", 0)
PASSING_FLAGS: int = FOLDER_FLAGS | getattr(os, "O_PATH", os.O_RDONLY)
CAN_OPEN_BENEATH = {os.open, os.stat, os.mkdir, os.unlink, os.rename, os.readlink} <= os.supports_dir_fd


@dataclass(frozen=True, slots=True)
class OpenPath:
    """A name in an open folder. Without a folder it is a whole path: a root, or any path on systems like Windows."""

    folder: int | None
    name: str


@contextmanager
def open_path(roots: WorkspaceRoots, path: Path, *, make: bool = False, follow: bool = True) -> Generator[OpenPath]:
    """Open the folder of a path; `make` creates missing folders, `follow` follows a link at the end."""
    with _translate_os_errors(roots, path):
        if not CAN_OPEN_BENEATH:
            yield _resolve_first(roots, path, make=make, follow=follow)
            return
        found = _follow_links(roots, path, make=make, follow=follow)
        try:
            yield found
        finally:
            _close(found.folder)


@contextmanager
def enter_folder(at: OpenPath) -> Generator[int | str]:
    """Open a folder for listing; gives its path on systems that cannot open folders."""
    if not CAN_OPEN_BENEATH:
        yield at.name
        return
    folder = os.open(at.name, os.O_RDONLY | FOLDER_FLAGS, dir_fd=at.folder)
    try:
        yield folder
    finally:
        os.close(folder)


def path_in_folder(folder: int | str, name: str) -> OpenPath:
    """A name in a folder from `enter_folder`."""
    return OpenPath(folder, name) if isinstance(folder, int) else OpenPath(None, str(Path(folder, name)))


def _follow_links(roots: WorkspaceRoots, path: Path, *, make: bool, follow: bool) -> OpenPath:
    at = path
    for _ in range(MAX_LINKS):
        root, names = roots.split(at)
        found = _open_each_folder(root, names, make=make, follow=follow)
        if isinstance(found, OpenPath):
            return found
        at = found
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _open_each_folder(root: Path, names: Sequence[str], *, make: bool, follow: bool) -> OpenPath | Path:
    """The name in its open folder; or, at a link, the path to continue with."""
    here = OpenPath(None, str(root))
    for passed, name in enumerate(names):
        at = root.joinpath(*names[:passed])
        try:
            entered_folder = _open_or_read_link(here, make=make)
            if isinstance(entered_folder, str):
                return at.parent.joinpath(entered_folder, *names[passed:])
        finally:
            _close(here.folder)
        here = OpenPath(entered_folder, name)
    if not follow or not names or not (target := _link_target(here)):
        return here
    _close(here.folder)
    return root.joinpath(*names[:-1], target)


def _open_or_read_link(here: OpenPath, *, make: bool) -> int | str:
    """Open a folder; or read the target of a link in its place."""
    try:
        return _open_folder(here, make=make)
    except OSError as error:
        # Systems differ in which of the two errors a link gives.
        target = _link_target(here) if error.errno in {errno.ENOTDIR, errno.ELOOP} and here.folder is not None else None
        if target is None:
            raise
        return target


def _open_folder(here: OpenPath, *, make: bool) -> int:
    try:
        return os.open(here.name, PASSING_FLAGS, dir_fd=here.folder)
    except FileNotFoundError:
        if not make or here.folder is None:
            raise
    # Another process may be faster; what it created is checked like anything else.
    with suppress(FileExistsError):
        os.mkdir(here.name, dir_fd=here.folder)
    return os.open(here.name, PASSING_FLAGS, dir_fd=here.folder)


def _link_target(here: OpenPath) -> str | None:
    """The target of a link; None where there is no link."""
    try:
        return os.readlink(here.name, dir_fd=here.folder)
    except OSError:
        return None


def _close(folder: int | None) -> None:
    if folder is not None:
        os.close(folder)


def _resolve_first(roots: WorkspaceRoots, path: Path, *, make: bool, follow: bool) -> OpenPath:
    """For systems that cannot open relative to a folder (Windows): links are resolved first, so a race is possible."""
    real = roots.resolve(str(path)) if follow else roots.resolve_entry(str(path))
    if make:
        real.parent.mkdir(parents=True, exist_ok=True)
    return OpenPath(None, str(real))


@contextmanager
def _translate_os_errors(roots: WorkspaceRoots, path: Path) -> Generator[None]:
    """Turn the system's errors into our own."""
    given = str(path)
    if "\0" in given or len(given) > LONGEST_PATH:
        raise Invalid("Give the path of a file in the workspace")
    try:
        os.fsencode(path)
        yield
    except OSError as error:
        raise _path_error(error, roots.display(path)[:200]) from error
    except UnicodeEncodeError as error:  # a lone surrogate is no part of any name
        raise Invalid("That path has characters that no file name has; give a plain one") from error


def _path_error(error: OSError, shown: str) -> FrontdeskError:
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
