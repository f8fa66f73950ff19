"""Whom an MCP session acts for, so that none acts for two people."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "mcp_session_persons",
        sa.Column("id_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("person_hash", sa.LargeBinary(32)),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id_sha256", name="pk_mcp_session_persons"),
    )
    # Nobody knows whose tokens the older sessions have seen: they are over, and clients open new ones.
    op.execute("DELETE FROM mcp_sessions")


def downgrade() -> None:
    op.drop_table("mcp_session_persons")
