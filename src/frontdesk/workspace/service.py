"""The workspace room as the doors see it: sessions, what agents may do in them, and their memory as files."""

from dataclasses import dataclass

from frontdesk.workspace.mirror import Mirror
from frontdesk.workspace.permissions.service import Permissions
from frontdesk.workspace.sessions.service import Sessions


@dataclass(frozen=True, slots=True)
class WorkspaceRoom:
    """What of an agent at work outlives its turns; files and commands are each session's own."""

    sessions: Sessions
    permissions: Permissions
    mirror: Mirror
