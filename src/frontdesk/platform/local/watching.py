"""The manifest as it is on disk now: read again when a file has changed, kept as it was when it cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import structlog

from frontdesk.platform.declared.mocks import FOLDER, SUFFIX
from frontdesk.platform.declared.model import Declared, DeclaredServer, Level
from frontdesk.platform.declared.reading import read
from frontdesk.platform.errors import ManifestUnreadable

log = structlog.get_logger("frontdesk.platform")

# (file, when it was changed, how long it is)
Mark = tuple[str, int, int]


class Watched:
    """A manifest and the files beside it; `trouble` says why what is served is older than what is on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._declared = read(path)
        self._marks = list(_marks(self._declared))
        self.trouble: str | None = None

    def now(self) -> Declared:
        """What is declared; looks at the files' marks, and reads them only when those have changed."""
        marks = list(_marks(self._declared))
        if marks != self._marks:
            self._reread()
            # Of the files that count from now on, which may be others.
            self._marks = marks if self.trouble else list(_marks(self._declared))
        return self._declared

    def _reread(self) -> None:
        try:
            found = read(self._path)
            trouble = _unreadable(found)
        except ManifestUnreadable as error:
            found, trouble = self._declared, str(error)
        if trouble is None:
            self._declared = found
            log.info("platform_manifest_read", servers=len(found.servers), problems=len(found.problems))
        elif trouble != self.trouble:
            log.warning("platform_manifest_kept", error=trouble)
        self.trouble = trouble


def served(declared: Declared) -> list[DeclaredServer]:
    """The servers that are not switched off."""
    return [server for server in declared.servers if server.entry.get("enabled") is not False]


def find(declared: Declared, name: str) -> DeclaredServer | None:
    """The server of this name, or else of this unique name."""
    servers = served(declared)
    named = next((server for server in servers if server.name == name), None)
    return named or next((server for server in servers if server.unique_name == name), None)


def _unreadable(declared: Declared) -> str | None:
    """A file beside the manifest of which nothing could be read: what is wrong with it has no place in it."""
    broken = (problem for problem in declared.problems if problem.level is Level.ERROR)
    return next((str(problem) for problem in broken if problem.where.endswith(SUFFIX)), None)


def _marks(declared: Declared) -> Iterator[Mark]:
    for file in sorted({*declared.files, declared.path, *_beside(declared.path)}):
        try:
            found = file.stat()
        except OSError:
            yield str(file), 0, -1
        else:
            yield str(file), found.st_mtime_ns, found.st_size


def _beside(path: Path) -> list[Path]:
    """Files that speak for a server as soon as they are there."""
    try:
        return list((path.absolute().parent / FOLDER).glob(f"*{SUFFIX}"))
    except OSError:
        return []
