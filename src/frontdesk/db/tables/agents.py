"""Agents, what they know and hold, their conversations and turns, and the chats of people with them."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text, false, text

from frontdesk.db.tables.shared import Moment, RowNumber, metadata

agents = Table(
    "agents",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("model", String(200)),
    # The person who made it and so runs it; null where whoever runs the installation did.
    Column("owner", String(200)),
)

# A `per_person` block holds here only what its agent's owner wrote into it: what a person sees who has no row yet.
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
    Column("per_person", Boolean, nullable=False, server_default=false()),
    Column("people_write", Boolean, nullable=False, server_default=false()),
)

# What an agent knows of one person. `user_id` is '' for turns that name nobody.
person_blocks = Table(
    "person_blocks",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("label", String(100), primary_key=True),
    Column("user_id", String(200), primary_key=True),
    Column("value", Text, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "user_id"),
)

# What stood in a block before it was changed; the newest few of each are kept. `user_id` says whose row it was, null
# the block that everybody shares, and `written_by` whose turn changed that one.
block_versions = Table(
    "block_versions",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("agent_id", String(128), nullable=False),
    Column("label", String(100), nullable=False),
    Column("value", Text, nullable=False),
    Column("until", Moment, nullable=False),
    Column("user_id", String(200)),
    Column("written_by", String(200)),
    Index(None, "agent_id", "label", "id"),
    Index(None, "user_id"),
    Index(None, "written_by"),
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

WAITS = text("pending IS NOT NULL")
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
    # On whose word it is taken: credentials by their ids, and the scopes that bound them.
    Column("credentials", Text),
    Column("scopes", Text),
    Index(None, "lane", "started_at"),
    Index(None, "started_at", "id"),
    Index(None, "agent_id", "started_at", "id"),
    Index(None, "stop", "started_at", "id"),
    Index(None, "agent_id", "stop", "started_at", "id"),
    Index("ix_turns_waiting", "started_at", "id", sqlite_where=WAITS, postgresql_where=WAITS),
    Index("ix_turns_waiting_lane", "lane", "conversation_id", sqlite_where=WAITS, postgresql_where=WAITS),
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
    Index(None, "turn_id", "id"),
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

# Whom an agent of a Letta server serves: one person (`user_id`), or several (`shared`), or nobody itself, as a
# `template` from which each person gets an agent. A row with a template is an agent that was made from it, and has no
# id until Letta has made it: until then whoever has the `claim` is at it.
letta_agents = Table(
    "letta_agents",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("agent_id", String(128)),
    Column("kind", String(20), nullable=False),
    Column("user_id", String(200)),
    Column("template_id", String(128)),
    Column("claim", String(32)),
    Column("claimed_until", Moment),
    Column("remark", Text, nullable=False),
    Column("noted_at", Moment, nullable=False),
    Index("uq_letta_agents_agent_id", "agent_id", unique=True),
    Index("uq_letta_agents_template_id_user_id", "template_id", "user_id", unique=True),
    Index(None, "user_id"),
)
