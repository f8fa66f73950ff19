"""What was done, by whom, and how it ended."""

from sqlalchemy import Boolean, Column, Index, Integer, String, Table, text

from frontdesk.db.tables.shared import Moment, RowNumber, metadata

# Few rows, and the ones that people look for.
WENT_WRONG = text("outcome <> 'ok'")

journal = Table(
    "journal",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("at", Moment, nullable=False),
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
    Index("ix_journal_wrong", "outcome", "id", sqlite_where=WENT_WRONG, postgresql_where=WENT_WRONG),
)
