"""Searching for tools with scores and reasons, and going through all of them by name."""

from frontdesk.surfaces import given
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.tools.common import acting, agents, server_at, tool_at
from frontdesk.tools.catalogue.store import Filter
from frontdesk.tools.finding import Search
from frontdesk.tools.looking import listed, tried

LISTED = 50
AFTER = 300


async def search(asked: Asked) -> Shown:
    """What fits a query, the best first; htmx is given that part alone."""
    query, agent = asked.query.get("q", "").strip(), asked.query.get("agent", "")
    tools = asked.app.tools
    found = await tried(tools, acting(asked, agent), Search(query, given.LIMIT)) if query else None
    context = {
        "query": query,
        "agent": agent,
        "found": found,
        "enough": given.MIN_SCORE,
        "tool_at": tool_at,
        "progress": tools.catalogue.progress(),
    }
    if asked.part:
        return Shown("tools/found.html", "Tools", context)
    return Shown("tools/search.html", "Tools", {**context, "agents": await agents(asked, agent)})


async def everything(asked: Asked) -> Shown:
    """Tools in the order of their ids, some at a time."""
    server, changed = asked.query.get("server", ""), bool(asked.query.get("changed"))
    after = asked.query.get("after", "")[:AFTER]
    wanted = Filter(server or None, changed=changed, after=after, limit=LISTED)
    page = await listed(asked.app.tools, asked.caller, wanted)
    context = {"page": page, "server": server, "changed": changed, "after": after, "most": LISTED}
    return Shown("tools/all.html", "All tools", {**context, "tool_at": tool_at, "server_at": server_at})
