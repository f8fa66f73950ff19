"""One agent: who it is and how that is known, what it holds, what comes next, and what was done lately."""

from collections.abc import Mapping
from typing import Any

from frontdesk.agents.host import Agent
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.journal.store import Query
from frontdesk.schedule.model import moment
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.agents.found import find, no_agent, place, the_agent
from frontdesk.surfaces.web.pages.agents.holding import holdings
from frontdesk.surfaces.web.pages.agents.naming import NEWEST, last_seen, share, ways
from frontdesk.surfaces.web.pages.agents.threads import own_of
from frontdesk.surfaces.web.pages.turns.words import outcome

UPCOMING = 5
CONVERSATIONS = 10
LATELY = 12
TURNS = 5


async def agent(asked: Asked) -> Shown:
    """An agent of the host; or one that only calls here, of which there is less to show."""
    found = await find(asked)
    agent_id = asked.at["agent_id"]
    named = (await asked.app.journal.namings([agent_id], NEWEST))[agent_id]
    if found is None and not named:
        raise no_agent(asked)
    shown = found or Agent(agent_id, agent_id)
    upcoming = await asked.app.schedules.looking.upcoming(asked.caller, agent_id, UPCOMING)
    context = {
        "agent": shown,
        "known": found is not None,
        "base": place(asked),
        "tab": "agent",
        "ways": ways(named),
        "share": share(named),
        "seen_at": last_seen(named),
        "newest": NEWEST,
        "upcoming": [(one, moment(one.fire_us or 0)) for one in upcoming],
        "lately": list(reversed(await asked.app.journal.read(Query(agent_id=agent_id, limit=LATELY)))),
        **(await _of_host(asked, agent_id) if found else {}),
    }
    return Shown("agents/one.html", short(shown.name, 80), context)


async def detach(asked: Asked) -> Done:
    found, name = await the_agent(asked), asked.form.get("tool", "")
    await asked.app.tools.take(asked.caller, found.id, name)
    return Done(place(asked), f"{short(name, 100)} is detached")


async def _of_host(asked: Asked, agent_id: str) -> Mapping[str, Any]:
    """What only the agent's host knows of it."""
    host = asked.app.host
    conversations = await host.conversations(agent_id, CONVERSATIONS)
    return {
        "held": await holdings(asked, agent_id),
        "outcome": outcome,
        "blocks": await host.blocks(agent_id, asked.caller.user_id),
        "turns": await asked.app.turns.list(TurnQuery(agent_id=agent_id, limit=TURNS)),
        "conversations": conversations,
        "own": own_of(conversations, CONVERSATIONS),
    }
