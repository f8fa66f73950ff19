"""Says something to an agent once it has finished what it is doing."""

from contextlib import aclosing

import structlog

from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Caller
from frontdesk.loop.events import Done

log = structlog.get_logger("frontdesk.agents")


async def wake(host: AgentHost, caller: Caller, text: str) -> None:
    """Have the caller's agent take a turn of its own; nobody waits for it, so what goes wrong is only logged."""
    agent_id = caller.agent_id
    if agent_id is None:
        return
    try:
        await _send(host, Prompt(agent_id, caller, text, follow_up=True))
    except FrontdeskError as error:
        log.warning("follow_up_not_sent", agent_id=agent_id, reason=type(error).__name__, error=str(error))
    except Exception:
        log.exception("follow_up_failed", agent_id=agent_id)


async def _send(host: AgentHost, prompt: Prompt) -> None:
    async with aclosing(host.send(prompt)) as events:
        async for event in events:
            if isinstance(event, Done):
                log.info("followed_up", agent_id=prompt.agent_id, stop=event.stop)
