"""People's own keys and logins."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
is_own = sa.text("own AND revoked_at IS NULL")


def upgrade() -> None:
    _keys()
    _logins()
    op.create_table(
        "mcp_sessions",
        sa.Column("id_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id_sha256", name="pk_mcp_sessions"),
    )


def _keys() -> None:
    op.add_column("api_keys", sa.Column("own", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("api_keys", sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("api_keys", sa.Column("preview", sa.String(16)))
    op.add_column("api_keys", sa.Column("updated_at", moment))
    op.create_index(
        "uq_api_keys_own_name",
        "api_keys",
        ["user_id", "name"],
        unique=True,
        sqlite_where=is_own,
        postgresql_where=is_own,
    )


def _logins() -> None:
    op.create_table(
        "oauth_requests",
        sa.Column("id_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("browser_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("client_id", sa.String(200), nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("state", sa.Text),
        sa.Column("challenge", sa.String(43), nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id_sha256", name="pk_oauth_requests"),
    )
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("client_id", sa.String(200), nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("proof", sa.Text, nullable=False),
        sa.Column("email", sa.Text),
        sa.Column("name", sa.Text),
        sa.Column("code_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
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
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("used_at", moment),
        sa.ForeignKeyConstraint(["grant_id"], ["oauth_grants.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_oauth_tokens"),
    )
    op.create_index("ix_oauth_tokens_grant_id", "oauth_tokens", ["grant_id"])
    op.create_index("ix_oauth_tokens_expires_at", "oauth_tokens", ["expires_at"])


def downgrade() -> None:
    for table in ("mcp_sessions", "oauth_tokens", "oauth_grants", "oauth_requests"):
        op.drop_table(table)
    op.drop_index("uq_api_keys_own_name", "api_keys")
    for column in ("updated_at", "preview", "is_active", "own"):
        op.drop_column("api_keys", column)
