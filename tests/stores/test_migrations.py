"""Tests upgrades of databases from an earlier Frontdesk, and the rule that migrations are only added.

`schema_0014.*.sql` is the schema as the last of the fourteen unreleased migrations left it, exported by SQLite and by
`pg_dump`; today's first migration replaces them.
"""

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, Column, Connection, Engine, Float, Integer, LargeBinary, create_engine, select, text

from frontdesk.db.engine import Database, database_url
from frontdesk.db.migrate import HEAD_VERSION, MIGRATIONS, schema_version
from frontdesk.db.schema import UtcDateTime, metadata
from frontdesk.errors import ConfigurationError
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres

HERE = Path(__file__).parent
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
# A published migration never changes: databases elsewhere have run it. Add a line for a new one.
PUBLISHED = {
    "0014_first.py": "c391741ac9fb31454589836e963a7c2605eb7ec0763782725a26ea2827a793d1",
}
POLICIES = "SELECT tablename, policyname, qual, with_check FROM pg_policies ORDER BY tablename"
ROW_SECURITY = """
SELECT relname, relrowsecurity, relforcerowsecurity,
    has_table_privilege('frontdesk_memory', oid, 'SELECT, INSERT, UPDATE, DELETE')
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname
"""
INDEXES = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
DEFAULTS = """
SELECT table_name, column_name, column_default FROM information_schema.columns
WHERE table_schema = 'public' ORDER BY 1, 2
"""
STORAGE = """
SELECT relname, attname, attstorage FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND attstorage = 'e' ORDER BY 1, 2
"""


@shows("DB-UPGRADE")
@pytest.mark.parametrize("shared", [False, True])
async def test_a_database_that_the_unreleased_migrations_made_is_upgraded_without_loss(
    tmp_path: Path, postgres: Postgres, *, shared: bool
) -> None:
    created = await Database.open(_settings(tmp_path / "new", postgres, shared=shared))
    settings = _settings(tmp_path / "old", postgres, shared=shared)
    _create_schema_0014(settings)
    rows = _fill(settings)
    upgraded = await Database.open(settings)
    async with upgraded.read_transaction() as old, created.read_transaction() as new:
        assert await old.run_sync(schema_version) == HEAD_VERSION
        assert await old.run_sync(_differences) == []
        assert await old.run_sync(_details) == await new.run_sync(_details)
        assert await old.run_sync(_read_rows) == rows
    assert all(rows.values()), "every table held something"
    await upgraded.close()
    await created.close()


async def test_a_database_from_before_the_first_migration_is_refused_and_left_alone(settings: Settings) -> None:
    database = await Database.open(settings)
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0010'"))
    await database.close()
    with pytest.raises(ConfigurationError, match="0010, made before the first release"):
        await Database.open(settings)


@shows("DB-UPGRADE")
def test_published_migrations_are_not_changed_and_new_ones_come_after_them() -> None:
    versions = MIGRATIONS / "versions"
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(versions.glob("*.py"))}
    assert found == PUBLISHED, "never change a migration; write a new one, and add its line to PUBLISHED"
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = list(ScriptDirectory.from_config(config).walk_revisions())
    numbers = [script.revision for script in reversed(scripts)]
    assert numbers == [name[:4] for name in PUBLISHED], "one line of migrations, numbered upwards"
    assert numbers[-1] == HEAD_VERSION


def _settings(folder: Path, postgres: Postgres, *, shared: bool) -> Settings:
    folder.mkdir()
    if shared:
        return settings_with(FRONTDESK_DATABASE_URL=postgres.create_database())
    return settings_with(FRONTDESK_DATA=folder)


def _create_schema_0014(settings: Settings) -> None:
    if settings.database_url is None:
        with closing(sqlite3.connect(settings.data / "frontdesk.db")) as connection:
            connection.executescript((HERE / "schema_0014.sqlite.sql").read_text())
        return
    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        connection.execute((HERE / "schema_0014.postgresql.sql").read_bytes())


def _engine(settings: Settings) -> Engine:
    url = database_url(settings)
    return create_engine(url.set(drivername=url.drivername.replace("sqlite+aiosqlite", "sqlite")))


def _fill(settings: Settings) -> dict[str, Sequence[Any]]:
    """Put a row into every table, and read them all."""
    engine = _engine(settings)
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(table.insert().values({column.name: _value(column) for column in table.columns}))
    with engine.connect() as connection:
        rows = _read_rows(connection)
    engine.dispose()
    return rows


def _value(column: Column[Any]) -> Any:
    """The same value for all columns of a type, so that every foreign key finds its row."""
    match column.type:
        case UtcDateTime():
            return AT
        case Boolean():
            return True
        case LargeBinary():
            return bytes(range(32))
        case Float():
            return 0.25
        case Integer():
            return 7
        case _:
            return "ü 7"


def _read_rows(connection: Connection) -> dict[str, Sequence[Any]]:
    return {
        table.name: [tuple(row) for row in connection.execute(select(table)).all()] for table in metadata.sorted_tables
    }


def _differences(connection: Connection) -> list[object]:
    return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)


def _details(connection: Connection) -> object:
    """What the comparison with the metadata leaves out: partial indexes, defaults, row security, storage."""
    if connection.dialect.name == "postgresql":
        queries = (INDEXES, DEFAULTS, POLICIES, ROW_SECURITY, STORAGE)
        return [[tuple(row) for row in connection.execute(text(query))] for query in queries]
    made = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {name: sorted(re.split(r"[\s,()\"]+", sql)) for name, sql in made}
