"""Says something to an agent once it has finished what it is doing."""

from contextlib import aclosing

import structlog

from frontdesk.agents.asking import recorded
from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Caller
from frontdesk.journal.service import Journal
from frontdesk.loop.events import Done

# The agent's own turn, after a call of a tool.
SURFACE = "follow-up"

log = structlog.get_logger("frontdesk.agents")


async def wake(host: AgentHost, journal: Journal, caller: Caller, text: str) -> None:
    """Have the caller's agent take a turn of its own; nobody waits for it, so log and journal say what goes wrong."""
    agent_id = caller.agent_id
    if agent_id is None:
        return
    try:
        await _send(host, journal, Prompt(agent_id, caller, text, follow_up=True))
    except FrontdeskError as error:
        log.warning("follow_up_not_sent", agent_id=agent_id, reason=type(error).__name__, error=str(error))
    except Exception:
        log.exception("follow_up_failed", agent_id=agent_id)


async def _send(host: AgentHost, journal: Journal, prompt: Prompt) -> None:
    async with aclosing(recorded(host, journal, SURFACE, prompt)) as events:
        async for event in events:
            if isinstance(event, Done):
                log.info("followed_up", agent_id=prompt.agent_id, stop=event.stop)
