"""Brings a database to the current schema on start; replicas that start together take turns."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from frontdesk.errors import ConfigurationError

HEAD = "0014"
# Any number will do, as long as no other program that shares the database uses it.
ADVISORY_LOCK = 3_020_115
MIGRATIONS = Path(__file__).parent / "migrations"


async def upgrade(engine: AsyncEngine) -> None:
    """Apply what is missing in one transaction; SQLite's own write lock does for it what we ask PostgreSQL for."""
    async with engine.begin() as connection:
        await connection.run_sync(_upgrade)


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # A migration of a large table, or the wait for another replica's, may take longer than any other statement.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK})
    version = current(connection)
    if version == HEAD:
        return
    if version is not None and version > HEAD:
        raise ConfigurationError(
            f"The database has schema {version}, newer than this Frontdesk's {HEAD}; start a newer Frontdesk on it"
        )
    # Alembic costs a fifth of a second to import, which a start on a current schema need not pay.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


def current(connection: Connection) -> str | None:
    """The schema's version, or None for a database that has none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
