"""Fills Frontdesk's own tables with very many schedules, and makes some of them due."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime

import anyio
import psycopg

from bench.schedule.due import PER_AGENT, PROMPT, agent_of, waiting
from frontdesk.db.engine import Database
from frontdesk.schedules.model import DEFAULT_ATTEMPTS
from frontdesk.settings import Settings

FILL = f"""
INSERT INTO schedules (
    id, agent_id, lane, prompt, kind, value, zone, jitter_s, overlap, misfire, attempts, timeline, state, fired,
    intended_us, fire_us, created_us, updated_us
) SELECT number + 1, 'agent-' || (number / {PER_AGENT}), 'agent-' || (number / {PER_AGENT}), '{PROMPT}', 'once', '',
    'UTC', 0, 'queue', 'once', {DEFAULT_ATTEMPTS}, FALSE, 'active', 0, at_us, at_us, at_us, at_us FROM waiting
"""
FILL_LANES = "INSERT INTO lanes (name, serial, due_us) SELECT lane, TRUE, min(fire_us) FROM schedules GROUP BY lane"
RENEW_SQLITE = "UPDATE schedules SET state = 'active', value = ?, intended_us = ?, fire_us = ?, fired = 0 WHERE id = ?"
WAKE_SQLITE = "UPDATE lanes SET due_us = ? WHERE name = ?"
RENEW_POSTGRES = """
UPDATE schedules SET state = 'active', value = due.value, intended_us = due.at, fire_us = due.at, fired = 0
FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS due (value, at, id) WHERE schedules.id = due.id
"""
WAKE_POSTGRES = """
UPDATE lanes SET due_us = due.at FROM unnest(%s::bigint[], %s::text[]) AS due (at, name) WHERE lanes.name = due.name
"""


def fill(url: str, count: int) -> None:
    """One-time prompts that wait for their days, the same number for each agent."""
    anyio.run(_make_tables, url)
    statements = [FILL.replace("FROM waiting", f"FROM ({waiting(count)}) AS waiting"), FILL_LANES]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(_path(url))) as connection, connection:
            # Otherwise SQLite writes the index pages to the disk again and again.
            connection.execute("PRAGMA cache_size = -1000000")
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (*statements, "VACUUM ANALYZE schedules", "VACUUM ANALYZE lanes"):
            connection.execute(statement.encode())


def make_due(url: str, times: Mapping[int, int]) -> None:
    ids, at = [number + 1 for number in times], list(times.values())
    values, agents = [_iso(due_us) for due_us in at], [agent_of(number) for number in times]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(_path(url))) as connection, connection:
            connection.executemany(RENEW_SQLITE, zip(values, at, at, ids, strict=True))
            connection.executemany(WAKE_SQLITE, zip(at, agents, strict=True))
        return
    with psycopg.connect(url) as connection:
        connection.execute(RENEW_POSTGRES, [values, at, ids])
        connection.execute(WAKE_POSTGRES, [at, agents])


async def _make_tables(url: str) -> None:
    database = await Database.open(settings(url))
    await database.close()


def settings(url: str) -> Settings:
    return Settings.model_validate({"FRONTDESK_DATABASE_URL": url})


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")


def _iso(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat()
