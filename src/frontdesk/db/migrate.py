"""Brings the schema up to date on start; replicas that start together wait for each other."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from frontdesk.errors import ConfigurationError

# The first migration replaces fourteen that were never released, and keeps the number of the last.
FIRST_VERSION = "0014"
HEAD_VERSION = "0014"
# Any number that no other program uses on the same database.
ADVISORY_LOCK = 3_020_115
MIGRATIONS = Path(__file__).parent / "migrations"


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Apply missing migrations in one transaction, under an advisory lock on PostgreSQL and SQLite's own write lock."""
    async with engine.begin() as connection:
        await connection.run_sync(_upgrade_schema)


def _upgrade_schema(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # Migrating a large table, or waiting for another replica, may take longer than the usual statement timeout.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK})
    version = schema_version(connection)
    if version == HEAD_VERSION:
        return
    if version is not None and version > HEAD_VERSION:
        raise ConfigurationError(
            f"The database has schema {version}, newer than this Frontdesk's {HEAD_VERSION}; "
            "start a newer Frontdesk on it"
        )
    if version is not None and version < FIRST_VERSION:
        raise ConfigurationError(
            f"The database has schema {version}, made before the first release, which cannot be upgraded; "
            "start with a new database, by another FRONTDESK_DATA or FRONTDESK_DATABASE_URL"
        )
    # Importing Alembic takes 0.2 s, which a start with a current schema avoids.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD_VERSION)


def schema_version(connection: Connection) -> str | None:
    """The schema's version, or None if the database has none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
