"""What the pages about tools share: addresses, the agents to choose from, and in whose name something is done."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote, urlencode

from frontdesk.agents.patience import in_time
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller, Source
from frontdesk.loop.text import one_line
from frontdesk.surfaces.web.model import Asked

NOBODY = ("", "nobody in particular")
MOST_AGENTS = 200
NAME = 60


def tool_at(tool_id: str) -> str:
    """The address of a tool's page; a server may put anything into a name, slashes among it."""
    return f"/tools/tool/{quote(tool_id, safe='')}"


def server_at(name: str) -> str:
    return f"/tools/server/{quote(name, safe='')}"


def address(path: str, **said: str) -> str:
    """A path with what is said after it; what is empty is left out."""
    return f"{path}?{urlencode({name: value for name, value in said.items() if value})}"


def acting(asked: Asked, agent_id: str) -> Caller:
    """Whoever looks, in the name of the agent that was chosen, if one was."""
    if not agent_id:
        return asked.caller
    return replace(asked.caller, agent_id=agent_id, user_id=None, source=Source.PARAMETER)


async def agents(asked: Asked, chosen: str) -> Sequence[tuple[str, str]]:
    """The agents to choose from, each with its name; without those of a host that does not answer."""
    try:
        found = [(one.id, _shown(one.name, one.id)) for one in await in_time(asked.app.host.list(MOST_AGENTS))]
    except Unavailable:
        found = []
    if chosen and chosen not in dict(found):
        found.append((chosen, one_line(chosen, NAME)))
    return [NOBODY, *found]


def _shown(name: str, agent_id: str) -> str:
    return f"{one_line(name, NAME)} ({one_line(agent_id, NAME)})"
