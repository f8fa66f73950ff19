"""Which tools Frontdesk attached to which agent, and when they were last of use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Executable, delete, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import held_tools
from frontdesk.db.upsert import per_dialect


def _give(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(held_tools)
    again = {"attached_by": new.excluded.attached_by, "attached_at": new.excluded.attached_at}
    return new.on_conflict_do_update(index_elements=[held_tools.c.agent_id, held_tools.c.tool_id], set_=again)


GIVE = per_dialect(_give)


@dataclass(frozen=True, slots=True)
class Holding:
    """A tool that an agent was given: by whom, when, and when it last used it."""

    attached_at: datetime
    used_at: datetime | None = None
    by: str = ""


class HoldingStore:
    """What a person attached is not in here, so that it is not taken away either."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, agent_id: str) -> Mapping[str, Holding]:
        """By tool id."""
        async with self._database.reading() as connection:
            rows = await connection.execute(select(held_tools).where(held_tools.c.agent_id == agent_id))
            return {row.tool_id: Holding(row.attached_at, row.used_at, row.attached_by) for row in rows}

    async def record(
        self, agent_id: str, attached: Sequence[str], detached: Sequence[str], now: datetime, by: str = "find_tools"
    ) -> None:
        """Note what was given and taken; what is given again counts as new."""
        rows = [
            {"agent_id": agent_id, "tool_id": tool_id, "attached_by": by, "attached_at": now} for tool_id in attached
        ]
        async with self._database.brief() as connection:
            if detached:
                taken = (held_tools.c.agent_id == agent_id, held_tools.c.tool_id.in_(detached))
                await connection.execute(delete(held_tools).where(*taken))
            if rows:
                await connection.execute(GIVE[connection.dialect.name], rows)

    async def touch(self, agent_id: str, tool_id: str, now: datetime) -> None:
        """Note a use; of a tool that the agent was not given there is nothing to note."""
        this = (held_tools.c.agent_id == agent_id, held_tools.c.tool_id == tool_id)
        async with self._database.brief() as connection:
            await connection.execute(update(held_tools).where(*this).values(used_at=now))

    async def forget(self, agent_id: str) -> None:
        """An agent that is no more holds nothing."""
        async with self._database.brief() as connection:
            await connection.execute(delete(held_tools).where(held_tools.c.agent_id == agent_id))
