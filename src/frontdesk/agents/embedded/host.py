"""The built-in host: agents that live in Frontdesk's own database."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from frontdesk.agents.host import Agent
from frontdesk.agents.store import AgentStore
from frontdesk.errors import ConfigurationError

NAME_LENGTH = 200


class EmbeddedHost:
    """An `AgentHost` with nothing else to start."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def create(self, name: str, description: str = "") -> Agent:
        if not name or len(name) > NAME_LENGTH:
            raise ConfigurationError(f"An agent's name has 1 to {NAME_LENGTH} characters")
        agent = Agent(f"agent-{uuid4()}", name, description)
        await self._store.add(agent, datetime.now(UTC))
        return agent

    async def find(self, agent_id: str) -> Agent | None:
        return await self._store.get(agent_id)

    async def list(self, limit: int) -> Sequence[Agent]:
        return await self._store.list(limit)

    async def close(self) -> None:
        """Nothing is held open: the database belongs to the app."""
