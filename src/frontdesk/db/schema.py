"""Defines every table, for both databases.

In the tables of personal records (from `categories` to `recall_cells`), keys begin with the person's id, so a row
cannot refer to another person's row. On PostgreSQL, row-level security protects these tables (`db/row_security.py`).

The `recall_*` tables are built from the items, and protected in the same way. `n` numbers a person's items in the order
in which they were first stored. A person's changes wait for each other, so numbers, words and cells always match.

Columns that end in `_us` are microseconds since the epoch: the scheduler compares and changes very many of them.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    false,
    text,
    true,
)
from typing_extensions import override


class UtcDateTime(TypeDecorator[datetime]):
    """A time, always in UTC: a time without a zone is refused, and times that are read have a zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @override
    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return value.astimezone(UTC)

    @override
    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite numbers rows itself only in an INTEGER column; PostgreSQL needs the wider type.
RowNumber = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Numbers that only grow. The transaction of a change increases its counter, and the row stays locked until the change
# is visible: a reader who has seen one number can read the later changes and misses none.
counters = Table(
    "counters",
    metadata,
    Column("name", String(250), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("model", String(200)),
    # The person who made it and so runs it; null if the operator made it.
    Column("owner", String(200)),
)

# For a `per_person` block, this value is what its agent's owner wrote: people without a row of their own see it.
blocks = Table(
    "blocks",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("label", String(100), primary_key=True),
    Column("value", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("size_limit", Integer, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("position", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("per_person", Boolean, nullable=False, server_default=false()),
    Column("people_write", Boolean, nullable=False, server_default=false()),
)

# The blocks that an agent has for one person. `user_id` is '' for turns without a person.
person_blocks = Table(
    "person_blocks",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("label", String(100), primary_key=True),
    Column("user_id", String(200), primary_key=True),
    Column("value", Text, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "user_id"),
)

# The earlier values of blocks, only the newest few of each. `user_id` is the person of the row, null for a shared
# block; for a shared block, `written_by` is the person whose turn changed it.
block_versions = Table(
    "block_versions",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("agent_id", String(128), nullable=False),
    Column("label", String(100), nullable=False),
    Column("value", Text, nullable=False),
    Column("until", UtcDateTime, nullable=False),
    Column("user_id", String(200)),
    Column("written_by", String(200)),
    Index(None, "agent_id", "label", "id"),
    Index(None, "user_id"),
    Index(None, "written_by"),
)

agent_tools = Table(
    "agent_tools",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("description", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("server", String(100), nullable=False),
    Column("remote_name", String(200), nullable=False),
    Column("needs_approval", Boolean, nullable=False),
    Column("attached_at", UtcDateTime, nullable=False),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("agent_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("title", String(200), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("summary", Text),
    Column("summary_until", BigInteger, nullable=False),
    Index(None, "agent_id", "created_at"),
)

TURN_IS_WAITING = text("pending IS NOT NULL")
# A turn of any host. `lane` is the name of its lock: one per conversation here, one per agent on Letta.
turns = Table(
    "turns",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("lane", String(140), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("running", Boolean, nullable=False),
    Column("stop", String(20)),
    Column("pending", Text),
    Column("owner", String(200), nullable=False),
    Column("leased_until", UtcDateTime, nullable=False),
    Column("cancel_asked", Boolean, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("failure", Text),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("otid", String(64)),
    # The turn's authority: the ids of credentials, and the scopes that limit them.
    Column("credentials", Text),
    Column("scopes", Text),
    Index(None, "lane", "started_at"),
    Index(None, "started_at", "id"),
    Index(None, "agent_id", "started_at", "id"),
    Index(None, "stop", "started_at", "id"),
    Index(None, "agent_id", "stop", "started_at", "id"),
    Index("ix_turns_waiting", "started_at", "id", sqlite_where=TURN_IS_WAITING, postgresql_where=TURN_IS_WAITING),
    Index(
        "ix_turns_waiting_lane",
        "lane",
        "conversation_id",
        sqlite_where=TURN_IS_WAITING,
        postgresql_where=TURN_IS_WAITING,
    ),
    Index("uq_turns_running", "lane", unique=True, sqlite_where=text("running"), postgresql_where=text("running")),
)

messages = Table(
    "messages",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("conversation_id", String(64), nullable=False),
    Column("turn_id", String(64), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("folded", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Index(None, "conversation_id", "id"),
    Index(None, "turn_id", "id"),
)

chat_sessions = Table(
    "chat_sessions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("user_id", String(200), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Index(None, "user_id", "created_at"),
)

# Replies that are streamed now or were a moment ago; with these, one replica streams a turn that runs on another.
chat_replies = Table(
    "chat_replies",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("session_id", String(32), nullable=False),
    Column("user_id", String(200), nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("touched_at", UtcDateTime, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("read", Boolean, nullable=False),
    Column("cancel_asked", Boolean, nullable=False),
    Index(None, "session_id"),
)

# Some events of a reply; `number` is the number of the first one.
chat_words = Table(
    "chat_words",
    metadata,
    Column("message_id", String(24), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("payload", Text, nullable=False),
)

# The tools that `/mcp/held` lists for Letta agents: a copy, because a tool may disappear from the catalogue.
handed_tools = Table(
    "handed_tools",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("server", String(100), nullable=False),
    Column("remote_name", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("registered_as", String(200)),
    Column("handed_at", UtcDateTime, nullable=False),
)

# Whom a Letta agent serves: one person (`user_id`), several (`shared`), or as a `template` nobody, because each person
# gets a copy of it. A row with `template_id` is such a copy; its `agent_id` is null until Letta has made it, which the
# process with the `claim` is doing.
letta_agents = Table(
    "letta_agents",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("agent_id", String(128)),
    Column("kind", String(20), nullable=False),
    Column("user_id", String(200)),
    Column("template_id", String(128)),
    Column("claim", String(32)),
    Column("claimed_until", UtcDateTime),
    Column("remark", Text, nullable=False),
    Column("noted_at", UtcDateTime, nullable=False),
    Index("uq_letta_agents_agent_id", "agent_id", unique=True),
    Index("uq_letta_agents_template_id_user_id", "template_id", "user_id", unique=True),
    Index(None, "user_id"),
)

# The names of a person's own keys are unique.
KEY_IS_OWN = text("own AND revoked_at IS NULL")

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("name", String(200), nullable=False),
    Column("agent_id", String(128)),
    Column("user_id", String(200)),
    Column("scopes", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Column("replaces", String(16)),
    Column("own", Boolean, nullable=False, server_default=false()),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    Column("preview", String(16)),
    Column("updated_at", UtcDateTime),
    Index("uq_api_keys_own_name", "user_id", "name", unique=True, sqlite_where=KEY_IS_OWN, postgresql_where=KEY_IS_OWN),
)

# A login request that a person has not answered yet, bound to that person's browser.
oauth_requests = Table(
    "oauth_requests",
    metadata,
    Column("id_sha256", LargeBinary(32), primary_key=True),
    Column("browser_sha256", LargeBinary(32), nullable=False),
    Column("client_id", String(200), nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("state", Text),
    Column("challenge", String(43), nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

# The access that a person gave a client: the code, and everything that was issued from it. `proof` is the credential
# with which the person logged in.
oauth_grants = Table(
    "oauth_grants",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("client_id", String(200), nullable=False),
    Column("user_id", String(200), nullable=False),
    Column("scopes", Text, nullable=False),
    Column("proof", Text, nullable=False),
    Column("email", Text),
    Column("name", Text),
    Column("code_sha256", LargeBinary(32), nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("challenge", String(43), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("code_expires_at", UtcDateTime, nullable=False),
    Column("code_used_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Index(None, "code_sha256", unique=True),
    Index(None, "user_id"),
)

oauth_tokens = Table(
    "oauth_tokens",
    metadata,
    Column("token_sha256", LargeBinary(32), primary_key=True),
    Column("grant_id", String(32), ForeignKey("oauth_grants.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("scopes", Text, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),
    Index(None, "grant_id"),
    Index(None, "expires_at"),
)

# A token that a client stored for its MCP session, encrypted so that only the session's id decrypts it.
mcp_sessions = Table(
    "mcp_sessions",
    metadata,
    Column("id_sha256", LargeBinary(32), primary_key=True),
    Column("sealed", Text, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

# The person for whom an MCP session acts; null if each of its calls must prove its own person.
mcp_session_persons = Table(
    "mcp_session_persons",
    metadata,
    Column("id_sha256", LargeBinary(32), primary_key=True),
    Column("person_hash", LargeBinary(32)),
    Column("expires_at", UtcDateTime, nullable=False),
)

buckets = Table(
    "rate_buckets",
    metadata,
    Column("key", String(300), primary_key=True),
    Column("tokens", Float, nullable=False),
    Column("refilled_at", Float, nullable=False),
)

# These rows are few, and people search for them most.
IS_NOT_OK = text("outcome <> 'ok'")

journal = Table(
    "journal",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("surface", String(20), nullable=False),
    Column("action", String(200), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reason", String(300)),
    Column("agent_id", String(128)),
    Column("user_id", String(200)),
    Column("source", String(20), nullable=False),
    Column("verified", Boolean, nullable=False),
    Column("request_id", String(128)),
    Column("duration_us", Integer, nullable=False),
    Index(None, "at"),
    Index(None, "agent_id", "id"),
    Index("ix_journal_wrong", "outcome", "id", sqlite_where=IS_NOT_OK, postgresql_where=IS_NOT_OK),
)

TIMER_IS_RUNNING = text("end_at IS NULL")
TASK_IS_SUBTASK = text("parent_task_id IS NOT NULL")
TASK_HAS_DUE_DATE = text("due_date IS NOT NULL")


def _user_id_column() -> Column[Any]:
    return Column("user_id", String(200), primary_key=True)


def _id_column(name: str = "id") -> Column[Any]:
    return Column(name, String(36), primary_key=True)


def _reference_within_person(to: str, column: str = "id") -> ForeignKeyConstraint:
    """A foreign key to a row of the same person; deleting that row deletes this one."""
    return ForeignKeyConstraint(["user_id", column], [f"{to}.user_id", f"{to}.id"], ondelete="CASCADE")


# The people and their time zones, without any content. `number` is a short name for a person.
people = Table(
    "people",
    metadata,
    Column("number", RowNumber, primary_key=True, autoincrement=True),
    Column("user_id", String(200), nullable=False),
    Column("zone", String(64), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    # How many of a person's items can be found, and how many of those have no vector yet.
    Column("found", Integer, nullable=False),
    Column("unread", Integer, nullable=False),
    # The highest `n` of the person's items, and the number of the embedder that is to embed them.
    Column("numbered", Integer, nullable=False, server_default="0"),
    Column("model", Integer),
    Index(None, "user_id", unique=True),
    Index(None, "unread", sqlite_where=text("unread > 0"), postgresql_where=text("unread > 0")),
)

categories = Table(
    "categories",
    metadata,
    _user_id_column(),
    _id_column(),
    Column("name", String(50), nullable=False),
    # The name in the form that is searched, without case.
    Column("name_key", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("color", String(7), nullable=False),
    Column("icon", String(100), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index("uq_categories_user_id_name_key", "user_id", "name_key", unique=True),
)

# The common part of tasks, memories, activities, routines and habits; the first three also have a row in their own
# table. `tags` has one tag per line, each with a line break before and after it.
timeline_items = Table(
    "timeline_items",
    metadata,
    _user_id_column(),
    _id_column(),
    Column("type", String(10), nullable=False),
    Column("title", String(500), nullable=False),
    Column("description", Text, nullable=False),
    Column("start_time", UtcDateTime),
    Column("end_time", UtcDateTime),
    Column("is_time_consuming", Boolean, nullable=False),
    Column("render_on_timeline", Boolean, nullable=False),
    Column("category_id", String(36)),
    Column("tags", Text, nullable=False),
    Column("status", String(10), nullable=False),
    Column("priority", String(10), nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
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
    _user_id_column(),
    _id_column(),
    Column("status", String(12), nullable=False),
    Column("due_date", UtcDateTime),
    Column("estimated_duration", Integer),
    Column("progress", Integer, nullable=False),
    Column("assignee", String(200)),
    Column("notes", Text, nullable=False),
    Column("completion_date", UtcDateTime),
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
    # The schedule that wakes an agent when the task is due.
    Column("wake_schedule_id", Integer),
    _reference_within_person("timeline_items"),
    _reference_within_person("tasks", "parent_task_id"),
    Index(None, "user_id", "status"),
    Index(None, "user_id", "parent_task_id", sqlite_where=TASK_IS_SUBTASK, postgresql_where=TASK_IS_SUBTASK),
    Index(None, "user_id", "due_date", sqlite_where=TASK_HAS_DUE_DATE, postgresql_where=TASK_HAS_DUE_DATE),
)

task_relations = Table(
    "task_relations",
    metadata,
    _user_id_column(),
    _id_column(),
    Column("task_id", String(36), nullable=False),
    Column("related_task_id", String(36), nullable=False),
    Column("relation", String(12), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    _reference_within_person("tasks", "task_id"),
    _reference_within_person("tasks", "related_task_id"),
    Index("uq_task_relations", "user_id", "task_id", "related_task_id", "relation", unique=True),
    Index(None, "user_id", "related_task_id"),
)

memories = Table(
    "memories",
    metadata,
    _user_id_column(),
    _id_column(),
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
    Column("captured_at", UtcDateTime, nullable=False),
    Column("happened_start", UtcDateTime),
    Column("happened_end", UtcDateTime),
    # The memory that this one replaces, the one that replaced it, when it stops being true, and the agent that wrote
    # it.
    Column("supersedes", String(36)),
    Column("superseded_by", String(36)),
    Column("expires_at", UtcDateTime),
    Column("agent_id", String(128)),
    _reference_within_person("timeline_items"),
    Index(None, "user_id", "captured_at"),
)

memory_anchors = Table(
    "memory_anchors",
    metadata,
    _user_id_column(),
    _id_column("memory_id"),
    _id_column("anchor_item_id"),
    Column("relation", String(20), primary_key=True),
    Column("local_start", UtcDateTime),
    Column("local_end", UtcDateTime),
    Column("weight", Float, nullable=False),
    Column("notes", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    _reference_within_person("memories", "memory_id"),
    _reference_within_person("timeline_items", "anchor_item_id"),
    Index(None, "user_id", "anchor_item_id"),
)

activities = Table(
    "activities",
    metadata,
    _user_id_column(),
    _id_column(),
    Column("activity_type", String(12), nullable=False),
    Column("status", String(10), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
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
    _reference_within_person("timeline_items"),
    Index(None, "user_id", "started_at"),
)

time_entries = Table(
    "time_entries",
    metadata,
    _user_id_column(),
    _id_column(),
    Column("timeline_item_id", String(36), nullable=False),
    Column("start_at", UtcDateTime, nullable=False),
    Column("end_at", UtcDateTime),
    Column("duration_minutes", Integer),
    Column("source", String(10), nullable=False),
    Column("note", Text, nullable=False),
    # The item on which the time was spent, as it was named then.
    Column("item_type", String(10), nullable=False),
    Column("item_title", String(500), nullable=False),
    Column("category_id", String(36)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    _reference_within_person("timeline_items", "timeline_item_id"),
    Index(
        "uq_time_entries_running",
        "user_id",
        unique=True,
        sqlite_where=TIMER_IS_RUNNING,
        postgresql_where=TIMER_IS_RUNNING,
    ),
    Index(None, "user_id", "start_at"),
    Index(None, "user_id", "timeline_item_id", "start_at"),
)

# The work for agents. An agent that works on a task holds a lease; `claims` counts the leases, so that an expired lease
# can be told apart from the next one.
ai_tasks = Table(
    "ai_tasks",
    metadata,
    _user_id_column(),
    _id_column(),
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
    Column("assigned_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("completed_at", UtcDateTime),
    Column("due_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("leased_by", String(200)),
    Column("leased_until", UtcDateTime),
    Column("claims", Integer, nullable=False),
    _reference_within_person("tasks", "task_id"),
    Index("uq_ai_tasks_task_agent", "user_id", "task_id", "agent_id", unique=True),
    Index(None, "user_id", "status", "assigned_at"),
    Index(None, "user_id", "agent_id", "status"),
)

ai_task_events = Table(
    "ai_task_events",
    metadata,
    _user_id_column(),
    _id_column("ai_task_id"),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("from_status", String(12)),
    Column("to_status", String(12), nullable=False),
    Column("by_agent", String(128)),
    Column("note", Text, nullable=False),
    _reference_within_person("ai_tasks", "ai_task_id"),
)

TERM_LENGTH = 60


def _number_column(name: str) -> Column[Any]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


# `model` is the number of the embedder of the vector, or 0 while the text has no vector and no cell.
recall_docs = Table(
    "recall_docs",
    metadata,
    _user_id_column(),
    _number_column("n"),
    Column("item_id", String(36), nullable=False),
    Column("text", Text, nullable=False),
    Column("model", Integer, nullable=False),
    Column("cell", Integer),
    Column("vector", LargeBinary),
    ForeignKeyConstraint(["user_id", "item_id"], ["timeline_items.user_id", "timeline_items.id"], ondelete="CASCADE"),
    Index(None, "user_id", "item_id", unique=True),
    Index(None, "user_id", "model", "n"),
)

# The terms of the newest items with their weights, until they are merged into `recall_words`.
recall_loose = Table(
    "recall_loose",
    metadata,
    _user_id_column(),
    _number_column("n"),
    Column("words", Text, nullable=False),
)

# The items that contain a term: `docs` has their positions within a block of numbers, and the term's weight in each.
recall_words = Table(
    "recall_words",
    metadata,
    _user_id_column(),
    Column("term", String(TERM_LENGTH), primary_key=True),
    _number_column("block"),
    Column("docs", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Vectors of similar meaning are in one cell, and similar cells in one region; a search reads the most likely ones.
recall_regions = Table(
    "recall_regions",
    metadata,
    _user_id_column(),
    _number_column("region"),
    Column("model", Integer, nullable=False),
    Column("centre", LargeBinary, nullable=False),
    Column("cells", LargeBinary, nullable=False),
)

recall_cells = Table(
    "recall_cells",
    metadata,
    _user_id_column(),
    _number_column("cell"),
    Column("model", Integer, nullable=False),
    Column("vectors", LargeBinary, nullable=False),
)

# The queue of an agent, and a second one for work that may run in parallel. `due_us` is the latest time at which the
# queue must be checked: anybody may lower it, but only the holder of the row's lock may raise it.
lanes = Table(
    "lanes",
    metadata,
    Column("name", String(140), primary_key=True),
    Column("serial", Boolean, nullable=False),
    Column("due_us", BigInteger),
    Index(None, "due_us", sqlite_where=text("due_us IS NOT NULL"), postgresql_where=text("due_us IS NOT NULL")),
    # Stored in the order of names, by which rows are searched: a million schedules fire a fifth faster.
    sqlite_with_rowid=False,
)

SCHEDULE_IS_WAITING = text("state = 'active' AND fire_us IS NOT NULL")
SCHEDULE_IS_OVER = text("state IN ('ended', 'cancelled')")
SCHEDULE_IS_RESTING = text("state IN ('paused', 'cancelled', 'ended')")
schedules = Table(
    "schedules",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("agent_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("lane", String(140), nullable=False),
    Column("prompt", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("value", Text, nullable=False),
    Column("zone", String(64), nullable=False),
    Column("start_us", BigInteger),
    Column("end_us", BigInteger),
    Column("jitter_s", Integer, nullable=False),
    Column("max_repetitions", Integer),
    Column("overlap", String(10), nullable=False),
    Column("misfire", String(10), nullable=False),
    Column("max_late_s", Integer),
    Column("attempts", Integer, nullable=False),
    Column("words", Text),
    Column("webhook", Text),
    Column("timeline", Boolean, nullable=False),
    Column("conversation_id", String(128)),
    Column("made_by", String(64)),
    # The schedule's authority, as in `turns`.
    Column("credentials", Text),
    Column("scopes", Text),
    Column("state", String(10), nullable=False),
    Column("intended_us", BigInteger),
    Column("fire_us", BigInteger),
    Column("fired", Integer, nullable=False),
    Column("last_us", BigInteger),
    Column("last_ended_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Index(None, "lane", "fire_us", "id", sqlite_where=SCHEDULE_IS_WAITING, postgresql_where=SCHEDULE_IS_WAITING),
    Index(None, "fire_us", "id", sqlite_where=SCHEDULE_IS_WAITING, postgresql_where=SCHEDULE_IS_WAITING),
    Index(
        "ix_schedules_resting", "state", "id", sqlite_where=SCHEDULE_IS_RESTING, postgresql_where=SCHEDULE_IS_RESTING
    ),
    Index(None, "agent_id", "id"),
    Index(
        None, "user_id", "id", sqlite_where=text("user_id IS NOT NULL"), postgresql_where=text("user_id IS NOT NULL")
    ),
    Index(None, "made_by", sqlite_where=text("made_by IS NOT NULL"), postgresql_where=text("made_by IS NOT NULL")),
    Index(None, "updated_us", sqlite_where=SCHEDULE_IS_OVER, postgresql_where=SCHEDULE_IS_OVER),
    sqlite_autoincrement=True,
)

RUN_IS_ACTIVE = text("standing IN ('running', 'waiting')")
RUN_HOLDS_QUEUE = text("serial AND standing = 'running'")
RUN_IS_DEAD = text("standing = 'dead'")
occurrences = Table(
    "occurrences",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("schedule_id", BigInteger, nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("user_id", String(200)),
    Column("lane", String(140), nullable=False),
    Column("serial", Boolean, nullable=False),
    Column("intended_us", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("manual", Boolean, nullable=False),
    Column("standing", String(10), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("in_doubt", Boolean, nullable=False),
    Column("owner", String(200)),
    Column("fence", BigInteger, nullable=False),
    Column("leased_until_us", BigInteger),
    Column("available_us", BigInteger),
    Column("created_us", BigInteger, nullable=False),
    Column("started_us", BigInteger),
    Column("ended_us", BigInteger),
    Column("reason", Text),
    Column("answer", Text),
    Index("uq_occurrences_time", "schedule_id", "intended_us", unique=True),
    Index(
        "uq_occurrences_running", "lane", unique=True, sqlite_where=RUN_HOLDS_QUEUE, postgresql_where=RUN_HOLDS_QUEUE
    ),
    Index(None, "lane", sqlite_where=RUN_IS_ACTIVE, postgresql_where=RUN_IS_ACTIVE),
    Index(None, "agent_id", "intended_us"),
    Index(None, "ended_us", sqlite_where=text("ended_us IS NOT NULL"), postgresql_where=text("ended_us IS NOT NULL")),
    Index("ix_occurrences_dead", "ended_us", sqlite_where=RUN_IS_DEAD, postgresql_where=RUN_IS_DEAD),
)

# The attempts at an occurrence that did not settle it; the occurrence's own row has the last attempt.
attempts = Table(
    "attempts",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("occurrence_id", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    Index(None, "occurrence_id", "id"),
)

# Answers that are still to be sent to a webhook.
FORWARD_IS_WAITING = text("state = 'waiting'")
forwards = Table(
    "forwards",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("occurrence_id", String(64), nullable=False),
    Column("url", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("available_us", BigInteger),
    Column("owner", String(200)),
    Column("leased_until_us", BigInteger),
    Column("state", String(10), nullable=False),
    Column("error", Text),
    Index(None, "available_us", sqlite_where=FORWARD_IS_WAITING, postgresql_where=FORWARD_IS_WAITING),
    Index(None, "occurrence_id"),
)

# The agent that gets a scope's prompts when none is named; the scope '' is for everybody.
agent_defaults = Table(
    "agent_defaults",
    metadata,
    Column("scope", String(250), primary_key=True),
    Column("agent_id", String(128), nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)

tool_servers = Table(
    "tool_servers",
    metadata,
    Column("name", String(30), primary_key=True),
    Column("transport", String(10), nullable=False),
    Column("url", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("env", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("user_token", Boolean, nullable=False),
    Column("oauth", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("origin", String(10), nullable=False),
    Column("hold_changes", Boolean),
    Column("timeout", Float, nullable=False),
    Column("status", String(10), nullable=False),
    Column("error", Text, nullable=False),
    Column("problems", Text, nullable=False),
    Column("changes", Text, nullable=False),
    Column("tools", Integer, nullable=False),
    Column("crawled_at", UtcDateTime),
    Column("answered_at", UtcDateTime),
    Column("declared_at", UtcDateTime),
    Column("leased_by", String(200)),
    Column("leased_until", UtcDateTime),
)

TOOL_HAS_CHANGE = text("change <> ''")
# `other` is the version not in use: the new version of a tool that is held back, or the old one of a changed tool.
tools = Table(
    "tools",
    metadata,
    Column("id", String(240), primary_key=True),
    Column("server", String(30), nullable=False),
    Column("name", String(200), nullable=False),
    Column("api_name", String(64), nullable=False),
    Column("description", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("input_texts", Text, nullable=False),
    Column("annotations", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("standing", String(10), nullable=False),
    Column("change", Text, nullable=False),
    Column("other", Text),
    Column("refused", String(80)),
    Column("seal", String(80), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Index("uq_tools_api_name", "api_name", unique=True),
    Index("ix_tools_changed", "id", sqlite_where=TOOL_HAS_CHANGE, postgresql_where=TOOL_HAS_CHANGE),
    Index(None, "name"),
    Index(None, "server", "name"),
    Index(None, "revision", "id"),
)

tool_vectors = Table(
    "tool_vectors",
    metadata,
    Column("model", String(200), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("vector", LargeBinary, nullable=False),
)

# The query with which a useful tool was found: only its vector, never its text.
tool_uses = Table(
    "tool_uses",
    metadata,
    Column("tenant", String(250), primary_key=True),
    Column("tool_id", String(240), primary_key=True),
    Column("query_digest", String(64), primary_key=True),
    Column("model", String(200), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("weight", Float, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Index(None, "tenant", "revision"),
    Index(None, "at"),
)

tool_searches = Table(
    "tool_searches",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(250), nullable=False),
    Column("caller", String(400), nullable=False),
    Column("query_digest", String(64), nullable=False),
    Column("model", String(200), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("offered", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index(None, "caller", "at"),
    Index(None, "at"),
)

tool_rights = Table(
    "tool_rights",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("subject", String(250), nullable=False),
    Column("effect", String(10), nullable=False),
    Column("pattern", String(300), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("uq_tool_rights_rule", "subject", "effect", "pattern", unique=True),
)

# The tools that Frontdesk itself attached to agents, not those that people attached.
held_tools = Table(
    "held_tools",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("tool_id", String(240), primary_key=True),
    Column("attached_by", String(20), nullable=False),
    Column("attached_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),
    Index(None, "tool_id"),
)

# Which process is changing an agent's tools now; only one may do so among all replicas.
tool_turns = Table(
    "tool_turns",
    metadata,
    Column("agent_id", String(128), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("leased_until", UtcDateTime, nullable=False),
)

# `user_id` is '' if there is no person, because the next two tables have it in their keys.
editor_sessions = Table(
    "editor_sessions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(200), nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("cwd", Text, nullable=False),
    Column("directories", Text, nullable=False),
    Column("title", String(200), nullable=False),
    Column("mode", String(20), nullable=False),
    Column("model", String(200)),
    Column("effort", String(20)),
    Column("asks_memory", Boolean, nullable=False, server_default=false()),
    Column("cost_usd", Float),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "user_id", "updated_at", "id"),
    Index(None, "agent_id"),
)

# A path may be too long for an index, so its digest is the key.
workspaces = Table(
    "workspaces",
    metadata,
    Column("user_id", String(200), primary_key=True),
    Column("cwd_sha256", String(64), primary_key=True),
    Column("cwd", Text, nullable=False),
    Column("agent_id", String(128), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

permissions = Table(
    "permissions",
    metadata,
    Column("user_id", String(200), primary_key=True),
    Column("cwd_sha256", String(64), primary_key=True),
    Column("scope_sha256", String(64), primary_key=True),
    Column("cwd", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("allowed", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

__all__ = [
    "RUN_IS_ACTIVE",
    "SCHEDULE_IS_OVER",
    "SCHEDULE_IS_WAITING",
    "UtcDateTime",
    "activities",
    "agent_defaults",
    "agent_tools",
    "agents",
    "ai_task_events",
    "ai_tasks",
    "api_keys",
    "attempts",
    "block_versions",
    "blocks",
    "buckets",
    "categories",
    "chat_replies",
    "chat_sessions",
    "chat_words",
    "conversations",
    "counters",
    "editor_sessions",
    "forwards",
    "handed_tools",
    "held_tools",
    "journal",
    "lanes",
    "letta_agents",
    "mcp_session_persons",
    "mcp_sessions",
    "memories",
    "memory_anchors",
    "messages",
    "metadata",
    "oauth_grants",
    "oauth_requests",
    "oauth_tokens",
    "occurrences",
    "people",
    "permissions",
    "person_blocks",
    "recall_cells",
    "recall_docs",
    "recall_loose",
    "recall_regions",
    "recall_words",
    "schedules",
    "task_relations",
    "tasks",
    "time_entries",
    "timeline_items",
    "tool_rights",
    "tool_searches",
    "tool_servers",
    "tool_turns",
    "tool_uses",
    "tool_vectors",
    "tools",
    "turns",
    "workspaces",
]
