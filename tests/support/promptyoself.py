"""PromptYoSelf database files, as its tables are described: written by hand, to be taken over."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

REMINDERS = """CREATE TABLE unified_reminders (
    id INTEGER PRIMARY KEY, message TEXT, next_run TEXT, status TEXT, active BOOLEAN, schedule_type TEXT,
    schedule_value TEXT, max_repetitions INTEGER, repetition_count INTEGER, last_run TEXT, agent_id TEXT,
    created_at TEXT)"""
SCHEDULES = """CREATE TABLE schedules (
    id INTEGER PRIMARY KEY, agent_id TEXT, prompt_text TEXT, schedule_type TEXT, schedule_value TEXT, next_run TEXT,
    active BOOLEAN, created_at TEXT, last_run TEXT, max_repetitions INTEGER, repetition_count INTEGER)"""

Rows = Sequence[Mapping[str, Any]]


def reminder(**values: Any) -> Mapping[str, Any]:
    """A row of the newer table, as good as any but for what is given."""
    row = {
        "message": "Daily report",
        "next_run": "2026-03-05 09:00:00",
        "status": "pending",
        "active": 1,
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
        "repetition_count": 0,
        "agent_id": "agent-1",
        "created_at": "2026-01-01 00:00:00",
    }
    return row | values


def schedule(**values: Any) -> Mapping[str, Any]:
    """A row of the older one."""
    row = {**reminder()}
    row["prompt_text"] = row.pop("message")
    del row["status"]
    return row | values


def write(path: Path, reminders: Rows | None = None, schedules: Rows | None = None) -> Path:
    """A file with these tables; None leaves a table out."""
    with closing(sqlite3.connect(path)) as database, database:
        for table, create, rows in (
            ("unified_reminders", REMINDERS, reminders),
            ("schedules", SCHEDULES, schedules),
        ):
            if rows is None:
                continue
            database.execute(create)
            for row in rows:
                places = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
    return path
