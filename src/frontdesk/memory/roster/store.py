"""People in the database; of what they keep, nothing but how much it is."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import people
from frontdesk.memory.roster.model import Person

TOLD = select(people.c.user_id, people.c.zone, people.c.created_at, people.c.found)


async def everybody(database: Database, limit: int, offset: int) -> Sequence[Person]:
    """By their ids."""
    return await _found(database, TOLD.order_by(people.c.user_id).limit(limit).offset(offset))


async def following(database: Database, limit: int, after: str, beginning: str) -> Sequence[Person]:
    """By their ids, from the one after this."""
    wanted = TOLD.where(people.c.user_id > after) if after else TOLD
    if beginning:
        wanted = wanted.where(people.c.user_id.istartswith(beginning, autoescape=True))
    return await _found(database, wanted.order_by(people.c.user_id).limit(limit))


async def person(database: Database, user_id: str) -> Person | None:
    return next(iter(await _found(database, TOLD.where(people.c.user_id == user_id))), None)


async def _found(database: Database, wanted: Select[Any, Any, Any, Any]) -> Sequence[Person]:
    async with database.reading() as connection:
        return [Person(*row) for row in await connection.execute(wanted)]
