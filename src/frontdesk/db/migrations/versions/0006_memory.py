"""What is kept for each person: tasks, memories, activities, time, and their agents' work queue."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.row_security import enable_row_security

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

row_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
moment = sa.DateTime(timezone=True)
WALLED = [
    "categories",
    "timeline_items",
    "activities",
    "memories",
    "tasks",
    "time_entries",
    "ai_tasks",
    "memory_anchors",
    "task_relations",
    "ai_task_events",
]


def upgrade() -> None:
    _categories()
    _people()
    _timeline_items()
    _activities()
    _memories()
    _tasks()
    _time_entries()
    _ai_tasks()
    _memory_anchors()
    _task_relations()
    _ai_task_events()
    enable_row_security(op.get_bind(), WALLED, ["people"])


def downgrade() -> None:
    for table in reversed(WALLED):
        op.drop_table(table)
    op.drop_table("people")


def _categories() -> None:
    op.create_table(
        "categories",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("name_key", sa.String(200), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("color", sa.String(7), nullable=False),
        sa.Column("icon", sa.String(100), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_categories"),
    )
    op.create_index("uq_categories_user_id_name_key", "categories", ["user_id", "name_key"], unique=True)


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("number", row_number, autoincrement=True, nullable=False),
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("found", sa.Integer, nullable=False),
        sa.Column("unread", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_people"),
    )
    _some("ix_people_unread", "people", ["unread"], "unread > 0")
    op.create_index("ix_people_user_id", "people", ["user_id"], unique=True)


def _timeline_items() -> None:
    op.create_table(
        "timeline_items",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("type", sa.String(10), nullable=False),
        sa.Column("title", sa.String(500), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("start_time", moment),
        sa.Column("end_time", moment),
        sa.Column("is_time_consuming", sa.Boolean, nullable=False),
        sa.Column("render_on_timeline", sa.Boolean, nullable=False),
        sa.Column("category_id", sa.String(36)),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("priority", sa.String(10), nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.ForeignKeyConstraint(["user_id", "category_id"], ["categories.user_id", "categories.id"]),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_timeline_items"),
    )
    op.create_index("ix_timeline_items_user_id_category_id", "timeline_items", ["user_id", "category_id"])
    op.create_index("ix_timeline_items_user_id_created_at", "timeline_items", ["user_id", "created_at"])
    op.create_index("ix_timeline_items_user_id_type_created_at", "timeline_items", ["user_id", "type", "created_at"])
    op.create_index("ix_timeline_items_user_id_updated_at", "timeline_items", ["user_id", "updated_at"])


def _activities() -> None:
    op.create_table(
        "activities",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("activity_type", sa.String(12), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.Column("duration_minutes", sa.Integer),
        sa.Column("mood_before", sa.Integer),
        sa.Column("mood_after", sa.Integer),
        sa.Column("energy_before", sa.Integer),
        sa.Column("energy_after", sa.Integer),
        sa.Column("satisfaction_level", sa.Integer),
        sa.Column("intensity_level", sa.String(10), nullable=False),
        sa.Column("location", sa.String(300)),
        sa.Column("weather", sa.String(300)),
        sa.Column("companions", sa.Text, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("insights", sa.Text, nullable=False),
        sa.Column("gratitude", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["user_id", "id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_activities"),
    )
    op.create_index("ix_activities_user_id_started_at", "activities", ["user_id", "started_at"])


def _memories() -> None:
    op.create_table(
        "memories",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("memory_type", sa.String(10), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("emotion_valence", sa.Integer),
        sa.Column("emotion_arousal", sa.Integer),
        sa.Column("energy_delta", sa.Integer),
        sa.Column("place_name", sa.String(300)),
        sa.Column("latitude", sa.Float),
        sa.Column("longitude", sa.Float),
        sa.Column("is_highlight", sa.Boolean, nullable=False),
        sa.Column("salience_score", sa.Float),
        sa.Column("captured_at", moment, nullable=False),
        sa.Column("happened_start", moment),
        sa.Column("happened_end", moment),
        sa.Column("supersedes", sa.String(36)),
        sa.Column("superseded_by", sa.String(36)),
        sa.Column("expires_at", moment),
        sa.Column("agent_id", sa.String(128)),
        sa.ForeignKeyConstraint(["user_id", "id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_memories"),
    )
    op.create_index("ix_memories_user_id_captured_at", "memories", ["user_id", "captured_at"])


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("due_date", moment),
        sa.Column("estimated_duration", sa.Integer),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("assignee", sa.String(200)),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("completion_date", moment),
        sa.Column("parent_task_id", sa.String(36)),
        sa.Column("hierarchy_level", sa.Integer, nullable=False),
        sa.Column("hierarchy_path", sa.Text, nullable=False),
        sa.Column("subtask_order", sa.Integer, nullable=False),
        sa.Column("completion_behavior", sa.String(30), nullable=False),
        sa.Column("progress_calculation", sa.String(20), nullable=False),
        sa.Column("subtask_count", sa.Integer, nullable=False),
        sa.Column("completed_subtask_count", sa.Integer, nullable=False),
        sa.Column("tracked_minutes_total", sa.Integer, nullable=False),
        sa.Column("tracked_segments_count", sa.Integer, nullable=False),
        sa.Column("is_ai_task", sa.Boolean, nullable=False),
        sa.Column("wake_schedule_id", sa.Integer),
        sa.ForeignKeyConstraint(["user_id", "id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id", "parent_task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_tasks"),
    )
    _some("ix_tasks_user_id_due_date", "tasks", ["user_id", "due_date"], "due_date IS NOT NULL")
    _some("ix_tasks_user_id_parent_task_id", "tasks", ["user_id", "parent_task_id"], "parent_task_id IS NOT NULL")
    op.create_index("ix_tasks_user_id_status", "tasks", ["user_id", "status"])


def _time_entries() -> None:
    op.create_table(
        "time_entries",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("timeline_item_id", sa.String(36), nullable=False),
        sa.Column("start_at", moment, nullable=False),
        sa.Column("end_at", moment),
        sa.Column("duration_minutes", sa.Integer),
        sa.Column("source", sa.String(10), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("item_type", sa.String(10), nullable=False),
        sa.Column("item_title", sa.String(500), nullable=False),
        sa.Column("category_id", sa.String(36)),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "timeline_item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_time_entries"),
    )
    op.create_index("ix_time_entries_user_id_start_at", "time_entries", ["user_id", "start_at"])
    op.create_index(
        "ix_time_entries_user_id_timeline_item_id_start_at", "time_entries", ["user_id", "timeline_item_id", "start_at"]
    )
    _some("uq_time_entries_running", "time_entries", ["user_id"], "end_at IS NULL", unique=True)


def _ai_tasks() -> None:
    op.create_table(
        "ai_tasks",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("agent_name", sa.String(200), nullable=False),
        sa.Column("objective", sa.Text, nullable=False),
        sa.Column("deliverables", sa.Text, nullable=False),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("acceptance_criteria", sa.Text, nullable=False),
        sa.Column("task_type", sa.String(20), nullable=False),
        sa.Column("dependencies", sa.Text, nullable=False),
        sa.Column("mode", sa.String(10), nullable=False),
        sa.Column("guardrails", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("priority", sa.String(10), nullable=False),
        sa.Column("progress_message", sa.Text, nullable=False),
        sa.Column("error_message", sa.Text, nullable=False),
        sa.Column("execution_result", sa.Text, nullable=False),
        sa.Column("estimated_cost_usd", sa.Float),
        sa.Column("actual_cost_usd", sa.Float),
        sa.Column("estimated_duration_min", sa.Integer),
        sa.Column("actual_duration_min", sa.Integer),
        sa.Column("is_local_task", sa.Boolean, nullable=False),
        sa.Column("executor_workspace_id", sa.String(128)),
        sa.Column("assigned_at", moment),
        sa.Column("started_at", moment),
        sa.Column("completed_at", moment),
        sa.Column("due_at", moment),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.Column("leased_by", sa.String(200)),
        sa.Column("leased_until", moment),
        sa.Column("claims", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["user_id", "task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_ai_tasks"),
    )
    op.create_index("ix_ai_tasks_user_id_agent_id_status", "ai_tasks", ["user_id", "agent_id", "status"])
    op.create_index("ix_ai_tasks_user_id_status_assigned_at", "ai_tasks", ["user_id", "status", "assigned_at"])
    op.create_index("uq_ai_tasks_task_agent", "ai_tasks", ["user_id", "task_id", "agent_id"], unique=True)


def _memory_anchors() -> None:
    op.create_table(
        "memory_anchors",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("memory_id", sa.String(36), nullable=False),
        sa.Column("anchor_item_id", sa.String(36), nullable=False),
        sa.Column("relation", sa.String(20), nullable=False),
        sa.Column("local_start", moment),
        sa.Column("local_end", moment),
        sa.Column("weight", sa.Float, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "anchor_item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id", "memory_id"], ["memories.user_id", "memories.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "memory_id", "anchor_item_id", "relation", name="pk_memory_anchors"),
    )
    op.create_index("ix_memory_anchors_user_id_anchor_item_id", "memory_anchors", ["user_id", "anchor_item_id"])


def _task_relations() -> None:
    op.create_table(
        "task_relations",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("task_id", sa.String(36), nullable=False),
        sa.Column("related_task_id", sa.String(36), nullable=False),
        sa.Column("relation", sa.String(12), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.ForeignKeyConstraint(["user_id", "related_task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id", "task_id"], ["tasks.user_id", "tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "id", name="pk_task_relations"),
    )
    op.create_index("ix_task_relations_user_id_related_task_id", "task_relations", ["user_id", "related_task_id"])
    op.create_index(
        "uq_task_relations", "task_relations", ["user_id", "task_id", "related_task_id", "relation"], unique=True
    )


def _ai_task_events() -> None:
    op.create_table(
        "ai_task_events",
        sa.Column("user_id", sa.String(200), nullable=False),
        sa.Column("ai_task_id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("from_status", sa.String(12)),
        sa.Column("to_status", sa.String(12), nullable=False),
        sa.Column("by_agent", sa.String(128)),
        sa.Column("note", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["user_id", "ai_task_id"], ["ai_tasks.user_id", "ai_tasks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "ai_task_id", "number", name="pk_ai_task_events"),
    )


def _some(name: str, table: str, columns: list[str], which: str, *, unique: bool = False) -> None:
    """An index of some rows alone."""
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(which), postgresql_where=sa.text(which))
