"""The agent that an address names."""

from urllib.parse import quote

from frontdesk.agents.host import Agent
from frontdesk.agents.patience import in_time
from frontdesk.errors import NotFound
from frontdesk.settings import AGENT_ID
from frontdesk.surfaces.web.model import Asked


async def find(asked: Asked) -> Agent | None:
    agent_id = asked.at["agent_id"]
    return await in_time(asked.app.host.find(agent_id)) if AGENT_ID.fullmatch(agent_id) else None


async def the_agent(asked: Asked) -> Agent:
    found = await find(asked)
    if found is None:
        raise no_agent(asked)
    return found


def no_agent(asked: Asked) -> NotFound:
    return NotFound(f"There is no agent '{asked.at['agent_id'][:128]}'; the list shows those that there are")


def place(asked: Asked, *parts: str) -> str:
    """The address of an agent's page, or of one below it."""
    return "/".join(["/agents", quote(asked.at["agent_id"], safe=""), *parts])
