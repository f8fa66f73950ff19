"""The folders that a session is opened in, as an editor names them."""

import os
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

import anyio

from frontdesk.errors import Invalid
from frontdesk.loop.text import is_storable, one_line
from frontdesk.workspace.roots import LONGEST

MOST = 50
NAME_LENGTH = 100
SHOWN = 200


async def folder(given: Path | str, *, local: bool) -> Path:
    """An absolute path; of a folder that is there, where it is `local`, which means on this machine."""
    text = str(given)
    if not text or len(text) > LONGEST or not is_storable(text):
        raise Invalid("Give the absolute path of a folder")
    path = Path(text)
    if not local:
        # An editor elsewhere may be on Windows.
        if not path.is_absolute() and not PureWindowsPath(text).is_absolute():
            raise _not_absolute(text)
        return path
    if not path.is_absolute():
        raise _not_absolute(text)
    return await anyio.to_thread.run_sync(_existing, path)


async def folders(given: Sequence[Path | str], *, local: bool) -> tuple[Path, ...]:
    """Each of them once."""
    if len(given) > MOST:
        raise Invalid(f"A session has at most {MOST} folders besides its own; open one further up instead")
    return tuple(dict.fromkeys([await folder(one, local=local) for one in given]))


def name_of(cwd: Path) -> str:
    """What a folder is called."""
    # This flavour reads the paths of both kinds of machine.
    return one_line(PureWindowsPath(cwd).name, NAME_LENGTH) or "workspace"


def _existing(path: Path) -> Path:
    # What `..` means hangs on links; a path without it is kept as the editor knows it.
    found = Path(os.path.realpath(path)) if ".." in path.parts else path
    if not found.is_dir():
        raise Invalid(f"There is no folder '{str(path)[:SHOWN]}' on this machine; open one that exists")
    return found


def _not_absolute(given: str) -> Invalid:
    return Invalid(f"'{given[:SHOWN]}' is no absolute path; give the whole path of a folder")
