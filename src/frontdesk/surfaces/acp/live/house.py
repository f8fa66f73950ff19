"""Opens the house for one editor on this machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from frontdesk.app import open_app, running
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.greeting import Capabilities
from frontdesk.surfaces.acp.live.connection import Connection
from frontdesk.surfaces.acp.wire.peer import Peer
from frontdesk.surfaces.cli.running import spare_collector
from frontdesk.surfaces.visit import request_id


@asynccontextmanager
async def open_connection(
    settings: Settings, peer: Peer, can: Capabilities, user: str, agent: str | None
) -> AsyncGenerator[Connection]:
    """A connection to a house of its own, which delivers due prompts too while it is open."""
    logs.configure(settings)

    async def who() -> Caller:
        # Whoever can start this command can read the database: there is nobody to prove a user to.
        return Caller(request_id(None), user_id=user, local=True, any_agent=True)

    async with open_app(settings) as app, running(app):
        await app.tools.catalogue.load()
        spare_collector()
        async with Connection.open(app, Editor(peer, can), who, agent) as connection:
            yield connection
