"""Schedules, the lines before agents, and what came due.

Times are microseconds since the epoch: the scheduler compares and moves a great many of them.
"""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text, text

from frontdesk.db.tables.shared import RowNumber, metadata

# The line before an agent, and a second one for what may run beside it. `due_us` is when somebody must look at the
# line, at the latest: whoever makes something due earlier lowers it, only who holds the row's lock raises it.
lanes = Table(
    "lanes",
    metadata,
    Column("name", String(140), primary_key=True),
    Column("serial", Boolean, nullable=False),
    Column("due_us", BigInteger),
    Index(None, "due_us", sqlite_where=text("due_us IS NOT NULL"), postgresql_where=text("due_us IS NOT NULL")),
    # Kept by name, as each is looked for: a million schedules fire a fifth quicker.
    sqlite_with_rowid=False,
)

WAITS_FOR_ITS_TIME = text("state = 'active' AND fire_us IS NOT NULL")
IS_OVER = text("state IN ('ended', 'cancelled')")
RESTS = text("state IN ('paused', 'cancelled', 'ended')")
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
    # On whose word it runs, as with turns.
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
    Index(None, "lane", "fire_us", "id", sqlite_where=WAITS_FOR_ITS_TIME, postgresql_where=WAITS_FOR_ITS_TIME),
    Index(None, "fire_us", "id", sqlite_where=WAITS_FOR_ITS_TIME, postgresql_where=WAITS_FOR_ITS_TIME),
    Index("ix_schedules_resting", "state", "id", sqlite_where=RESTS, postgresql_where=RESTS),
    Index(None, "agent_id", "id"),
    Index(
        None, "user_id", "id", sqlite_where=text("user_id IS NOT NULL"), postgresql_where=text("user_id IS NOT NULL")
    ),
    Index(None, "made_by", sqlite_where=text("made_by IS NOT NULL"), postgresql_where=text("made_by IS NOT NULL")),
    Index(None, "updated_us", sqlite_where=IS_OVER, postgresql_where=IS_OVER),
    sqlite_autoincrement=True,
)

UNDER_WAY = text("standing IN ('running', 'waiting')")
HAS_THE_LANE = text("serial AND standing = 'running'")
IS_DEAD = text("standing = 'dead'")
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
    Index("uq_occurrences_running", "lane", unique=True, sqlite_where=HAS_THE_LANE, postgresql_where=HAS_THE_LANE),
    Index(None, "lane", sqlite_where=UNDER_WAY, postgresql_where=UNDER_WAY),
    Index(None, "agent_id", "intended_us"),
    Index(None, "ended_us", sqlite_where=text("ended_us IS NOT NULL"), postgresql_where=text("ended_us IS NOT NULL")),
    Index("ix_occurrences_dead", "ended_us", sqlite_where=IS_DEAD, postgresql_where=IS_DEAD),
)

# The attempts at an occurrence that did not settle it; the last one is told by the occurrence's own row.
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

# Answers on their way to somebody's webhook.
IS_WAITING = text("state = 'waiting'")
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
    Index(None, "available_us", sqlite_where=IS_WAITING, postgresql_where=IS_WAITING),
    Index(None, "occurrence_id"),
)

# Whom a scope's prompts go to when nobody is named; the scope '' is everybody's.
agent_defaults = Table(
    "agent_defaults",
    metadata,
    Column("scope", String(250), primary_key=True),
    Column("agent_id", String(128), nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)
