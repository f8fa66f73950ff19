"""What stood in memory blocks before, and indexes for what pages list."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

moment = sa.DateTime(timezone=True)
number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INDEXES = (
    ("turns", ("started_at", "id")),
    ("turns", ("agent_id", "started_at", "id")),
    ("turns", ("stop", "started_at", "id")),
    ("turns", ("agent_id", "stop", "started_at", "id")),
    ("messages", ("turn_id", "id")),
)
OF_A_FEW = (
    ("ix_journal_wrong", "journal", ("outcome", "id"), "outcome <> 'ok'"),
    ("ix_schedules_fire_us_id", "schedules", ("fire_us", "id"), "state = 'active' AND fire_us IS NOT NULL"),
    ("ix_schedules_resting", "schedules", ("state", "id"), "state IN ('paused', 'cancelled', 'ended')"),
    ("ix_tools_changed", "tools", ("id",), "change <> ''"),
    ("ix_turns_waiting", "turns", ("started_at", "id"), "pending IS NOT NULL"),
    ("ix_turns_waiting_lane", "turns", ("lane", "conversation_id"), "pending IS NOT NULL"),
)
# Letta's turns kept what they had asked for when it was answered long ago, which shows in what came after.
SETTLE = """
UPDATE turns SET pending = NULL
WHERE pending IS NOT NULL AND lane LIKE 'letta:%' AND EXISTS (
    SELECT 1 FROM turns AS later
    WHERE later.lane = turns.lane AND later.conversation_id = turns.conversation_id
    AND later.started_at > turns.started_at
)
"""


def upgrade() -> None:
    op.create_table(
        "block_versions",
        sa.Column("id", number, nullable=False, autoincrement=True),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("until", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_block_versions"),
    )
    op.create_index("ix_block_versions_agent_id_label_id", "block_versions", ["agent_id", "label", "id"])
    for table, columns in INDEXES:
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
    for name, table, columns, where in OF_A_FEW:
        few = sa.text(where)
        op.create_index(name, table, list(columns), sqlite_where=few, postgresql_where=few)
    op.execute(SETTLE)


def downgrade() -> None:
    for name, table, _, _ in OF_A_FEW:
        op.drop_index(name, table)
    for table, columns in INDEXES:
        op.drop_index(f"ix_{table}_{'_'.join(columns)}", table)
    op.drop_table("block_versions")
