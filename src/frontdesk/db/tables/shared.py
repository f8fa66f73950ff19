"""What the tables of every room are made with, and the one table that belongs to no room."""

from datetime import UTC, datetime

from sqlalchemy import BigInteger, Column, DateTime, Dialect, Integer, MetaData, String, Table, TypeDecorator
from typing_extensions import override


class Moment(TypeDecorator[datetime]):
    """A point in time, always UTC: a naive one is refused going in, an aware one comes out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @override
    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return value.astimezone(UTC)

    @override
    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite numbers rows by itself only for INTEGER, PostgreSQL wants the wider type.
RowNumber = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Numbers that only grow, each bumped in the transaction of the change it counts: whoever has seen one number can ask
# for what came after it and misses nothing, since the row stays locked until the change can be seen.
counters = Table(
    "counters",
    metadata,
    Column("name", String(250), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
