"""The built-in host's agents in the database."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import insert, select

from frontdesk.agents.host import Agent
from frontdesk.db.engine import Database
from frontdesk.db.schema import agents


class AgentStore:
    """Agents by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, agent: Agent, now: datetime) -> None:
        row = {"id": agent.id, "name": agent.name, "description": agent.description, "created_at": now}
        async with self._database.transaction() as connection:
            await connection.execute(insert(agents).values(row))

    async def get(self, agent_id: str) -> Agent | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(select(agents).where(agents.c.id == agent_id))).one_or_none()
        return Agent(row.id, row.name, row.description) if row else None

    async def list(self, limit: int) -> Sequence[Agent]:
        wanted = select(agents).order_by(agents.c.created_at, agents.c.id).limit(limit)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        return [Agent(row.id, row.name, row.description) for row in rows]
