"""The list of agents, and making one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from frontdesk.agents.host import Agent, NewAgent
from frontdesk.agents.patience import in_time
from frontdesk.schedule.model import moment
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Done, Shown
from frontdesk.surfaces.web.pages.agents.naming import Share, last_seen, share

# A host lists its agents from the first on, and no further than one would look.
MOST = 1000
A_PAGE = 20
# Rows of the journal that are looked at for each agent: fewer than on its own page, as there are many of them.
NEWEST = 20


@dataclass(frozen=True, slots=True)
class Row:
    """An agent as the list shows it."""

    agent: Agent
    seen_at: datetime | None
    share: Share
    next_at: datetime | None


async def agents(asked: Asked) -> Shown:
    """Every agent of the host, a page at a time."""
    query, after = asked.query.get("q", "").strip(), asked.query.get("after", "")
    every = await in_time(asked.app.host.list(MOST))
    found = [agent for agent in every if _fits(agent, query)]
    page, more = _page(found, after)
    context = {
        "rows": await _rows(asked, page),
        "query": query,
        "after": after,
        "more": more,
        "count": len(every),
        "found": len(found),
        "most": MOST,
        "newest": NEWEST,
    }
    return Shown("agents/list.html", "Agents", context)


async def make(asked: Asked) -> Done:
    said = {name: asked.form.get(name, "").strip() for name in ("name", "description", "model")}
    made = await asked.app.host.create(NewAgent(said["name"], said["description"], said["model"] or None))
    return Done(f"/agents/{quote(made.id, safe='')}", f"{short(made.name, 100)} is made")


async def _rows(asked: Asked, agents: Sequence[Agent]) -> Sequence[Row]:
    ids = [agent.id for agent in agents]
    named = await asked.app.journal.namings(ids, NEWEST)
    soonest = await asked.app.schedules.looking.next_of(asked.caller, ids)
    return [
        Row(agent, last_seen(named[agent.id]), share(named[agent.id]), _moment(soonest.get(agent.id)))
        for agent in agents
    ]


def _page(found: Sequence[Agent], after: str) -> tuple[Sequence[Agent], str]:
    """A page of them, and the id after which the next one begins."""
    start = next((place + 1 for place, agent in enumerate(found) if agent.id == after), 0)
    page = found[start : start + A_PAGE]
    return page, page[-1].id if start + A_PAGE < len(found) else ""


def _fits(agent: Agent, query: str) -> bool:
    wanted = query.casefold()
    return any(wanted in text.casefold() for text in (agent.name, agent.id, agent.description, agent.model or ""))


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else moment(microseconds)
