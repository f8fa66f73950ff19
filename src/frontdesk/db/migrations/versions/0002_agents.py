"""Agents that think: models, memory blocks, tools, conversations, turns and the chat sessions of people."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
row_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("agents", sa.Column("model", sa.String(200)))
    _agents()
    _turns()
    _talk()
    _chat()


def _agents() -> None:
    op.create_table(
        "blocks",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("size_limit", sa.Integer, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "label", name="pk_blocks"),
    )
    op.create_table(
        "agent_tools",
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("server", sa.String(100), nullable=False),
        sa.Column("remote_name", sa.String(200), nullable=False),
        sa.Column("needs_approval", sa.Boolean, nullable=False),
        sa.Column("attached_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "name", name="pk_agent_tools"),
    )


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("lane", sa.String(140), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("conversation_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("running", sa.Boolean, nullable=False),
        sa.Column("stop", sa.String(20)),
        sa.Column("pending", sa.Text),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("leased_until", moment, nullable=False),
        sa.Column("cancel_asked", sa.Boolean, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Float),
        sa.Column("failure", sa.Text),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
    )
    op.create_index("ix_turns_lane_started_at", "turns", ["lane", "started_at"])
    running = sa.text("running")
    op.create_index("uq_turns_running", "turns", ["lane"], unique=True, sqlite_where=running, postgresql_where=running)


def _talk() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("summary", sa.Text),
        sa.Column("summary_until", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index("ix_conversations_agent_id_created_at", "conversations", ["agent_id", "created_at"])
    op.execute(
        "INSERT INTO conversations (id, agent_id, title, created_at, summary_until) "
        "SELECT 'conv-' || substr(id, 7), id, '', created_at, 0 FROM agents WHERE id LIKE 'agent-%'"
    )
    op.create_table(
        "messages",
        sa.Column("id", row_number, nullable=False, autoincrement=True),
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("folded", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index("ix_messages_conversation_id_id", "messages", ["conversation_id", "id"])


def _chat() -> None:
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
        sa.Column("ended", sa.Boolean, nullable=False),
        sa.Column("read", sa.Boolean, nullable=False),
        sa.Column("cancel_asked", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chat_replies"),
    )
    op.create_index("ix_chat_replies_session_id", "chat_replies", ["session_id"])
    op.create_table(
        "chat_words",
        sa.Column("message_id", sa.String(24), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("message_id", "number", name="pk_chat_words"),
    )


def downgrade() -> None:
    chat = ("chat_words", "chat_replies", "chat_sessions")
    for table in (*chat, "messages", "conversations", "turns", "agent_tools", "blocks"):
        op.drop_table(table)
    with op.batch_alter_table("agents") as agents:
        agents.drop_column("model")
