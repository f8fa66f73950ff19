"""The first schema: what `frontdesk.db.schema` defines, as it was when migrations became append-only.

It carries the number 0014, since it stands for the fourteen migrations before it, and a database that they made is at
this version already. Never change it: a change of the schema is a new migration after the last one.
"""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.row_security import enable_row_security

revision = "0014"
down_revision = None
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
row_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# On PostgreSQL, a transaction for one person sees only that person's rows of these tables.
PERSONAL_TABLES = [
    "categories",
    "timeline_items",
    "activities",
    "memories",
    "tasks",
    "time_entries",
    "ai_tasks",
    "memory_anchors",
    "task_relations",
    "ai_task_events",
    "recall_docs",
    "recall_loose",
    "recall_words",
    "recall_regions",
    "recall_cells",
]
# Small whole numbers, written again with each change: compressing them would take PostgreSQL longer than writing them.
UNCOMPRESSED_COLUMNS = [("recall_words", "docs"), ("recall_regions", "cells"), ("recall_cells", "vectors")]


def upgrade() -> None:
    _create_identity()
    _create_agents()
    _create_chat()
    _create_tools()
    _create_schedules()
    _create_items()
    _create_tasks()
    _create_search_index()
    _create_coding()
    if op.get_bind().dialect.name == "postgresql":
        for table, column in UNCOMPRESSED_COLUMNS:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
    enable_row_security(op.get_bind(), PERSONAL_TABLES, ["people"])


def downgrade() -> None:
    raise NotImplementedError("There is no schema before the first one; delete the database instead")


def _create_identity() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("user_id", sa.String(200)),
        sa.Column("scopes", sa.Text()),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expires_at", moment),
        sa.Column("revoked_at", moment),
        sa.Column("last_used_at", moment),
        sa.Column("replaces", sa.String(16)),
        sa.Column("own", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("preview", sa.String(16)),
        sa.Column("updated_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
    _create_partial_index(
        "uq_api_keys_own_name", "api_keys", ["user_id", "name"], unique=True, where="own AND revoked_at IS NULL"
    )
    op.create_table(
        "rate_buckets",
        sa.Column("key", sa.String(300), nullable=False),
        sa.Column("tokens", sa.Float(), nullable=False),
        sa.Column("refilled_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rate_buckets"),
    )
    op.create_table(
        "oauth_requests",
        sa.Column("id_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("browser_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("client_id", sa.String(200), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("state", sa.Text()),
        sa.Column("challenge", sa.String(43), nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id_sha256", name="pk_oauth_requests"),
    )
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("client_id", sa.String(200), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.Column("email", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.Column("code_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("challenge", sa.String(43), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("code_expires_at", moment, nullable=False),
        sa.Column("code_used_at", moment),
        sa.Column("revoked_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_oauth_grants"),
    )
    op.create_index("ix_oauth_grants_code_sha256", "oauth_grants", ["code_sha256"], unique=True)
    op.create_index("ix_oauth_grants_user_id", "oauth_grants", ["user_id"])
    op.create_table(
        "oauth_tokens",
        sa.Column("token_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("grant_id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("used_at", moment),
        sa.ForeignKeyConstraint(["grant_id"], ["oauth_grants.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_oauth_tokens"),
    )
    op.create_index("ix_oauth_tokens_expires_at", "oauth_tokens", ["expires_at"])
    op.create_index("ix_oauth_tokens_grant_id", "oauth_tokens", ["grant_id"])
    op.create_table(
        "mcp_sessions",
        sa.Column("id_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id_sha256", name="pk_mcp_sessions"),
    )
    op.create_table(
        "mcp_session_persons",
        sa.Column("id_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("person_hash", sa.LargeBinary(32)),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id_sha256", name="pk_mcp_session_persons"),
    )
    op.create_table(
        "journal",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("surface", sa.String(20), nullable=False),
        sa.Column("action", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("reason", sa.String(300)),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("user_id", sa.String(200)),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("request_id", sa.String(128)),
        sa.Column("duration_us", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
    )
    op.create_index("ix_journal_agent_id_id", "journal", ["agent_id", "id"])
    op.create_index("ix_journal_at", "journal", ["at"])
    _create_partial_index("ix_journal_wrong", "journal", ["outcome", "id"], where="outcome <> 'ok'")
    op.create_table(
        "counters",
        sa.Column("name", sa.String(250), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.String(128), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("model", sa.String(200)),
        sa.Column("owner", sa.String(200)),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
    )
    op.create_table(
        "blocks",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("size_limit", sa.Integer(), nullable=False),
        sa.Column("read_only", sa.Boolean(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.Column("per_person", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("people_write", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "label", name="pk_blocks"),
    )
    op.create_table(
        "person_blocks",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "label", "user_id", name="pk_person_blocks"),
    )
    op.create_index("ix_person_blocks_user_id", "person_blocks", ["user_id"])
    op.create_table(
        "block_versions",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("until", moment, nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("written_by", sa.String(200)),
        sa.PrimaryKeyConstraint("id", name="pk_block_versions"),
    )
    op.create_index("ix_block_versions_agent_id_label_id", "block_versions", ["agent_id", "label", "id"])
    op.create_index("ix_block_versions_user_id", "block_versions", ["user_id"])
    op.create_index("ix_block_versions_written_by", "block_versions", ["written_by"])
    op.create_table(
        "agent_tools",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("server", sa.String(100), nullable=False),
        sa.Column("remote_name", sa.String(200), nullable=False),
        sa.Column("needs_approval", sa.Boolean(), nullable=False),
        sa.Column("attached_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "name", name="pk_agent_tools"),
    )
    op.create_table(
        "letta_agents",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("template_id", sa.String(128)),
        sa.Column("claim", sa.String(32)),
        sa.Column("claimed_until", moment),
        sa.Column("remark", sa.Text(), nullable=False),
        sa.Column("noted_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_letta_agents"),
    )
    op.create_index("ix_letta_agents_user_id", "letta_agents", ["user_id"])
    op.create_index("uq_letta_agents_agent_id", "letta_agents", ["agent_id"], unique=True)
    op.create_index("uq_letta_agents_template_id_user_id", "letta_agents", ["template_id", "user_id"], unique=True)
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("summary", sa.Text()),
        sa.Column("summary_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index("ix_conversations_agent_id_created_at", "conversations", ["agent_id", "created_at"])
    op.create_table(
        "messages",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index("ix_messages_conversation_id_id", "messages", ["conversation_id", "id"])
    op.create_index("ix_messages_turn_id_id", "messages", ["turn_id", "id"])
    op.create_table(
        "turns",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("lane", sa.String(140), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("conversation_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("running", sa.Boolean(), nullable=False),
        sa.Column("stop", sa.String(20)),
        sa.Column("pending", sa.Text()),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("leased_until", moment, nullable=False),
        sa.Column("cancel_asked", sa.Boolean(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Float()),
        sa.Column("failure", sa.Text()),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.Column("otid", sa.String(64)),
        sa.Column("credentials", sa.Text()),
        sa.Column("scopes", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
    )
    op.create_index("ix_turns_agent_id_started_at_id", "turns", ["agent_id", "started_at", "id"])
    op.create_index("ix_turns_agent_id_stop_started_at_id", "turns", ["agent_id", "stop", "started_at", "id"])
    op.create_index("ix_turns_lane_started_at", "turns", ["lane", "started_at"])
    op.create_index("ix_turns_started_at_id", "turns", ["started_at", "id"])
    op.create_index("ix_turns_stop_started_at_id", "turns", ["stop", "started_at", "id"])
    _create_partial_index("ix_turns_waiting", "turns", ["started_at", "id"], where="pending IS NOT NULL")
    _create_partial_index("ix_turns_waiting_lane", "turns", ["lane", "conversation_id"], where="pending IS NOT NULL")
    _create_partial_index("uq_turns_running", "turns", ["lane"], unique=True, where="running")


def _create_chat() -> None:
    op.create_table(
        "chat_sessions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("conversation_id", sa.String(128), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chat_sessions"),
    )
    op.create_index("ix_chat_sessions_user_id_created_at", "chat_sessions", ["user_id", "created_at"])
    op.create_table(
        "chat_replies",
        sa.Column("id", sa.String(24), nullable=False),
        sa.Column("session_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("opened_at", moment, nullable=False),
        sa.Column("touched_at", moment, nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("read", sa.Boolean(), nullable=False),
        sa.Column("cancel_asked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chat_replies"),
    )
    op.create_index("ix_chat_replies_session_id", "chat_replies", ["session_id"])
    op.create_table(
        "chat_words",
        sa.Column("message_id", sa.String(24), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", "number", name="pk_chat_words"),
    )


def _create_tools() -> None:
    op.create_table(
        "tool_servers",
        sa.Column("name", sa.String(30), nullable=False),
        sa.Column("transport", sa.String(10), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("env", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("user_token", sa.Boolean(), nullable=False),
        sa.Column("oauth", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("hold_changes", sa.Boolean()),
        sa.Column("timeout", sa.Float(), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.Column("tools", sa.Integer(), nullable=False),
        sa.Column("crawled_at", moment),
        sa.Column("answered_at", moment),
        sa.Column("declared_at", moment),
        sa.Column("leased_by", sa.String(200)),
        sa.Column("leased_until", moment),
        sa.PrimaryKeyConstraint("name", name="pk_tool_servers"),
    )
    op.create_table(
        "tools",
        sa.Column("id", sa.String(240), nullable=False),
        sa.Column("server", sa.String(30), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("api_name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("input_texts", sa.Text(), nullable=False),
        sa.Column("annotations", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("standing", sa.String(10), nullable=False),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("other", sa.Text()),
        sa.Column("refused", sa.String(80)),
        sa.Column("seal", sa.String(80), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.Column("changed_at", moment, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tools"),
    )
    _create_partial_index("ix_tools_changed", "tools", ["id"], where="change <> ''")
    op.create_index("ix_tools_name", "tools", ["name"])
    op.create_index("ix_tools_revision_id", "tools", ["revision", "id"])
    op.create_index("ix_tools_server_name", "tools", ["server", "name"])
    op.create_index("uq_tools_api_name", "tools", ["api_name"], unique=True)
    op.create_table(
        "tool_vectors",
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("model", "digest", name="pk_tool_vectors"),
    )
    op.create_table(
        "tool_uses",
        sa.Column("tenant", sa.String(250), nullable=False),
        sa.Column("tool_id", sa.String(240), nullable=False),
        sa.Column("query_digest", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "tool_id", "query_digest", name="pk_tool_uses"),
    )
    op.create_index("ix_tool_uses_at", "tool_uses", ["at"])
    op.create_index("ix_tool_uses_tenant_revision", "tool_uses", ["tenant", "revision"])
    op.create_table(
        "tool_searches",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(250), nullable=False),
        sa.Column("caller", sa.String(400), nullable=False),
        sa.Column("query_digest", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("offered", sa.Text(), nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tool_searches"),
    )
    op.create_index("ix_tool_searches_at", "tool_searches", ["at"])
    op.create_index("ix_tool_searches_caller_at", "tool_searches", ["caller", "at"])
    op.create_table(
        "tool_rights",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(250), nullable=False),
        sa.Column("effect", sa.String(10), nullable=False),
        sa.Column("pattern", sa.String(300), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tool_rights"),
    )
    op.create_index("uq_tool_rights_rule", "tool_rights", ["subject", "effect", "pattern"], unique=True)
    op.create_table(
        "held_tools",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("tool_id", sa.String(240), nullable=False),
        sa.Column("attached_by", sa.String(20), nullable=False),
        sa.Column("attached_at", moment, nullable=False),
        sa.Column("used_at", moment),
        sa.PrimaryKeyConstraint("agent_id", "tool_id", name="pk_held_tools"),
    )
    op.create_index("ix_held_tools_tool_id", "held_tools", ["tool_id"])
    op.create_table(
        "tool_turns",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("leased_until", moment, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_tool_turns"),
    )
    op.create_table(
        "handed_tools",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("server", sa.String(100), nullable=False),
        sa.Column("remote_name", sa.String(200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("registered_as", sa.String(200)),
        sa.Column("handed_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_handed_tools"),
    )


def _create_schedules() -> None:
    op.create_table(
        "lanes",
        sa.Column("name", sa.String(140), nullable=False),
        sa.Column("serial", sa.Boolean(), nullable=False),
        sa.Column("due_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name", name="pk_lanes"),
        sqlite_with_rowid=False,
    )
    _create_partial_index("ix_lanes_due_us", "lanes", ["due_us"], where="due_us IS NOT NULL")
    op.create_table(
        "schedules",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("lane", sa.String(140), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("start_us", sa.BigInteger()),
        sa.Column("end_us", sa.BigInteger()),
        sa.Column("jitter_s", sa.Integer(), nullable=False),
        sa.Column("max_repetitions", sa.Integer()),
        sa.Column("overlap", sa.String(10), nullable=False),
        sa.Column("misfire", sa.String(10), nullable=False),
        sa.Column("max_late_s", sa.Integer()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("words", sa.Text()),
        sa.Column("webhook", sa.Text()),
        sa.Column("timeline", sa.Boolean(), nullable=False),
        sa.Column("conversation_id", sa.String(128)),
        sa.Column("made_by", sa.String(64)),
        sa.Column("credentials", sa.Text()),
        sa.Column("scopes", sa.Text()),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("intended_us", sa.BigInteger()),
        sa.Column("fire_us", sa.BigInteger()),
        sa.Column("fired", sa.Integer(), nullable=False),
        sa.Column("last_us", sa.BigInteger()),
        sa.Column("last_ended_us", sa.BigInteger()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_schedules"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_schedules_agent_id_id", "schedules", ["agent_id", "id"])
    _create_partial_index(
        "ix_schedules_fire_us_id", "schedules", ["fire_us", "id"], where="state = 'active' AND fire_us IS NOT NULL"
    )
    _create_partial_index(
        "ix_schedules_lane_fire_us_id",
        "schedules",
        ["lane", "fire_us", "id"],
        where="state = 'active' AND fire_us IS NOT NULL",
    )
    _create_partial_index("ix_schedules_made_by", "schedules", ["made_by"], where="made_by IS NOT NULL")
    _create_partial_index(
        "ix_schedules_resting", "schedules", ["state", "id"], where="state IN ('paused', 'cancelled', 'ended')"
    )
    _create_partial_index(
        "ix_schedules_updated_us", "schedules", ["updated_us"], where="state IN ('ended', 'cancelled')"
    )
    _create_partial_index("ix_schedules_user_id_id", "schedules", ["user_id", "id"], where="user_id IS NOT NULL")
    op.create_table(
        "occurrences",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("schedule_id", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("lane", sa.String(140), nullable=False),
        sa.Column("serial", sa.Boolean(), nullable=False),
        sa.Column("intended_us", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("manual", sa.Boolean(), nullable=False),
        sa.Column("standing", sa.String(10), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("in_doubt", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(200)),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("leased_until_us", sa.BigInteger()),
        sa.Column("available_us", sa.BigInteger()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("started_us", sa.BigInteger()),
        sa.Column("ended_us", sa.BigInteger()),
        sa.Column("reason", sa.Text()),
        sa.Column("answer", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_occurrences"),
    )
    op.create_index("ix_occurrences_agent_id_intended_us", "occurrences", ["agent_id", "intended_us"])
    _create_partial_index("ix_occurrences_dead", "occurrences", ["ended_us"], where="standing = 'dead'")
    _create_partial_index("ix_occurrences_ended_us", "occurrences", ["ended_us"], where="ended_us IS NOT NULL")
    _create_partial_index("ix_occurrences_lane", "occurrences", ["lane"], where="standing IN ('running', 'waiting')")
    _create_partial_index(
        "uq_occurrences_running", "occurrences", ["lane"], unique=True, where="serial AND standing = 'running'"
    )
    op.create_index("uq_occurrences_time", "occurrences", ["schedule_id", "intended_us"], unique=True)
    op.create_table(
        "attempts",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("occurrence_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
    )
    op.create_index("ix_attempts_occurrence_id_id", "attempts", ["occurrence_id", "id"])
    op.create_table(
        "forwards",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("occurrence_id", sa.String(64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("available_us", sa.BigInteger()),
        sa.Column("owner", sa.String(200)),
        sa.Column("leased_until_us", sa.BigInteger()),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_forwards"),
    )
    _create_partial_index("ix_forwards_available_us", "forwards", ["available_us"], where="state = 'waiting'")
    op.create_index("ix_forwards_occurrence_id", "forwards", ["occurrence_id"])
    op.create_table(
        "agent_defaults",
        sa.Column("scope", sa.String(250), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_agent_defaults"),
    )


def _create_items() -> None:
    op.create_table(
        "categories",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("name_key", sa.String(200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("color", sa.String(7), nullable=False),
        sa.Column("icon", sa.String(100), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_categories"),
    )
    op.create_index("uq_categories_user_id_name_key", "categories", ["user_id", "name_key"], unique=True)
    op.create_table(
        "people",
        sa.Column("number", row_number, autoincrement=True, nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("found", sa.Integer(), nullable=False),
        sa.Column("unread", sa.Integer(), nullable=False),
        sa.Column("numbered", sa.Integer(), server_default="0", nullable=False),
        sa.Column("model", sa.Integer()),
        sa.PrimaryKeyConstraint("number", name="pk_people"),
    )
    _create_partial_index("ix_people_unread", "people", ["unread"], where="unread > 0")
    op.create_index("ix_people_user_id", "people", ["user_id"], unique=True)
    op.create_table(
        "timeline_items",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("type", sa.String(10), nullable=False),
        sa.Column("title", sa.String(500), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("start_time", moment),
        sa.Column("end_time", moment),
        sa.Column("is_time_consuming", sa.Boolean(), nullable=False),
        sa.Column("render_on_timeline", sa.Boolean(), nullable=False),
        sa.Column("category_id", sa.String(36)),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("priority", sa.String(10), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "category_id"],
            ["categories.user_id", "categories.id"],
        ),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_timeline_items"),
    )
    op.create_index("ix_timeline_items_user_id_category_id", "timeline_items", ["user_id", "category_id"])
    op.create_index("ix_timeline_items_user_id_created_at", "timeline_items", ["user_id", "created_at"])
    op.create_index("ix_timeline_items_user_id_start_time", "timeline_items", ["user_id", "start_time"])
    op.create_index("ix_timeline_items_user_id_type_created_at", "timeline_items", ["user_id", "type", "created_at"])
    op.create_index("ix_timeline_items_user_id_updated_at", "timeline_items", ["user_id", "updated_at"])
    op.create_table(
        "activities",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("activity_type", sa.String(12), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.Column("duration_minutes", sa.Integer()),
        sa.Column("mood_before", sa.Integer()),
        sa.Column("mood_after", sa.Integer()),
        sa.Column("energy_before", sa.Integer()),
        sa.Column("energy_after", sa.Integer()),
        sa.Column("satisfaction_level", sa.Integer()),
        sa.Column("intensity_level", sa.String(10), nullable=False),
        sa.Column("location", sa.String(300)),
        sa.Column("weather", sa.String(300)),
        sa.Column("companions", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("insights", sa.Text(), nullable=False),
        sa.Column("gratitude", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id", "id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_activities"),
    )
    op.create_index("ix_activities_user_id_started_at", "activities", ["user_id", "started_at"])
    op.create_table(
        "memories",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("memory_type", sa.String(10), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("emotion_valence", sa.Integer()),
        sa.Column("emotion_arousal", sa.Integer()),
        sa.Column("energy_delta", sa.Integer()),
        sa.Column("place_name", sa.String(300)),
        sa.Column("latitude", sa.Float()),
        sa.Column("longitude", sa.Float()),
        sa.Column("is_highlight", sa.Boolean(), nullable=False),
        sa.Column("salience_score", sa.Float()),
        sa.Column("captured_at", moment, nullable=False),
        sa.Column("happened_start", moment),
        sa.Column("happened_end", moment),
        sa.Column("supersedes", sa.String(36)),
        sa.Column("superseded_by", sa.String(36)),
        sa.Column("expires_at", moment),
        sa.Column("agent_id", sa.String(128)),
        sa.ForeignKeyConstraint(["user_id", "id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_memories"),
    )
    op.create_index("ix_memories_user_id_captured_at", "memories", ["user_id", "captured_at"])
    op.create_table(
        "memory_anchors",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("memory_id", sa.String(36), nullable=False),
        sa.Column("anchor_item_id", sa.String(36), nullable=False),
        sa.Column("relation", sa.String(20), nullable=False),
        sa.Column("local_start", moment),
        sa.Column("local_end", moment),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "anchor_item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id", "memory_id"], ["memories.user_id", "memories.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "memory_id", "anchor_item_id", "relation", name="pk_memory_anchors"),
    )
    op.create_index("ix_memory_anchors_user_id_anchor_item_id", "memory_anchors", ["user_id", "anchor_item_id"])


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("due_date", moment),
        sa.Column("estimated_duration", sa.Integer()),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("assignee", sa.String(200)),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("completion_date", moment),
        sa.Column("parent_task_id", sa.String(36)),
        sa.Column("hierarchy_level", sa.Integer(), nullable=False),
        sa.Column("hierarchy_path", sa.Text(), nullable=False),
        sa.Column("subtask_order", sa.Integer(), nullable=False),
        sa.Column("completion_behavior", sa.String(30), nullable=False),
        sa.Column("progress_calculation", sa.String(20), nullable=False),
        sa.Column("subtask_count", sa.Integer(), nullable=False),
        sa.Column("completed_subtask_count", sa.Integer(), nullable=False),
        sa.Column("tracked_minutes_total", sa.Integer(), nullable=False),
        sa.Column("tracked_segments_count", sa.Integer(), nullable=False),
        sa.Column("is_ai_task", sa.Boolean(), nullable=False),
        sa.Column("wake_schedule_id", sa.Integer()),
        sa.ForeignKeyConstraint(["user_id", "id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id", "parent_task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_tasks"),
    )
    _create_partial_index("ix_tasks_user_id_due_date", "tasks", ["user_id", "due_date"], where="due_date IS NOT NULL")
    _create_partial_index(
        "ix_tasks_user_id_parent_task_id", "tasks", ["user_id", "parent_task_id"], where="parent_task_id IS NOT NULL"
    )
    op.create_index("ix_tasks_user_id_status", "tasks", ["user_id", "status"])
    op.create_table(
        "task_relations",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("related_task_id", sa.String(36), nullable=False),
        sa.Column("relation", sa.String(12), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.ForeignKeyConstraint(["user_id", "related_task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id", "task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_task_relations"),
    )
    op.create_index("ix_task_relations_user_id_related_task_id", "task_relations", ["user_id", "related_task_id"])
    op.create_index(
        "uq_task_relations", "task_relations", ["user_id", "task_id", "related_task_id", "relation"], unique=True
    )
    op.create_table(
        "time_entries",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("timeline_item_id", sa.String(36), nullable=False),
        sa.Column("start_at", moment, nullable=False),
        sa.Column("end_at", moment),
        sa.Column("duration_minutes", sa.Integer()),
        sa.Column("source", sa.String(10), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("item_type", sa.String(10), nullable=False),
        sa.Column("item_title", sa.String(500), nullable=False),
        sa.Column("category_id", sa.String(36)),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "timeline_item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_time_entries"),
    )
    op.create_index("ix_time_entries_user_id_start_at", "time_entries", ["user_id", "start_at"])
    op.create_index(
        "ix_time_entries_user_id_timeline_item_id_start_at", "time_entries", ["user_id", "timeline_item_id", "start_at"]
    )
    _create_partial_index("uq_time_entries_running", "time_entries", ["user_id"], unique=True, where="end_at IS NULL")
    op.create_table(
        "ai_tasks",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("agent_name", sa.String(200), nullable=False),
        sa.Column("objective", sa.Text(), nullable=False),
        sa.Column("deliverables", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("acceptance_criteria", sa.Text(), nullable=False),
        sa.Column("task_type", sa.String(20), nullable=False),
        sa.Column("dependencies", sa.Text(), nullable=False),
        sa.Column("mode", sa.String(10), nullable=False),
        sa.Column("guardrails", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("priority", sa.String(10), nullable=False),
        sa.Column("progress_message", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=False),
        sa.Column("execution_result", sa.Text(), nullable=False),
        sa.Column("estimated_cost_usd", sa.Float()),
        sa.Column("actual_cost_usd", sa.Float()),
        sa.Column("estimated_duration_min", sa.Integer()),
        sa.Column("actual_duration_min", sa.Integer()),
        sa.Column("is_local_task", sa.Boolean(), nullable=False),
        sa.Column("executor_workspace_id", sa.String(128)),
        sa.Column("assigned_at", moment),
        sa.Column("started_at", moment),
        sa.Column("completed_at", moment),
        sa.Column("due_at", moment),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.Column("leased_by", sa.String(200)),
        sa.Column("leased_until", moment),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["user_id", "task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_ai_tasks"),
    )
    op.create_index("ix_ai_tasks_user_id_agent_id_status", "ai_tasks", ["user_id", "agent_id", "status"])
    op.create_index("ix_ai_tasks_user_id_status_assigned_at", "ai_tasks", ["user_id", "status", "assigned_at"])
    op.create_index("uq_ai_tasks_task_agent", "ai_tasks", ["user_id", "task_id", "agent_id"], unique=True)
    op.create_table(
        "ai_task_events",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("ai_task_id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("from_status", sa.String(12)),
        sa.Column("to_status", sa.String(12), nullable=False),
        sa.Column("by_agent", sa.String(128)),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id", "ai_task_id"], ["ai_tasks.user_id", "ai_tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "ai_task_id", "number", name="pk_ai_task_events"),
    )


def _create_search_index() -> None:
    op.create_table(
        "recall_docs",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.String(36), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("model", sa.Integer(), nullable=False),
        sa.Column("cell", sa.Integer()),
        sa.Column("vector", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["user_id", "item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "n", name="pk_recall_docs"),
    )
    op.create_index("ix_recall_docs_user_id_item_id", "recall_docs", ["user_id", "item_id"], unique=True)
    op.create_index("ix_recall_docs_user_id_model_n", "recall_docs", ["user_id", "model", "n"])
    op.create_table(
        "recall_loose",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "n", name="pk_recall_loose"),
    )
    op.create_table(
        "recall_words",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("term", sa.String(60), nullable=False),
        sa.Column("block", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("docs", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "term", "block", name="pk_recall_words"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "recall_regions",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("region", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Integer(), nullable=False),
        sa.Column("centre", sa.LargeBinary(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "region", name="pk_recall_regions"),
    )
    op.create_table(
        "recall_cells",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("cell", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Integer(), nullable=False),
        sa.Column("vectors", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "cell", name="pk_recall_cells"),
    )


def _create_coding() -> None:
    op.create_table(
        "editor_sessions",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("conversation_id", sa.String(128), nullable=False),
        sa.Column("cwd", sa.Text(), nullable=False),
        sa.Column("directories", sa.Text(), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("model", sa.String(200)),
        sa.Column("effort", sa.String(20)),
        sa.Column("asks_memory", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("cost_usd", sa.Float()),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_editor_sessions"),
    )
    op.create_index("ix_editor_sessions_agent_id", "editor_sessions", ["agent_id"])
    op.create_index("ix_editor_sessions_user_id_updated_at_id", "editor_sessions", ["user_id", "updated_at", "id"])
    op.create_table(
        "workspaces",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("cwd_sha256", sa.String(64), nullable=False),
        sa.Column("cwd", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "cwd_sha256", name="pk_workspaces"),
    )
    op.create_table(
        "permissions",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("cwd_sha256", sa.String(64), nullable=False),
        sa.Column("scope_sha256", sa.String(64), nullable=False),
        sa.Column("cwd", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "cwd_sha256", "scope_sha256", name="pk_permissions"),
    )


def _create_partial_index(name: str, table: str, columns: list[str], *, where: str, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
