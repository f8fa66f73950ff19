"""The pages at `/agents`."""

from frontdesk.surfaces.ending import delete_agent
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Act, Asked, Done, Live, Page
from frontdesk.surfaces.web.pages.agents.found import the_agent
from frontdesk.surfaces.web.pages.agents.listing import agents, make
from frontdesk.surfaces.web.pages.agents.memory import memory, write
from frontdesk.surfaces.web.pages.agents.one import agent, detach
from frontdesk.surfaces.web.pages.agents.talk import begin, decide, say, talk


async def delete(asked: Asked) -> Done:
    found = await the_agent(asked)
    ended = await delete_agent(asked.app, found.id)
    keys = f"; its keys no longer work: {', '.join(ended)}" if ended else ""
    return Done("/agents", f"{short(found.name, 100)} is deleted{keys}")


AGENTS: tuple[Page | Act | Live, ...] = (
    Page("/agents", agents),
    Act("/agents/new", make),
    Page("/agents/{agent_id}", agent),
    Act("/agents/{agent_id}/detach", detach),
    Act("/agents/{agent_id}/delete", delete),
    Page("/agents/{agent_id}/memory", memory),
    Act("/agents/{agent_id}/memory", write),
    Page("/agents/{agent_id}/talk", talk),
    Act("/agents/{agent_id}/talk", say),
    Act("/agents/{agent_id}/talk/new", begin),
    Act("/agents/{agent_id}/talk/decide", decide),
)
