"""What is kept for each person.

Every row names whose it is, first in its key: a row of one person cannot point at a row of another. On PostgreSQL all
tables but `people` are walled off by row (`db/walls.py`).
"""

from typing import Any

from sqlalchemy import Boolean, Column, Float, ForeignKeyConstraint, Index, Integer, String, Table, Text, text

from frontdesk.db.tables.shared import Moment, RowNumber, metadata

IS_RUNNING = text("end_at IS NULL")
IS_CHILD = text("parent_task_id IS NOT NULL")
IS_DUE = text("due_date IS NOT NULL")


def _whose() -> Column[Any]:
    return Column("user_id", String(200), primary_key=True)


def _id(name: str = "id") -> Column[Any]:
    return Column(name, String(36), primary_key=True)


def _belongs(to: str, column: str = "id") -> ForeignKeyConstraint:
    """To a row of the same person, with which it goes."""
    return ForeignKeyConstraint(["user_id", column], [f"{to}.user_id", f"{to}.id"], ondelete="CASCADE")


# Who there is, and where they are; nothing that they said. `number` names a person where a short name is wanted.
people = Table(
    "people",
    metadata,
    Column("number", RowNumber, primary_key=True, autoincrement=True),
    Column("user_id", String(200), nullable=False),
    Column("zone", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
    # How many of their items can be found, and how many of those are found by their words alone so far.
    Column("found", Integer, nullable=False),
    Column("unread", Integer, nullable=False),
    # The last number that an item of theirs was given there, and the number of the embedder that is to read them.
    Column("numbered", Integer, nullable=False, server_default="0"),
    Column("model", Integer),
    Index(None, "user_id", unique=True),
    Index(None, "unread", sqlite_where=text("unread > 0"), postgresql_where=text("unread > 0")),
)

categories = Table(
    "categories",
    metadata,
    _whose(),
    _id(),
    Column("name", String(50), nullable=False),
    # The name as it is looked for, whatever its case.
    Column("name_key", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("color", String(7), nullable=False),
    Column("icon", String(100), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index("uq_categories_user_id_name_key", "user_id", "name_key", unique=True),
)

# What tasks, memories, activities, routines and habits have in common; the first three have a row more of their own.
# `tags` is a tag a line, each with a line break before and after it.
timeline_items = Table(
    "timeline_items",
    metadata,
    _whose(),
    _id(),
    Column("type", String(10), nullable=False),
    Column("title", String(500), nullable=False),
    Column("description", Text, nullable=False),
    Column("start_time", Moment),
    Column("end_time", Moment),
    Column("is_time_consuming", Boolean, nullable=False),
    Column("render_on_timeline", Boolean, nullable=False),
    Column("category_id", String(36)),
    Column("tags", Text, nullable=False),
    Column("status", String(10), nullable=False),
    Column("priority", String(10), nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    ForeignKeyConstraint(["user_id", "category_id"], ["categories.user_id", "categories.id"]),
    Index(None, "user_id", "type", "created_at"),
    Index(None, "user_id", "start_time"),
    Index(None, "user_id", "created_at"),
    Index(None, "user_id", "updated_at"),
    Index(None, "user_id", "category_id"),
)

tasks = Table(
    "tasks",
    metadata,
    _whose(),
    _id(),
    Column("status", String(12), nullable=False),
    Column("due_date", Moment),
    Column("estimated_duration", Integer),
    Column("progress", Integer, nullable=False),
    Column("assignee", String(200)),
    Column("notes", Text, nullable=False),
    Column("completion_date", Moment),
    Column("parent_task_id", String(36)),
    Column("hierarchy_level", Integer, nullable=False),
    Column("hierarchy_path", Text, nullable=False),
    Column("subtask_order", Integer, nullable=False),
    Column("completion_behavior", String(30), nullable=False),
    Column("progress_calculation", String(20), nullable=False),
    Column("subtask_count", Integer, nullable=False),
    Column("completed_subtask_count", Integer, nullable=False),
    Column("tracked_minutes_total", Integer, nullable=False),
    Column("tracked_segments_count", Integer, nullable=False),
    Column("is_ai_task", Boolean, nullable=False),
    # The schedule that wakes an agent when this is due.
    Column("wake_schedule_id", Integer),
    _belongs("timeline_items"),
    _belongs("tasks", "parent_task_id"),
    Index(None, "user_id", "status"),
    Index(None, "user_id", "parent_task_id", sqlite_where=IS_CHILD, postgresql_where=IS_CHILD),
    Index(None, "user_id", "due_date", sqlite_where=IS_DUE, postgresql_where=IS_DUE),
)

task_relations = Table(
    "task_relations",
    metadata,
    _whose(),
    _id(),
    Column("task_id", String(36), nullable=False),
    Column("related_task_id", String(36), nullable=False),
    Column("relation", String(12), nullable=False),
    Column("created_at", Moment, nullable=False),
    _belongs("tasks", "task_id"),
    _belongs("tasks", "related_task_id"),
    Index("uq_task_relations", "user_id", "task_id", "related_task_id", "relation", unique=True),
    Index(None, "user_id", "related_task_id"),
)

memories = Table(
    "memories",
    metadata,
    _whose(),
    _id(),
    Column("memory_type", String(10), nullable=False),
    Column("status", String(10), nullable=False),
    Column("note", Text, nullable=False),
    Column("emotion_valence", Integer),
    Column("emotion_arousal", Integer),
    Column("energy_delta", Integer),
    Column("place_name", String(300)),
    Column("latitude", Float),
    Column("longitude", Float),
    Column("is_highlight", Boolean, nullable=False),
    Column("salience_score", Float),
    Column("captured_at", Moment, nullable=False),
    Column("happened_start", Moment),
    Column("happened_end", Moment),
    # What it takes the place of and what took its own; when it is no longer true; which agent wrote it down.
    Column("supersedes", String(36)),
    Column("superseded_by", String(36)),
    Column("expires_at", Moment),
    Column("agent_id", String(128)),
    _belongs("timeline_items"),
    Index(None, "user_id", "captured_at"),
)

memory_anchors = Table(
    "memory_anchors",
    metadata,
    _whose(),
    _id("memory_id"),
    _id("anchor_item_id"),
    Column("relation", String(20), primary_key=True),
    Column("local_start", Moment),
    Column("local_end", Moment),
    Column("weight", Float, nullable=False),
    Column("notes", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    _belongs("memories", "memory_id"),
    _belongs("timeline_items", "anchor_item_id"),
    Index(None, "user_id", "anchor_item_id"),
)

activities = Table(
    "activities",
    metadata,
    _whose(),
    _id(),
    Column("activity_type", String(12), nullable=False),
    Column("status", String(10), nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("duration_minutes", Integer),
    Column("mood_before", Integer),
    Column("mood_after", Integer),
    Column("energy_before", Integer),
    Column("energy_after", Integer),
    Column("satisfaction_level", Integer),
    Column("intensity_level", String(10), nullable=False),
    Column("location", String(300)),
    Column("weather", String(300)),
    Column("companions", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Column("insights", Text, nullable=False),
    Column("gratitude", Text, nullable=False),
    _belongs("timeline_items"),
    Index(None, "user_id", "started_at"),
)

time_entries = Table(
    "time_entries",
    metadata,
    _whose(),
    _id(),
    Column("timeline_item_id", String(36), nullable=False),
    Column("start_at", Moment, nullable=False),
    Column("end_at", Moment),
    Column("duration_minutes", Integer),
    Column("source", String(10), nullable=False),
    Column("note", Text, nullable=False),
    # What it was spent on, as that was called then.
    Column("item_type", String(10), nullable=False),
    Column("item_title", String(500), nullable=False),
    Column("category_id", String(36)),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    _belongs("timeline_items", "timeline_item_id"),
    Index("uq_time_entries_running", "user_id", unique=True, sqlite_where=IS_RUNNING, postgresql_where=IS_RUNNING),
    Index(None, "user_id", "start_at"),
    Index(None, "user_id", "timeline_item_id", "start_at"),
)

# What agents are to do. Whoever works on one holds a lease; `claims` counts those who did, so that one whose lease is
# over can be told apart from the next.
ai_tasks = Table(
    "ai_tasks",
    metadata,
    _whose(),
    _id(),
    Column("task_id", String(36), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("agent_name", String(200), nullable=False),
    Column("objective", Text, nullable=False),
    Column("deliverables", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("acceptance_criteria", Text, nullable=False),
    Column("task_type", String(20), nullable=False),
    Column("dependencies", Text, nullable=False),
    Column("mode", String(10), nullable=False),
    Column("guardrails", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("status", String(12), nullable=False),
    Column("priority", String(10), nullable=False),
    Column("progress_message", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("execution_result", Text, nullable=False),
    Column("estimated_cost_usd", Float),
    Column("actual_cost_usd", Float),
    Column("estimated_duration_min", Integer),
    Column("actual_duration_min", Integer),
    Column("is_local_task", Boolean, nullable=False),
    Column("executor_workspace_id", String(128)),
    Column("assigned_at", Moment),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    Column("due_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("leased_by", String(200)),
    Column("leased_until", Moment),
    Column("claims", Integer, nullable=False),
    _belongs("tasks", "task_id"),
    Index("uq_ai_tasks_task_agent", "user_id", "task_id", "agent_id", unique=True),
    Index(None, "user_id", "status", "assigned_at"),
    Index(None, "user_id", "agent_id", "status"),
)

ai_task_events = Table(
    "ai_task_events",
    metadata,
    _whose(),
    _id("ai_task_id"),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Moment, nullable=False),
    Column("from_status", String(12)),
    Column("to_status", String(12), nullable=False),
    Column("by_agent", String(128)),
    Column("note", Text, nullable=False),
    _belongs("ai_tasks", "ai_task_id"),
)
