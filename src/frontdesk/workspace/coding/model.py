"""What the coding tools work with, and what they let others see of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from frontdesk.workspace.commands.port import Commands
from frontdesk.workspace.files.local import LocalFiles
from frontdesk.workspace.files.port import Files
from frontdesk.workspace.permissions.guard import Guard
from frontdesk.workspace.permissions.model import Diff, Leave, Place
from frontdesk.workspace.roots import Roots

__all__ = ["Bench", "InTerminal", "Leave", "Show", "Shown"]


@dataclass(frozen=True, slots=True)
class InTerminal:
    """The command of a call runs in this terminal of the editor's."""

    terminal_id: str


Shown = Diff | Place | InTerminal
# Shows something of a call that is under way, by its id.
Show = Callable[[str, Shown], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the tools of one session need.

    `disk` has the same files as they lie on this machine, and `commands` runs what is run; each is None where the
    editor is elsewhere and does not do it for us, and the tools that need it are not offered then. `guard` knows which
    files are asked about each time.
    """

    roots: Roots
    files: Files
    commands: Commands | None
    leave: Leave
    show: Show
    disk: LocalFiles | None
    guard: Guard
