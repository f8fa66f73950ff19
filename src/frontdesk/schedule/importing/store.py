"""Reads the schedules out of a PromptYoSelf database file, which it never changes."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from frontdesk.errors import Invalid, NotFound
from frontdesk.schedule.importing.model import TABLES, Row

# By which name each of our fields goes there; the first one that a table has counts.
COLUMNS: Mapping[str, Sequence[str]] = {
    "id": ("id",),
    "agent_id": ("agent_id",),
    "prompt": ("message", "prompt_text", "prompt"),
    "kind": ("schedule_type",),
    "value": ("schedule_value",),
    "next_run": ("next_run",),
    "active": ("active",),
    "status": ("status",),
    "max_repetitions": ("max_repetitions",),
    "repetition_count": ("repetition_count",),
    "last_run": ("last_run",),
    "created_at": ("created_at",),
}
NEEDED = ("id", "agent_id", "prompt", "kind", "value", "next_run")
WAIT_SECONDS = 5


def read(path: Path) -> Sequence[Row]:
    """Every row of the tables that hold schedules, all read before any is used."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}")
    try:
        with closing(_open(path)) as database:
            _check(database, path)
            known = {table: columns for table in TABLES if (columns := _columns(database, table))}
            if not known:
                raise Invalid(f"{path} has neither a table {' nor a table '.join(TABLES)}: it is not PromptYoSelf's")
            return [row for table, columns in known.items() for row in _rows(database, path, table, columns)]
    except sqlite3.Error as error:
        raise Invalid(f"{path} cannot be read: {error}; it is damaged, or no SQLite file") from error


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=WAIT_SECONDS)


def _check(database: sqlite3.Connection, path: Path) -> None:
    (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise Invalid(f"{path} is damaged: {found}")


def _columns(database: sqlite3.Connection, table: str) -> Mapping[str, str]:
    """Our names for a table's columns; empty where there is no such table."""
    there = {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
    found = {ours: next((name for name in theirs if name in there), None) for ours, theirs in COLUMNS.items()}
    return {ours: name for ours, name in found.items() if name is not None} if there else {}


def _rows(database: sqlite3.Connection, path: Path, table: str, columns: Mapping[str, str]) -> list[Row]:
    missing = [COLUMNS[name][0] for name in NEEDED if name not in columns]
    if missing:
        raise Invalid(f"{path} has a table {table} without {', '.join(missing)}: it is not PromptYoSelf's")
    # The names are ours, from the lists above, and never the file's.
    found = database.execute(f"SELECT {', '.join(columns.values())} FROM {table} ORDER BY id")  # noqa: S608
    return [Row(table, **dict(zip(columns, row, strict=True))) for row in found]
