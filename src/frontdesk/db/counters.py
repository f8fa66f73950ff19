"""Numbers that only grow: the changes of one kind come in an order that every replica sees alike."""

from sqlalchemy import select, update

from frontdesk.db.engine import Transaction
from frontdesk.db.schema import counters
from frontdesk.db.upsert import per_dialect

START = per_dialect(lambda insert: insert(counters).on_conflict_do_nothing())


async def hold(connection: Transaction, name: str) -> int:
    """The number as it is; nobody else can raise it before this transaction ends."""
    mine = select(counters.c.value).where(counters.c.name == name).with_for_update()
    found = (await connection.execute(mine)).scalar_one_or_none()
    if found is None:
        await connection.execute(START[connection.dialect.name], {"name": name, "value": 0})
        found = (await connection.execute(mine)).scalar_one()
    return found


async def bump(connection: Transaction, name: str) -> int:
    """The next number, for a change made in this transaction."""
    value = await hold(connection, name) + 1
    await connection.execute(update(counters).where(counters.c.name == name).values(value=value))
    return value


async def read(connection: Transaction, name: str) -> int:
    """The last number whose change can be seen; 0 before the first."""
    wanted = select(counters.c.value).where(counters.c.name == name)
    return (await connection.execute(wanted)).scalar_one_or_none() or 0
