"""The editor at the other end: what it can do, and how it is asked."""

from dataclasses import dataclass
from pathlib import Path

from frontdesk.errors import Invalid
from frontdesk.surfaces.acp.greeting import Capabilities
from frontdesk.surfaces.acp.wire.model import Json
from frontdesk.surfaces.acp.wire.peer import Peer


@dataclass(frozen=True, slots=True)
class Editor:
    """`local`: the folders of its sessions are on this machine. `root`: they have to be in this one."""

    peer: Peer
    can: Capabilities
    local: bool = True
    root: Path | None = None

    def admit(self, *folders: str) -> None:
        """Raise `Invalid` where one of these folders is not for editors."""
        root = None if self.root is None else self.root.resolve()
        for folder in folders:
            if root is not None and not Path(folder).resolve().is_relative_to(root):
                raise Invalid(f"'{folder[:200]}' is outside {root}, where editors may work here")

    async def ask(self, method: str, session_id: str, params: Json, seconds: float) -> Json:
        """What the editor answers about one of its sessions."""
        return await self.peer.request(method, {"sessionId": session_id, **params}, seconds)

    async def show(self, session_id: str, update: Json) -> None:
        await self.peer.notify("session/update", {"sessionId": session_id, "update": update})
