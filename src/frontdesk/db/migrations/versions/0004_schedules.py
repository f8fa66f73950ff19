"""The schedule: lanes, schedules, their occurrences and attempts, answers to be forwarded, default agents."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

row_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _lanes()
    _schedules()
    _occurrences()
    _attempts()
    _forwards()
    op.add_column("turns", sa.Column("otid", sa.String(64)))
    op.create_table(
        "agent_defaults",
        sa.Column("scope", sa.String(250), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_agent_defaults"),
    )


def _lanes() -> None:
    op.create_table(
        "lanes",
        sa.Column("name", sa.String(140), nullable=False),
        sa.Column("serial", sa.Boolean, nullable=False),
        sa.Column("due_us", sa.BigInteger),
        sa.PrimaryKeyConstraint("name", name="pk_lanes"),
    )
    _index("ix_lanes_due_us", "lanes", ["due_us"], "due_us IS NOT NULL")


def _schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("lane", sa.String(140), nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("start_us", sa.BigInteger),
        sa.Column("end_us", sa.BigInteger),
        sa.Column("jitter_s", sa.Integer, nullable=False),
        sa.Column("max_repetitions", sa.Integer),
        sa.Column("overlap", sa.String(10), nullable=False),
        sa.Column("misfire", sa.String(10), nullable=False),
        sa.Column("max_late_s", sa.Integer),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("words", sa.Text),
        sa.Column("webhook", sa.Text),
        sa.Column("timeline", sa.Boolean, nullable=False),
        sa.Column("conversation_id", sa.String(128)),
        sa.Column("made_by", sa.String(64)),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("intended_us", sa.BigInteger),
        sa.Column("fire_us", sa.BigInteger),
        sa.Column("fired", sa.Integer, nullable=False),
        sa.Column("last_us", sa.BigInteger),
        sa.Column("last_ended_us", sa.BigInteger),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_schedules"),
        sqlite_autoincrement=True,
    )
    waits = "state = 'active' AND fire_us IS NOT NULL"
    _index("ix_schedules_lane_fire_us_id", "schedules", ["lane", "fire_us", "id"], waits)
    op.create_index("ix_schedules_agent_id_id", "schedules", ["agent_id", "id"])
    _index("ix_schedules_user_id_id", "schedules", ["user_id", "id"], "user_id IS NOT NULL")
    _index("ix_schedules_made_by", "schedules", ["made_by"], "made_by IS NOT NULL")
    _index("ix_schedules_updated_us", "schedules", ["updated_us"], "state IN ('ended', 'cancelled')")


def _occurrences() -> None:
    op.create_table(
        "occurrences",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("schedule_id", sa.BigInteger, nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(200)),
        sa.Column("lane", sa.String(140), nullable=False),
        sa.Column("serial", sa.Boolean, nullable=False),
        sa.Column("intended_us", sa.BigInteger, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("manual", sa.Boolean, nullable=False),
        sa.Column("standing", sa.String(10), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lost", sa.Integer, nullable=False),
        sa.Column("in_doubt", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String(200)),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("leased_until_us", sa.BigInteger),
        sa.Column("available_us", sa.BigInteger),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("started_us", sa.BigInteger),
        sa.Column("ended_us", sa.BigInteger),
        sa.Column("reason", sa.Text),
        sa.Column("answer", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_occurrences"),
    )
    op.create_index("uq_occurrences_time", "occurrences", ["schedule_id", "intended_us"], unique=True)
    _index("uq_occurrences_running", "occurrences", ["lane"], "serial AND standing = 'running'", unique=True)
    _index("ix_occurrences_lane", "occurrences", ["lane"], "standing IN ('running', 'waiting')")
    op.create_index("ix_occurrences_agent_id_intended_us", "occurrences", ["agent_id", "intended_us"])
    _index("ix_occurrences_ended_us", "occurrences", ["ended_us"], "ended_us IS NOT NULL")
    _index("ix_occurrences_dead", "occurrences", ["ended_us"], "standing = 'dead'")


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("occurrence_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("ended_us", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
    )
    op.create_index("ix_attempts_occurrence_id_id", "attempts", ["occurrence_id", "id"])


def _forwards() -> None:
    op.create_table(
        "forwards",
        sa.Column("id", row_number, autoincrement=True, nullable=False),
        sa.Column("occurrence_id", sa.String(64), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("available_us", sa.BigInteger),
        sa.Column("owner", sa.String(200)),
        sa.Column("leased_until_us", sa.BigInteger),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_forwards"),
    )
    _index("ix_forwards_available_us", "forwards", ["available_us"], "state = 'waiting'")
    op.create_index("ix_forwards_occurrence_id", "forwards", ["occurrence_id"])


def _index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    part = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=part, postgresql_where=part)


def downgrade() -> None:
    op.drop_column("turns", "otid")
    for table in ("agent_defaults", "forwards", "attempts", "occurrences", "schedules", "lanes"):
        op.drop_table(table)
