"""The tools room: servers, their tools and vectors, what was of use, who may use what, what agents were given."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.String(250), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    _servers()
    _tools()
    _learning()
    _holding()


def _servers() -> None:
    op.create_table(
        "tool_servers",
        sa.Column("name", sa.String(30), nullable=False),
        sa.Column("transport", sa.String(10), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("env", sa.Text, nullable=False),
        sa.Column("headers", sa.Text, nullable=False),
        sa.Column("user_token", sa.Boolean, nullable=False),
        sa.Column("oauth", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("hold_changes", sa.Boolean),
        sa.Column("timeout", sa.Float, nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("problems", sa.Text, nullable=False),
        sa.Column("changes", sa.Text, nullable=False),
        sa.Column("tools", sa.Integer, nullable=False),
        sa.Column("crawled_at", moment),
        sa.Column("answered_at", moment),
        sa.Column("declared_at", moment),
        sa.Column("leased_by", sa.String(200)),
        sa.Column("leased_until", moment),
        sa.PrimaryKeyConstraint("name", name="pk_tool_servers"),
    )


def _tools() -> None:
    op.create_table(
        "tools",
        sa.Column("id", sa.String(240), nullable=False),
        sa.Column("server", sa.String(30), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("api_name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("inputs", sa.Text, nullable=False),
        sa.Column("input_texts", sa.Text, nullable=False),
        sa.Column("annotations", sa.Text, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("standing", sa.String(10), nullable=False),
        sa.Column("change", sa.Text, nullable=False),
        sa.Column("other", sa.Text),
        sa.Column("refused", sa.String(80)),
        sa.Column("seal", sa.String(80), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("gone", sa.Boolean, nullable=False),
        sa.Column("changed_at", moment, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tools"),
    )
    op.create_index("uq_tools_api_name", "tools", ["api_name"], unique=True)
    op.create_index("ix_tools_name", "tools", ["name"])
    op.create_index("ix_tools_server_name", "tools", ["server", "name"])
    op.create_index("ix_tools_revision_id", "tools", ["revision", "id"])
    op.create_table(
        "tool_vectors",
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("model", "digest", name="pk_tool_vectors"),
    )


def _learning() -> None:
    op.create_table(
        "tool_uses",
        sa.Column("tenant", sa.String(250), nullable=False),
        sa.Column("tool_id", sa.String(240), nullable=False),
        sa.Column("query_digest", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("weight", sa.Float, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "tool_id", "query_digest", name="pk_tool_uses"),
    )
    op.create_index("ix_tool_uses_tenant_revision", "tool_uses", ["tenant", "revision"])
    op.create_index("ix_tool_uses_at", "tool_uses", ["at"])
    op.create_table(
        "tool_searches",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(250), nullable=False),
        sa.Column("caller", sa.String(400), nullable=False),
        sa.Column("query_digest", sa.String(64), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("offered", sa.Text, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tool_searches"),
    )
    op.create_index("ix_tool_searches_caller_at", "tool_searches", ["caller", "at"])
    op.create_index("ix_tool_searches_at", "tool_searches", ["at"])


def _holding() -> None:
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
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("registered_as", sa.String(200)),
        sa.Column("handed_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_handed_tools"),
    )


def downgrade() -> None:
    holding = ("handed_tools", "tool_turns", "held_tools", "tool_rights")
    for table in (*holding, "tool_searches", "tool_uses", "tool_vectors", "tools", "tool_servers", "counters"):
        op.drop_table(table)
