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
    text,
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
    Column("model", String(200)),
)

blocks = Table(
    "blocks",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("label", String(100), primary_key=True),
    Column("value", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("size_limit", Integer, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("position", Integer, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

agent_tools = Table(
    "agent_tools",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("description", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("server", String(100), nullable=False),
    Column("remote_name", String(200), nullable=False),
    Column("needs_approval", Boolean, nullable=False),
    Column("attached_at", Moment, nullable=False),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("agent_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("title", String(200), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("summary", Text),
    Column("summary_until", BigInteger, nullable=False),
    Index(None, "agent_id", "created_at"),
)

# A turn of any host: `lane` is what is taken one turn at a time, a conversation here, an agent on Letta.
turns = Table(
    "turns",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("lane", String(140), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("running", Boolean, nullable=False),
    Column("stop", String(20)),
    Column("pending", Text),
    Column("owner", String(200), nullable=False),
    Column("leased_until", Moment, nullable=False),
    Column("cancel_asked", Boolean, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("failure", Text),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("otid", String(64)),
    Index(None, "lane", "started_at"),
    Index("uq_turns_running", "lane", unique=True, sqlite_where=text("running"), postgresql_where=text("running")),
)

messages = Table(
    "messages",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("conversation_id", String(64), nullable=False),
    Column("turn_id", String(64), nullable=False),
    Column("at", Moment, nullable=False),
    Column("folded", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Index(None, "conversation_id", "id"),
)

chat_sessions = Table(
    "chat_sessions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("user_id", String(200), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Index(None, "user_id", "created_at"),
)

# Replies that are being told, or were a moment ago: how a stream at one replica hears a turn that runs at another.
chat_replies = Table(
    "chat_replies",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("session_id", String(32), nullable=False),
    Column("user_id", String(200), nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("touched_at", Moment, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("read", Boolean, nullable=False),
    Column("cancel_asked", Boolean, nullable=False),
    Index(None, "session_id"),
)

# Some words of a reply, the first of them the reply's word `number`.
chat_words = Table(
    "chat_words",
    metadata,
    Column("message_id", String(24), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("payload", Text, nullable=False),
)

# Numbers that only grow, each bumped in the transaction of the change it counts: whoever has seen one number can ask
# for what came after it and misses nothing, since the row stays locked until the change can be seen.
counters = Table(
    "counters",
    metadata,
    Column("name", String(250), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

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

# What the door for a Letta server's agents lists: a copy, so that it outlives the tool's place in the catalogue.
handed_tools = Table(
    "handed_tools",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("server", String(100), nullable=False),
    Column("remote_name", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("registered_as", String(200)),
    Column("handed_at", Moment, nullable=False),
)

# From here on times are microseconds since the epoch: the scheduler compares and moves a great many of them.

# The line before an agent, and a second one for what may run beside it. `due_us` is when somebody must look at the
# line, at the latest: whoever makes something due earlier lowers it, only who holds the row's lock raises it.
lanes = Table(
    "lanes",
    metadata,
    Column("name", String(140), primary_key=True),
    Column("serial", Boolean, nullable=False),
    Column("due_us", BigInteger),
    Index(None, "due_us", sqlite_where=text("due_us IS NOT NULL"), postgresql_where=text("due_us IS NOT NULL")),
)

WAITS_FOR_ITS_TIME = text("state = 'active' AND fire_us IS NOT NULL")
IS_OVER = text("state IN ('ended', 'cancelled')")
schedules = Table(
    "schedules",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("agent_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("lane", String(140), nullable=False),
    Column("prompt", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("value", Text, nullable=False),
    Column("zone", String(64), nullable=False),
    Column("start_us", BigInteger),
    Column("end_us", BigInteger),
    Column("jitter_s", Integer, nullable=False),
    Column("max_repetitions", Integer),
    Column("overlap", String(10), nullable=False),
    Column("misfire", String(10), nullable=False),
    Column("max_late_s", Integer),
    Column("attempts", Integer, nullable=False),
    Column("words", Text),
    Column("webhook", Text),
    Column("timeline", Boolean, nullable=False),
    Column("conversation_id", String(128)),
    Column("made_by", String(64)),
    Column("state", String(10), nullable=False),
    Column("intended_us", BigInteger),
    Column("fire_us", BigInteger),
    Column("fired", Integer, nullable=False),
    Column("last_us", BigInteger),
    Column("last_ended_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Index(None, "lane", "fire_us", "id", sqlite_where=WAITS_FOR_ITS_TIME, postgresql_where=WAITS_FOR_ITS_TIME),
    Index(None, "agent_id", "id"),
    Index(
        None, "user_id", "id", sqlite_where=text("user_id IS NOT NULL"), postgresql_where=text("user_id IS NOT NULL")
    ),
    Index(None, "made_by", sqlite_where=text("made_by IS NOT NULL"), postgresql_where=text("made_by IS NOT NULL")),
    Index(None, "updated_us", sqlite_where=IS_OVER, postgresql_where=IS_OVER),
    sqlite_autoincrement=True,
)

UNDER_WAY = text("standing IN ('running', 'waiting')")
HAS_THE_LANE = text("serial AND standing = 'running'")
IS_DEAD = text("standing = 'dead'")
occurrences = Table(
    "occurrences",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("schedule_id", BigInteger, nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("lane", String(140), nullable=False),
    Column("serial", Boolean, nullable=False),
    Column("intended_us", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("manual", Boolean, nullable=False),
    Column("standing", String(10), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("in_doubt", Boolean, nullable=False),
    Column("owner", String(200)),
    Column("fence", BigInteger, nullable=False),
    Column("leased_until_us", BigInteger),
    Column("available_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    Column("started_us", BigInteger),
    Column("ended_us", BigInteger),
    Column("reason", Text),
    Column("answer", Text),
    Index("uq_occurrences_time", "schedule_id", "intended_us", unique=True),
    Index("uq_occurrences_running", "lane", unique=True, sqlite_where=HAS_THE_LANE, postgresql_where=HAS_THE_LANE),
    Index(None, "lane", sqlite_where=UNDER_WAY, postgresql_where=UNDER_WAY),
    Index(None, "agent_id", "intended_us"),
    Index(None, "ended_us", sqlite_where=text("ended_us IS NOT NULL"), postgresql_where=text("ended_us IS NOT NULL")),
    Index("ix_occurrences_dead", "ended_us", sqlite_where=IS_DEAD, postgresql_where=IS_DEAD),
)

# The attempts at an occurrence that did not settle it; the last one is told by the occurrence's own row.
attempts = Table(
    "attempts",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("occurrence_id", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    Index(None, "occurrence_id", "id"),
)

# Answers on their way to somebody's webhook.
IS_WAITING = text("state = 'waiting'")
forwards = Table(
    "forwards",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("occurrence_id", String(64), nullable=False),
    Column("url", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("available_us", BigInteger),
    Column("owner", String(200)),
    Column("leased_until_us", BigInteger),
    Column("state", String(10), nullable=False),
    Column("error", Text),
    Index(None, "available_us", sqlite_where=IS_WAITING, postgresql_where=IS_WAITING),
    Index(None, "occurrence_id"),
)

# Whom a scope's prompts go to when nobody is named; the scope '' is everybody's.
agent_defaults = Table(
    "agent_defaults",
    metadata,
    Column("scope", String(250), primary_key=True),
    Column("agent_id", String(128), nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)
