"""Mock files beside a manifest: how a stand-in answers for the tools of a server."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from frontdesk.platform.declared.fields import kind_of
from frontdesk.platform.declared.files import Unreadable, load
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import quoted
from frontdesk.platform.declared.tools import Raw, raw_tools

FOLDER = "mocks"
SUFFIX = ".json"
MOST_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Mock:
    """A mock file that was looked at, and the tools in it."""

    path: Path
    tools: Mapping[str, Raw]


def named_mock(folder: Path, name: str, where: str, notes: Notes) -> Mock | None:
    """The file that a server's entry names; it must lie in the manifest's folder."""
    path = _inside(folder, name)
    if path is None:
        notes.error(where, f"{quoted(name)} is not inside the manifest's folder; move it there")
        return None
    if not _is_file(path):
        notes.error(where, f"there is no file {quoted(name)} beside the manifest; make it, or leave this out")
        return None
    return _read(path, name, notes)


def usual_mock(folder: Path, server: str, notes: Notes) -> Mock | None:
    """`mocks/<server>.json`, where there is one."""
    name = f"{FOLDER}/{server}{SUFFIX}"
    if "/" in server or "\\" in server or not _is_file(folder / name):
        return None
    path = _inside(folder, name)
    if path is None:
        notes.error(name, "leads out of the manifest's folder, and is not read; put the file itself there")
        return None
    return _read(path, name, notes)


def check_orphans(folder: Path, read: Collection[Path], servers: Collection[str], notes: Notes) -> None:
    """Warn of files among the mocks that belong to no server."""
    try:
        found = sorted(path for path, _ in zip((folder / FOLDER).iterdir(), range(MOST_FILES), strict=False))
    except OSError:
        return
    for path in found:
        if path.suffix.lower() == SUFFIX and path.resolve() not in read:
            name = path.stem.encode(errors="replace").decode()
            known = notes.meant(name, servers) or "; name it after its server"
            notes.warn(f"{FOLDER}/{name}{SUFFIX}", f"belongs to no server of the manifest{known}")


def _read(path: Path, name: str, notes: Notes) -> Mock:
    try:
        found = load(path, notes, f"{name}: ")
    except Unreadable as error:
        notes.error(name, str(error))
        return Mock(path, {})
    key, listed = _listed(found)
    if not isinstance(listed, list):
        notes.error(name, f'must be a list of tools, or {{"tools": […]}}, not {kind_of(listed)}')
        return Mock(path, {})
    return Mock(path, raw_tools(cast("list[object]", listed), f"{name}: {key}", notes))


def _listed(found: object) -> tuple[str, object]:
    """(key, tools) of either form; the one that is a list alone has no key."""
    if not isinstance(found, dict):
        return "", found
    document = cast("dict[str, object]", found)
    return next(((key, value) for key, value in document.items() if key.lower() == "tools"), ("", document))


def _inside(folder: Path, name: str) -> Path | None:
    try:
        home = folder.resolve()
        path = (home / name.replace("\\", "/")).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return path if path.is_relative_to(home) and path != home else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
