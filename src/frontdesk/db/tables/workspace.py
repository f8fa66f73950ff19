"""Editors' sessions, the agent of each folder, and what people have allowed in it for good."""

from sqlalchemy import Boolean, Column, Float, Index, String, Table, Text, false

from frontdesk.db.tables.shared import Moment, metadata

# Nobody in particular is '' here, so that it can be part of a key.
editor_sessions = Table(
    "editor_sessions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(200), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("cwd", Text, nullable=False),
    Column("directories", Text, nullable=False),
    Column("title", String(200), nullable=False),
    Column("mode", String(20), nullable=False),
    Column("model", String(200)),
    Column("effort", String(20)),
    Column("asks_memory", Boolean, nullable=False, server_default=false()),
    Column("cost_usd", Float),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "user_id", "updated_at", "id"),
    Index(None, "agent_id"),
)

# A path may be longer than an index takes, so its digest is the key.
workspaces = Table(
    "workspaces",
    metadata,
    Column("user_id", String(200), primary_key=True),
    Column("cwd_sha256", String(64), primary_key=True),
    Column("cwd", Text, nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("created_at", Moment, nullable=False),
)

permissions = Table(
    "permissions",
    metadata,
    Column("user_id", String(200), primary_key=True),
    Column("cwd_sha256", String(64), primary_key=True),
    Column("scope_sha256", String(64), primary_key=True),
    Column("cwd", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("allowed", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
)
