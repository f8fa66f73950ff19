"""Brings the schema up to date on start; replicas that start together wait for each other."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from frontdesk.errors import ConfigurationError

# The first migration stands for the fourteen that were never released, and so do its number and these two.
FIRST_VERSION = "0014"
HEAD_VERSION = "0014"
# Any number will do, as long as no other program that shares the database uses it.
ADVISORY_LOCK = 3_020_115
MIGRATIONS = Path(__file__).parent / "migrations"


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Apply what is missing in one transaction; SQLite's own write lock does for it what we ask PostgreSQL for."""
    async with engine.begin() as connection:
        await connection.run_sync(_upgrade_schema)


def _upgrade_schema(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # A migration of a large table, or the wait for another replica's, may take longer than any other statement.
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
    # Alembic costs a fifth of a second to import, which a start on a current schema need not pay.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD_VERSION)


def schema_version(connection: Connection) -> str | None:
    """The schema's version, or None for a database that has none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
