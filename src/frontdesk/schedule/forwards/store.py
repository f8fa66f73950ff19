"""Answers on their way to webhooks, in the database: written with the delivery, taken, sent or given up."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, insert, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import forwards
from frontdesk.schedule.forwards.model import DEAD, SENT, WAITING, Due, NewForward

# Made once: to build a statement takes longer than to run it.
ADD = insert(forwards)
# A common table expression, no plain subquery: PostgreSQL may run that for each row, and skip what it locked before.
FIRST = (
    select(forwards.c.id)
    .where(forwards.c.state == WAITING, forwards.c.available_us <= bindparam("now_us"))
    .order_by(forwards.c.available_us, forwards.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("first_due")
)
# Whoever takes one has it until then: after a crash it comes up again.
TAKE = (
    update(forwards)
    .where(forwards.c.id.in_(select(FIRST.c.id)), forwards.c.state == WAITING)
    .values(attempt=forwards.c.attempt + 1, available_us=bindparam("until_us"))
    .returning(forwards.c.id, forwards.c.occurrence_id, forwards.c.url, forwards.c.body, forwards.c.attempt)
)
# A word on an attempt that is not the last one any more counts for nothing.
SETTLE = update(forwards).where(
    forwards.c.id == bindparam("the_id"),
    forwards.c.attempt == bindparam("the_attempt"),
    forwards.c.state == WAITING,
)
NEXT = select(func.min(forwards.c.available_us)).where(forwards.c.state == WAITING)


def add_in(connection: Connection, new: Sequence[NewForward], now_us: int) -> None:
    """Keep answers that are to be forwarded, in the transaction that settles their deliveries."""
    rows = [
        {
            "occurrence_id": one.occurrence_id,
            "url": one.url,
            "body": one.body,
            "attempt": 0,
            "available_us": now_us,
            "state": WAITING,
        }
        for one in new
    ]
    if rows:
        connection.execute(ADD, rows)


class ForwardStore:
    """Each row waits until it is sent or dead."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, most: int, now_us: int, until_us: int) -> Sequence[Due]:
        """Those that are due, the oldest first; nobody else gets them before `until_us`."""
        async with self._database.brief() as connection:
            rows = (await connection.execute(TAKE, {"most": most, "now_us": now_us, "until_us": until_us})).all()
        return [Due(row.id, row.occurrence_id, row.url, row.body, row.attempt) for row in rows]

    async def sent(self, due: Due) -> None:
        await self._settle(due, state=SENT, error=None)

    async def failed(self, due: Due, error: str, again_us: int | None) -> None:
        """Try it again at this time, or never."""
        if again_us is None:
            await self._settle(due, state=DEAD, error=error)
        else:
            await self._settle(due, state=WAITING, error=error, available_us=again_us)

    async def next_us(self) -> int | None:
        """When the next one is due."""
        async with self._database.reading() as connection:
            return (await connection.execute(NEXT)).scalar_one()

    async def _settle(self, due: Due, **change: object) -> None:
        async with self._database.brief() as connection:
            await connection.execute(SETTLE, {"the_id": due.id, "the_attempt": due.attempt, **change})
