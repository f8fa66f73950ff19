"""Default agents in the database, one for each scope."""

from sqlalchemy import delete, insert, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import agent_defaults


class DefaultStore:
    """The scope '' is everybody's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, scope: str) -> str | None:
        async with self._database.reading() as connection:
            return (
                await connection.execute(select(agent_defaults.c.agent_id).where(agent_defaults.c.scope == scope))
            ).scalar_one_or_none()

    async def set(self, scope: str, agent_id: str | None, now_us: int) -> None:
        """From now on this agent; None: none in particular."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(agent_defaults).where(agent_defaults.c.scope == scope))
            if agent_id is not None:
                row = {"scope": scope, "agent_id": agent_id, "updated_us": now_us}
                await connection.execute(insert(agent_defaults), row)
