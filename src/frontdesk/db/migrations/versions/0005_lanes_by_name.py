"""SQLite keeps lanes by their name, and not by a number that nobody asks for."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _kept(by_number=False)


def downgrade() -> None:
    _kept(by_number=True)


def _kept(*, by_number: bool) -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    op.drop_index("ix_lanes_due_us", "lanes")
    op.rename_table("lanes", "old_lanes")
    op.create_table(
        "lanes",
        sa.Column("name", sa.String(140), nullable=False),
        sa.Column("serial", sa.Boolean, nullable=False),
        sa.Column("due_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("name", name="pk_lanes"),
        sqlite_with_rowid=by_number,
    )
    op.execute("INSERT INTO lanes (name, serial, due_us) SELECT name, serial, due_us FROM old_lanes ORDER BY name")
    op.drop_table("old_lanes")
    op.create_index("ix_lanes_due_us", "lanes", ["due_us"], sqlite_where=sa.text("due_us IS NOT NULL"))
