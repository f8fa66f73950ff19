"""The house: keys, rate buckets, the journal and the built-in agents."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("user_id", sa.String(200)),
        sa.Column("scopes", sa.Text),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expires_at", moment),
        sa.Column("revoked_at", moment),
        sa.Column("last_used_at", moment),
        sa.Column("replaces", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
    op.create_table(
        "rate_buckets",
        sa.Column("key", sa.String(300), nullable=False),
        sa.Column("tokens", sa.Float, nullable=False),
        sa.Column("refilled_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rate_buckets"),
    )
    op.create_table(
        "journal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=True),
        sa.Column("at", moment, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("surface", sa.String(20), nullable=False),
        sa.Column("action", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("reason", sa.String(300)),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("user_id", sa.String(200)),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("verified", sa.Boolean, nullable=False),
        sa.Column("request_id", sa.String(128)),
        sa.Column("duration_us", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
    )
    op.create_index("ix_journal_at", "journal", ["at"])
    op.create_index("ix_journal_agent_id_id", "journal", ["agent_id", "id"])
    op.create_table(
        "agents",
        sa.Column("id", sa.String(128), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
    )


def downgrade() -> None:
    for table in ("agents", "journal", "rate_buckets", "api_keys"):
        op.drop_table(table)
