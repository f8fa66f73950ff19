"""What one room does for another: made here, since neighbours do not know each other."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from frontdesk.agents.host import AgentHost
from frontdesk.db import leaving
from frontdesk.db.engine import Database
from frontdesk.errors import MissingScope, Unavailable
from frontdesk.identity.model import Caller, Source
from frontdesk.identity.rights import SCHEDULES_WRITE
from frontdesk.identity.store import KeyStore
from frontdesk.journal.service import Journal
from frontdesk.memory.people.service import Elsewhere
from frontdesk.memory.scope import Scope
from frontdesk.schedule.asked import Asked
from frontdesk.schedule.service import Schedules

# Agents that a task's assignee is looked for among, by name.
LISTED = 1_000
OURSELVES = "memory"


class Waking:
    """Has the scheduler prompt an agent when a person's task is due."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def schedule(self, scope: Scope, agent_id: str, prompt: str, at: datetime) -> int:
        """The number of a new schedule, made by the agent for the person."""
        # Who may write tasks may not for that have agents prompted.
        if scope.scopes is not None and SCHEDULES_WRITE not in scope.scopes:
            raise MissingScope(SCHEDULES_WRITE)
        asked = Asked(prompt, time=at.isoformat())
        return (await self._schedules.add(_acting(scope, agent_id), asked)).schedule.id

    async def cancel(self, scope: Scope, schedule_id: int) -> None:
        await self._schedules.cancel(_acting(scope, None), schedule_id)


def _acting(scope: Scope, agent_id: str | None) -> Caller:
    """The person, or an agent that works for them; that it is so, this house knows itself."""
    request_id = f"task-{secrets.token_hex(8)}"
    return Caller(request_id, agent_id, scope.user_id, Source.CREDENTIAL, verified=True, credential_id=OURSELVES)


class Names:
    """Knows the agents of the host by id and by name."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def name_of(self, agent_id: str) -> str | None:
        """What an agent is called; None where the host does not know it, or does not answer."""
        try:
            found = await self._host.find(agent_id)
        except Unavailable:
            return None
        return None if found is None else found.name

    async def id_of(self, text: str) -> str | None:
        """The agent that is meant by an id, or by a name that only one has."""
        found = await self._host.find(text)
        if found is not None:
            return found.id
        named = [one.id for one in await self._host.list(LISTED) if one.name.casefold() == text.casefold()]
        return named[0] if len(named) == 1 else None


def elsewhere(database: Database, journal: Journal, keys: KeyStore) -> Sequence[Elsewhere]:
    """What other rooms keep of a person."""

    async def told(user_id: str) -> Sequence[Mapping[str, Any]]:
        return [asdict(entry) for entry in await journal.of_person(user_id)]

    async def named(user_id: str) -> Sequence[Mapping[str, Any]]:
        theirs = [key for key in await keys.list() if key.user_id == user_id]
        return [{"id": key.id, "name": key.name, "created_at": key.created_at} for key in theirs]

    async def forget(user_id: str) -> int:
        return sum((await leaving.forget_person(database, user_id)).values())

    return (
        Elsewhere("journal", told, journal.forget_person),
        Elsewhere("api_keys", named),
        Elsewhere("house", None, forget),
    )
