"""People in the database; of what they keep, nothing but how much it is."""

from collections.abc import Sequence

from sqlalchemy import select

from frontdesk.db.engine import Database
from frontdesk.db.schema import people
from frontdesk.memory.roster.model import Person


async def everybody(database: Database, limit: int, offset: int) -> Sequence[Person]:
    """By their ids."""
    wanted = select(people.c.user_id, people.c.zone, people.c.created_at, people.c.found)
    async with database.reading() as connection:
        rows = await connection.execute(wanted.order_by(people.c.user_id).limit(limit).offset(offset))
        return [Person(*row) for row in rows]
