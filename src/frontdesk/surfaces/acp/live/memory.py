"""Notices what an agent's memory has become elsewhere: in another editor, in a chat, by a scheduled prompt."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
import structlog

from frontdesk.agents.host import AgentHost, Block
from frontdesk.background import Chore
from frontdesk.loop.events import MemoryEdit

if TYPE_CHECKING:
    from frontdesk.surfaces.acp.live.session import LiveSession

# A host that is elsewhere is asked over the network.
NEAR_SECONDS = 2.0
FAR_SECONDS = 15.0

log = structlog.get_logger("frontdesk.acp")
LOOKING = Chore(log, "acp_memory_waits", "acp_memory_failed")


class MemoryWatch:
    """Tells open sessions; each decides when, as none is interrupted."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._seconds = NEAR_SECONDS if host.traits.asks else FAR_SECONDS

    async def run(self, sessions: Callable[[], Collection["LiveSession"]]) -> None:
        """Until cancelled."""
        while True:
            await anyio.sleep(self._seconds)
            for agent_id, user_id in {(one.kept.agent_id, one.kept.user_id) for one in sessions()}:
                look = partial(self._look, agent_id, user_id, sessions)
                await LOOKING.attempt(look, agent_id=agent_id)

    async def _look(
        self, agent_id: str, user_id: str | None, sessions: Callable[[], Collection["LiveSession"]]
    ) -> None:
        blocks = await self._host.blocks(agent_id, user_id)
        these = [one for one in sessions() if (one.kept.agent_id, one.kept.user_id) == (agent_id, user_id)]
        for session in these:
            await session.recall(blocks)


def edits(known: Mapping[str, str], blocks: Sequence[Block]) -> Sequence[MemoryEdit]:
    """What has changed, by label."""
    return [
        MemoryEdit(block.label, known.get(block.label, ""), block.value)
        for block in blocks
        if known.get(block.label, "") != block.value
    ]
