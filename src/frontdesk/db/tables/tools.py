"""Tool servers, their tools, what is known of their use, and who may use and holds them."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, String, Table, Text, text

from frontdesk.db.tables.shared import Moment, metadata

tool_servers = Table(
    "tool_servers",
    metadata,
    Column("name", String(30), primary_key=True),
    Column("transport", String(10), nullable=False),
    Column("url", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("env", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("user_token", Boolean, nullable=False),
    Column("oauth", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("origin", String(10), nullable=False),
    Column("hold_changes", Boolean),
    Column("timeout", Float, nullable=False),
    Column("status", String(10), nullable=False),
    Column("error", Text, nullable=False),
    Column("problems", Text, nullable=False),
    Column("changes", Text, nullable=False),
    Column("tools", Integer, nullable=False),
    Column("crawled_at", Moment),
    Column("answered_at", Moment),
    Column("declared_at", Moment),
    Column("leased_by", String(200)),
    Column("leased_until", Moment),
)

CHANGED = text("change <> ''")
# `other` is the version that does not count: the new one of a held tool, the former one of a tool that was changed.
tools = Table(
    "tools",
    metadata,
    Column("id", String(240), primary_key=True),
    Column("server", String(30), nullable=False),
    Column("name", String(200), nullable=False),
    Column("api_name", String(64), nullable=False),
    Column("description", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("input_texts", Text, nullable=False),
    Column("annotations", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("standing", String(10), nullable=False),
    Column("change", Text, nullable=False),
    Column("other", Text),
    Column("refused", String(80)),
    Column("seal", String(80), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Index("uq_tools_api_name", "api_name", unique=True),
    Index("ix_tools_changed", "id", sqlite_where=CHANGED, postgresql_where=CHANGED),
    Index(None, "name"),
    Index(None, "server", "name"),
    Index(None, "revision", "id"),
)

tool_vectors = Table(
    "tool_vectors",
    metadata,
    Column("model", String(200), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("vector", LargeBinary, nullable=False),
)

# What a tool was found with when it was of use: a vector, never a text.
tool_uses = Table(
    "tool_uses",
    metadata,
    Column("tenant", String(250), primary_key=True),
    Column("tool_id", String(240), primary_key=True),
    Column("query_digest", String(64), primary_key=True),
    Column("model", String(200), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("weight", Float, nullable=False),
    Column("at", Moment, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Index(None, "tenant", "revision"),
    Index(None, "at"),
)

tool_searches = Table(
    "tool_searches",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(250), nullable=False),
    Column("caller", String(400), nullable=False),
    Column("query_digest", String(64), nullable=False),
    Column("model", String(200), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("offered", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Index(None, "caller", "at"),
    Index(None, "at"),
)

tool_rights = Table(
    "tool_rights",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("subject", String(250), nullable=False),
    Column("effect", String(10), nullable=False),
    Column("pattern", String(300), nullable=False),
    Column("created_at", Moment, nullable=False),
    Index("uq_tool_rights_rule", "subject", "effect", "pattern", unique=True),
)

# What Frontdesk attached to agents, as distinct from what people did.
held_tools = Table(
    "held_tools",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("tool_id", String(240), primary_key=True),
    Column("attached_by", String(20), nullable=False),
    Column("attached_at", Moment, nullable=False),
    Column("used_at", Moment),
    Index(None, "tool_id"),
)

# Who is changing an agent's tools just now: one at a time, whichever replica.
tool_turns = Table(
    "tool_turns",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("leased_until", Moment, nullable=False),
)
