"""On whose word turns are taken and schedules made: the credentials, and the scopes that bound them.

What stands there already has neither, and keeps the rights that it had.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLES = ("turns", "schedules")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("credentials", sa.Text))
        op.add_column(table, sa.Column("scopes", sa.Text))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "scopes")
        op.drop_column(table, "credentials")
