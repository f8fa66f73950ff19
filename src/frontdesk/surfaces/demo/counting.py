"""How much of what there is in a house."""

from collections.abc import Mapping

from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.memory.scope import Scope
from frontdesk.schedule.asked import MOST_LISTED, Wanted

MOST = 1000
OF_A_PERSON = ("tasks", "memories", "activities", "time_entries")


async def count(app: App, person: Caller) -> Mapping[str, int]:
    """Up to a thousand of each, and of what is a person's, this one's."""
    schedules = await app.schedules.looking.list(person, Wanted(include_cancelled=True, limit=MOST_LISTED))
    kept = await app.memory.people.counts(Scope.of(person))
    return {
        "agents": len(await app.host.list(MOST)),
        "tools": sum(server.tools for server in app.tools.catalogue.servers()),
        "turns": len(await app.turns.list(TurnQuery(limit=MOST))),
        "schedules": len(schedules.schedules),
        "keys": len(await app.keys.list()),
        **{name.replace("_", " "): kept[name] for name in OF_A_PERSON},
    }
