"""What an agent works with in a session: files and commands, the editor's servers, and leave to use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frontdesk.app import App
from frontdesk.loop.tools import Tool
from frontdesk.settings import config_file
from frontdesk.surfaces.acp.editor.asking import Asking
from frontdesk.surfaces.acp.editor.files import EditorFiles
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.editor.questions import Questions
from frontdesk.surfaces.acp.editor.servers import EditorServers
from frontdesk.surfaces.acp.editor.terminals import EditorCommands
from frontdesk.workspace.coding.model import Bench, Leave, Shown
from frontdesk.workspace.coding.tools import coding_tools
from frontdesk.workspace.commands.local import LocalCommands
from frontdesk.workspace.commands.port import Commands
from frontdesk.workspace.files.local import LocalFiles
from frontdesk.workspace.permissions.guard import Guard
from frontdesk.workspace.roots import Roots
from frontdesk.workspace.sessions.model import Session


@dataclass(slots=True)
class Kit:
    """Made once for a session; the tools that the editor's servers have come as they are found."""

    roots: Roots
    asking: Asking
    leave: Leave
    servers: EditorServers
    own: Sequence[Tool]

    @classmethod
    def of(cls, app: App, editor: Editor, session: Callable[[], Session], asking: Asking) -> "Kit":
        kept = session()
        roots = Roots.of(kept.cwd, kept.directories)
        leave = app.workspace.permissions.gate(kept.user_id, kept.cwd, lambda: session().mode, asking.ask)
        guard = Guard(roots, (app.settings.data, config_file()), local=editor.local)
        own = [*coding_tools(_bench(editor, kept.id, guard, leave, asking)), *_questions(editor, kept.id, asking)]
        return cls(roots, asking, leave, EditorServers(kept.cwd, leave, guard), own)

    async def close(self) -> None:
        await self.servers.aclose()


def _bench(editor: Editor, session_id: str, guard: Guard, leave: Leave, asking: Asking) -> Bench:
    """As far as possible through the editor; this machine's files and commands only where the editor is on it."""
    roots = guard.roots
    disk = LocalFiles(roots) if editor.local else None

    async def show(call_id: str, part: Shown) -> None:
        await asking.screen().show_part(call_id, part)

    return Bench(roots, EditorFiles(editor, session_id, disk), _commands(editor, session_id), leave, show, disk, guard)


def _commands(editor: Editor, session_id: str) -> Commands | None:
    if editor.can.terminals:
        return EditorCommands(editor, session_id)
    return LocalCommands() if editor.local else None


def _questions(editor: Editor, session_id: str, asking: Asking) -> Sequence[Tool]:
    """A form can be shown only where the editor has them."""
    if not editor.can.elicits:
        return ()
    return [Questions(editor, session_id, lambda call_id: asking.screen().sent_id(call_id)).tool()]
