"""Puts the workspace room together."""

from frontdesk.agents.host import AgentHost
from frontdesk.db.engine import Database
from frontdesk.settings import Settings
from frontdesk.workspace.mirror import Mirror
from frontdesk.workspace.permissions.service import Permissions
from frontdesk.workspace.permissions.store import PermissionStore
from frontdesk.workspace.service import WorkspaceRoom
from frontdesk.workspace.sessions.service import Sessions
from frontdesk.workspace.sessions.store import SessionStore

MEMORY = "memory"


def open_workspace(settings: Settings, database: Database, host: AgentHost) -> WorkspaceRoom:
    """The room; memory is shown beneath the data folder, wherever the database is."""
    return WorkspaceRoom(
        sessions=Sessions(SessionStore(database), host),
        permissions=Permissions(PermissionStore(database)),
        mirror=Mirror(settings.data / MEMORY),
    )
