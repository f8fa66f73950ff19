"""Every table, once, for both databases."""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
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

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("name", String(200), nullable=False),
    Column("agent_id", String(128)),
    Column("user_id", String(200)),
    Column("scopes", Text),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    Column("last_used_at", Moment),
    Column("replaces", String(16)),
)

buckets = Table(
    "rate_buckets",
    metadata,
    Column("key", String(300), primary_key=True),
    Column("tokens", Float, nullable=False),
    Column("refilled_at", Float, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("at", Moment, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("surface", String(20), nullable=False),
    Column("action", String(200), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reason", String(300)),
    Column("agent_id", String(128)),
    Column("user_id", String(200)),
    Column("source", String(20), nullable=False),
    Column("verified", Boolean, nullable=False),
    Column("request_id", String(128)),
    Column("duration_us", Integer, nullable=False),
    Index(None, "at"),
    Index(None, "agent_id", "id"),
)

agents = Table(
    "agents",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
)
