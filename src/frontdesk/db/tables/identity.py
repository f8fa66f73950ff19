"""Keys, logins, and rate limits. Whatever opens a door is here as a hash alone."""

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, LargeBinary, String, Table, Text, false, text, true

from frontdesk.db.tables.shared import Moment, metadata

# The names of a person's own keys differ.
IS_OWN = text("own AND revoked_at IS NULL")

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
    Column("own", Boolean, nullable=False, server_default=false()),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    Column("preview", String(16)),
    Column("updated_at", Moment),
    Index("uq_api_keys_own_name", "user_id", "name", unique=True, sqlite_where=IS_OWN, postgresql_where=IS_OWN),
)

# A login that somebody has been asked for and has not settled yet, bound to the browser that was asked.
oauth_requests = Table(
    "oauth_requests",
    metadata,
    Column("id_sha256", LargeBinary(32), primary_key=True),
    Column("browser_sha256", LargeBinary(32), nullable=False),
    Column("client_id", String(200), nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("state", Text),
    Column("challenge", String(43), nullable=False),
    Column("expires_at", Moment, nullable=False),
)

# What a person allowed a client: the code it got, and everything that came of it. `proof` is what they showed.
oauth_grants = Table(
    "oauth_grants",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("client_id", String(200), nullable=False),
    Column("user_id", String(200), nullable=False),
    Column("scopes", Text, nullable=False),
    Column("proof", Text, nullable=False),
    Column("email", Text),
    Column("name", Text),
    Column("code_sha256", LargeBinary(32), nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("challenge", String(43), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("code_expires_at", Moment, nullable=False),
    Column("code_used_at", Moment),
    Column("revoked_at", Moment),
    Index(None, "code_sha256", unique=True),
    Index(None, "user_id"),
)

oauth_tokens = Table(
    "oauth_tokens",
    metadata,
    Column("token_sha256", LargeBinary(32), primary_key=True),
    Column("grant_id", String(32), ForeignKey("oauth_grants.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("scopes", Text, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("used_at", Moment),
    Index(None, "grant_id"),
    Index(None, "expires_at"),
)

# A token that a client left for its MCP session, sealed with what only the session's id opens.
mcp_sessions = Table(
    "mcp_sessions",
    metadata,
    Column("id_sha256", LargeBinary(32), primary_key=True),
    Column("sealed", Text, nullable=False),
    Column("expires_at", Moment, nullable=False),
)

# Whom an MCP session acts for: one person, or, where there is none here, whoever each of its calls proves.
mcp_session_persons = Table(
    "mcp_session_persons",
    metadata,
    Column("id_sha256", LargeBinary(32), primary_key=True),
    Column("person_hash", LargeBinary(32)),
    Column("expires_at", Moment, nullable=False),
)

buckets = Table(
    "rate_buckets",
    metadata,
    Column("key", String(300), primary_key=True),
    Column("tokens", Float, nullable=False),
    Column("refilled_at", Float, nullable=False),
)
