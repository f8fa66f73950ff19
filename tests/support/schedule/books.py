"""What somebody else who looks into the database sees: read with plain SQL, over a connection that is kept."""

import sqlite3
from typing import Any

import psycopg

from frontdesk.settings import Settings

SECONDS = 30
Row = dict[str, Any]


class Books:
    """A connection of one's own; where it was cut, another."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: psycopg.Connection | sqlite3.Connection | None = None

    def rows(self, query: str) -> list[Row]:
        try:
            return self._read(query)
        except psycopg.OperationalError:
            self.close()
            return self._read(query)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(self, query: str) -> list[Row]:
        if self._connection is None:
            self._connection = self._connect()
        if isinstance(self._connection, psycopg.Connection):
            found = self._connection.execute(query.encode())
        else:
            found = self._connection.execute(query)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _connect(self) -> psycopg.Connection | sqlite3.Connection:
        if self._settings.database_url is not None:
            return psycopg.connect(self._settings.database_url.get_secret_value(), autocommit=True)
        file = self._settings.data / "frontdesk.db"
        return sqlite3.connect(file, timeout=SECONDS, isolation_level=None, check_same_thread=False)
