"""SQLite the way we use it: WAL, transactions begun by ourselves, and few trips to its thread."""

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import aiosqlite
from sqlalchemy import Connection, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from typing_extensions import override

BUSY_SECONDS = 10
WRITES = "frontdesk_writes"
BRIEF = "frontdesk_brief"
ROWS_AT_ONCE = 64
IN_PLACE = {sqlite3.Connection: {"cursor"}, sqlite3.Cursor: {"fetchall", "close"}}
IN_PLACE_WHEN_BRIEF = {sqlite3.Connection: {"cursor"}, sqlite3.Cursor: {"execute", "executemany", "fetchall", "close"}}

P = ParamSpec("P")
R = TypeVar("R")


class FewTrips(aiosqlite.Connection):
    """Goes to the thread for what may take long, and does the rest where it is.

    The driver makes four trips for a SELECT: cursor, statement, rows, close. Only the statement can wait for a lock;
    what follows has its rows at hand. And in a brief transaction the lock is held already: only its begin and its
    commit can wait. A trip costs more than most statements, and an agent's turn needs many.
    """

    brief = False

    @override
    async def _execute(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        owner = getattr(fn, "__self__", None)
        in_place = IN_PLACE_WHEN_BRIEF if self.brief else IN_PLACE
        if isinstance(owner, sqlite3.Cursor | sqlite3.Connection) and fn.__name__ in in_place[type(owner)]:
            return fn(*args, **kwargs)
        return await super()._execute(fn, *args, **kwargs)  # pyright: ignore[reportUnknownMemberType] - untyped there


def open_engine(url: URL, pool_seconds: float) -> AsyncEngine:
    """An engine whose writers take their place at once; see `Database.transaction`."""
    engine = create_async_engine(
        url, connect_args={"async_creator_fn": partial(_connect, url.database or ":memory:")}, pool_timeout=pool_seconds
    )
    event.listen(engine.sync_engine, "connect", _pragmas)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _connect(path: str, *_arguments: object, **_options: object) -> FewTrips:
    def connector() -> sqlite3.Connection:
        # The driver would begin transactions by itself, and late; and its check would keep us from the cursors.
        return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    connection = FewTrips(connector, ROWS_AT_ONCE)
    connection._thread.daemon = True  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as SQLAlchemy itself does
    return connection


def _pragmas(connection: Any, _record: object) -> None:  # noqa: ANN401 - the DBAPI has no common type
    cursor = connection.cursor()
    # WAL lets readers go on while one writes; NORMAL survives kill -9 whole, a power cut up to the last checkpoint.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        _patiently(cursor, f"PRAGMA {pragma}")
    cursor.close()


def _patiently(cursor: Any, statement: str) -> None:  # noqa: ANN401 - the DBAPI has no common type
    """SQLite does not wait for its turn to change the journal mode, so processes that start together would trip."""
    for _ in range(BUSY_SECONDS * 50):
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError:
            time.sleep(0.02)
        else:
            return
    cursor.execute(statement)


def _begin(connection: Connection) -> None:
    # Python's driver would begin late, and leave DDL outside; we say it ourselves.
    options = connection.get_execution_options()
    driver = connection.connection.driver_connection
    if not isinstance(driver, FewTrips):
        raise TypeError("this engine opens its connections itself")
    driver.brief = False
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(WRITES, False) else "BEGIN")
    driver.brief = options.get(BRIEF, False)
