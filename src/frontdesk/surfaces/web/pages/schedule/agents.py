"""The agents that schedules are for, by their names."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.agents.host import Agent
from frontdesk.agents.patience import in_time
from frontdesk.errors import Unavailable
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked

# A list to choose from is no use when it is longer; every other agent goes by its id.
MOST = 200
NAME = 60
UNKNOWN = 20


@dataclass(frozen=True, slots=True)
class Roster:
    """Who can be chosen, and what is wrong where the host does not say."""

    agents: Sequence[Agent] = ()
    wrong: str = ""

    def name_of(self, agent_id: str) -> str:
        return next((short(one.name, NAME) for one in self.agents if one.id == agent_id), short(agent_id, UNKNOWN))

    def choices(self, chosen: str | None, first: str) -> list[tuple[str, str]]:
        """For a list to choose from: with whoever is chosen, though the host may not know them any more."""
        known = [(one.id, f"{short(one.name, NAME)} ({short(one.id, 14)})") for one in self.agents]
        gone = [] if not chosen or any(one.id == chosen for one in self.agents) else [(chosen, chosen)]
        return [("", first), *known, *gone]


async def roster(asked: Asked) -> Roster:
    """Schedules can be looked at while the agents' host is away."""
    try:
        return Roster(await in_time(asked.app.host.list(MOST)))
    except Unavailable as error:
        return Roster(wrong=error.in_full)


async def only(asked: Asked, agent_id: str) -> Roster:
    """One agent alone."""
    try:
        found = await in_time(asked.app.host.find(agent_id))
    except Unavailable as error:
        return Roster(wrong=error.in_full)
    return Roster((found,) if found is not None else ())
