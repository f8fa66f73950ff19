"""Who is changing an agent's tools, in the database: one row an agent, held under a lease."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Executable, bindparam, delete

from frontdesk.db import clock
from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_turns
from frontdesk.db.upsert import per_dialect

LEAVE = delete(tool_turns).where(
    tool_turns.c.agent_id == bindparam("the_agent"), tool_turns.c.owner == bindparam("the_owner")
)


def _take(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    first = insert(tool_turns)
    return first.on_conflict_do_update(
        index_elements=[tool_turns.c.agent_id],
        set_={"owner": first.excluded.owner, "leased_until": first.excluded.leased_until},
        where=tool_turns.c.leased_until < bindparam("now", type_=tool_turns.c.leased_until.type),
    ).returning(tool_turns.c.owner)


TAKE = per_dialect(_take)


class TurnstileStore:
    """A lease that is not given back lapses, so a process that dies keeps nobody out for long."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, agent_id: str, owner: str, lease: timedelta) -> bool:
        """Become the one who changes the agent's tools; False while another is."""
        async with self._database.brief() as connection:
            now = await clock.now(connection)
            given = {"agent_id": agent_id, "owner": owner, "leased_until": now + lease, "now": now}
            return (await connection.execute(TAKE[connection.dialect.name], given)).one_or_none() is not None

    async def leave(self, agent_id: str, owner: str) -> None:
        """Let the next one in, unless the lease has lapsed and somebody else is in already."""
        async with self._database.brief() as connection:
            await connection.execute(LEAVE, {"the_agent": agent_id, "the_owner": owner})
