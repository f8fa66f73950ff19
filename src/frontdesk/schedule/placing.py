"""In which conversation a scheduled prompt is said: one that its owner may read, and nobody else's."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from frontdesk.agents.chat.store import SessionStore
from frontdesk.agents.host import AgentHost
from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.schedule.model import NewSchedule

LOOKED_AT = 1000
TITLE = 80

# Whether a person keeps this conversation of an agent's elsewhere: (user, agent, conversation).
Keeps = Callable[[str, str, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Places:
    """What is said in a conversation can be got out of the agent there, so a person's prompts stay in their own."""

    host: AgentHost
    sessions: SessionStore
    keeps: Keeps

    async def of(self, new: NewSchedule, wanted: str | None) -> str | None:
        """The conversation for a schedule; None is the first one of nobody in particular."""
        if wanted is not None:
            await self._check(new, wanted)
            return wanted
        return None if new.user_id is None else await self._own(new, new.user_id)

    async def _check(self, new: NewSchedule, wanted: str) -> None:
        if new.user_id is None:
            known = {found.id for found in await self.host.conversations(new.agent_id, LOOKED_AT, None)}
            # What is said in a person's conversation is for that person, and not for all who may see the agent's own.
            if await self.sessions.is_a_persons(new.agent_id, wanted):
                known.discard(wanted)
        else:
            agent_id = await self.host.serving(new.agent_id, new.user_id)
            sessions = await self.sessions.of_user(new.user_id, datetime.now(UTC), LOOKED_AT)
            known = {session.conversation_id for session in sessions if session.agent_id == agent_id}
            if wanted not in known and await self.keeps(new.user_id, agent_id, wanted):
                return
        if wanted not in known:
            raise NotFound(f"Agent '{new.agent_id}' has no conversation '{wanted[:128]}' of yours")

    async def _own(self, new: NewSchedule, user_id: str) -> str:
        try:
            return (await self.host.converse(new.agent_id, user_id, new.prompt.strip()[:TITLE])).id
        except NotFound as error:
            raise Invalid(f"Agent validation failed: {error}") from error
        except Unavailable as error:
            raise Unavailable(
                f"Agent validation failed: {error}", public=f"Agent validation failed: {error.public}"
            ) from error
