"""Ends what belongs to several rooms at once, for the doors where somebody runs the house."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from frontdesk.app import App
from frontdesk.errors import NotFound


async def delete_agent(app: App, agent_id: str) -> Sequence[str]:
    """End the keys that name an agent, and delete it; the ids of those keys.

    In this order: what fails on the way is done again, and no key outlives its agent.
    """
    working = [key.id for key in await app.keys.of_agent(agent_id, datetime.now(UTC))]
    for key_id in working:
        with suppress(NotFound):
            await app.identity.revoke_key(key_id)
    await app.tools.delete_agent(agent_id)
    return working
