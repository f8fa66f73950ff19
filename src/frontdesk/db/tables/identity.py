"""Keys and rate limits."""

from sqlalchemy import Column, Float, LargeBinary, String, Table, Text

from frontdesk.db.tables.shared import Moment, metadata

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
