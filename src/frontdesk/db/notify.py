"""Sends and receives PostgreSQL notifications between processes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL

from frontdesk.errors import Unavailable

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 10
PG_NOTIFY = text("SELECT pg_notify(:channel, :payload)")


def notify(connection: Connection, channel: str, payload: str) -> None:
    """Notify listeners when this transaction commits; SQLite has no listeners."""
    if connection.dialect.name == "postgresql":
        connection.execute(PG_NOTIFY, {"channel": channel, "payload": payload})


@asynccontextmanager
async def listen(url: URL, channel: str) -> AsyncGenerator[AsyncGenerator[str]]:
    """Yield the payloads of a channel from now on, until the connection is lost."""
    # Imported here, since it takes a while and a SQLite installation does not need it.
    import psycopg  # noqa: PLC0415
    from psycopg import sql  # noqa: PLC0415

    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        connection = await psycopg.AsyncConnection.connect(address, autocommit=True, connect_timeout=CONNECT_SECONDS)
        async with connection:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            yield _payloads(connection)
    except (psycopg.Error, OSError) as error:
        raise Unavailable(f"The connection that listens for due prompts was lost: {error}") from error


async def _payloads(connection: "psycopg.AsyncConnection") -> AsyncGenerator[str]:
    while True:
        async for heard in connection.notifies(timeout=0):
            yield heard.payload
        # psycopg's own waiting loop wakes up ten times a second.
        await anyio.wait_readable(connection.fileno())
