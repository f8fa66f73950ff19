"""What agents are called, for pages that come upon their ids."""

from collections.abc import Collection, Mapping

from frontdesk.agents.patience import in_time
from frontdesk.app import App
from frontdesk.errors import Unavailable


async def names_of(app: App, ids: Collection[str | None]) -> Mapping[str, str]:
    """The names of these agents; without those that the host does not tell of, or not in time."""
    wanted = {agent_id for agent_id in ids if agent_id}
    try:
        return await in_time(app.host.names(wanted)) if wanted else {}
    except Unavailable:
        return {}
