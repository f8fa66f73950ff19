"""Rules about tools in the database."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, insert, select

from frontdesk.db import counters
from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_rights
from frontdesk.errors import NotFound
from frontdesk.tools.rights.model import Effect, Rule

COUNTER = "tool_rights"


class RightsStore:
    """Each change of the rules has a revision, by which replicas notice it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        # Asked for every second while there are calls, so it should cost next to nothing.
        async with self._database.brief() as connection:
            return await counters.read(connection, COUNTER)

    async def all(self) -> Sequence[Rule]:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(tool_rights).order_by(tool_rights.c.created_at, tool_rights.c.id))
            return [Rule(row.id, row.subject, Effect(row.effect), row.pattern) for row in rows]

    async def add(self, rule: Rule, now: datetime) -> Rule:
        """Add a rule; one that says the same is left in its place."""
        same = (
            tool_rights.c.subject == rule.subject,
            tool_rights.c.effect == rule.effect,
            tool_rights.c.pattern == rule.pattern,
        )
        row = {"id": rule.id, "subject": rule.subject, "effect": rule.effect, "pattern": rule.pattern}
        async with self._database.transaction() as connection:
            await counters.bump(connection, COUNTER)
            found = (await connection.execute(select(tool_rights.c.id).where(*same))).scalar_one_or_none()
            if found is None:
                await connection.execute(insert(tool_rights).values(**row, created_at=now))
        return rule if found is None else Rule(found, rule.subject, rule.effect, rule.pattern)

    async def remove(self, rule_id: str) -> None:
        async with self._database.transaction() as connection:
            await counters.bump(connection, COUNTER)
            done = await connection.execute(delete(tool_rights).where(tool_rights.c.id == rule_id))
            if done.rowcount == 0:
                raise NotFound(f"There is no rule '{rule_id}'; list the rules to see their ids")
