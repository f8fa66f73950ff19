"""What time it is for a lease: replicas that share a database go by its clock, whatever their own says."""

from datetime import UTC, datetime

from sqlalchemy import func, select

from frontdesk.db.engine import Transaction
from frontdesk.db.schema import Moment

# For statements of what is there on PostgreSQL alone.
NOW = func.clock_timestamp(type_=Moment)
CLOCK = select(NOW)


async def now(connection: Transaction) -> datetime:
    """SQLite's clock is that of this machine, as everybody's is who uses the file."""
    if connection.dialect.name != "postgresql":
        return datetime.now(UTC)
    return (await connection.execute(CLOCK)).scalar_one()
