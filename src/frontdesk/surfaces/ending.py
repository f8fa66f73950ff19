"""Ends what belongs to several rooms at once, for the doors where somebody runs the house."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from frontdesk.app import App
from frontdesk.errors import NotFound


async def delete_agent(app: App, agent_id: str) -> Sequence[str]:
    """Delete an agent and end the keys that name it; the ids of those."""
    await app.tools.delete_agent(agent_id)
    now = datetime.now(UTC)
    working = [key.id for key in await app.keys.list() if key.agent_id == agent_id and key.works_at(now)]
    for key_id in working:
        with suppress(NotFound):
            await app.identity.revoke_key(key_id)
    return working
