"""Work beside the requests of an editor: whatever becomes of it, the connection goes on."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from frontdesk.background import Chore
from frontdesk.surfaces.acp.wire.model import Gone

log = structlog.get_logger("frontdesk.acp")
ASIDE = Chore(log, "acp_aside_waits", "acp_aside_failed")


async def aside(work: Callable[[], Awaitable[None]]) -> None:
    """Do it; that the editor has left meanwhile is nothing to tell anybody."""

    async def quietly() -> None:
        with suppress(Gone):
            await work()

    await ASIDE.attempt(quietly)
