"""Editors' sessions, the agent of each folder, and lasting permissions."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "editor_sessions",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("conversation_id", sa.String(128), nullable=False),
        sa.Column("cwd", sa.Text, nullable=False),
        sa.Column("directories", sa.Text, nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("model", sa.String(200)),
        sa.Column("effort", sa.String(20)),
        sa.Column("asks_memory", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("cost_usd", sa.Float),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_editor_sessions"),
    )
    op.create_index("ix_editor_sessions_user_id_updated_at_id", "editor_sessions", ["user_id", "updated_at", "id"])
    op.create_index("ix_editor_sessions_agent_id", "editor_sessions", ["agent_id"])
    op.create_table(
        "workspaces",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("cwd_sha256", sa.String(64), nullable=False),
        sa.Column("cwd", sa.Text, nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "cwd_sha256", name="pk_workspaces"),
    )
    op.create_table(
        "permissions",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("cwd_sha256", sa.String(64), nullable=False),
        sa.Column("scope_sha256", sa.String(64), nullable=False),
        sa.Column("cwd", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("allowed", sa.Boolean, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "cwd_sha256", "scope_sha256", name="pk_permissions"),
    )


def downgrade() -> None:
    for table in ("permissions", "workspaces", "editor_sessions"):
        op.drop_table(table)
