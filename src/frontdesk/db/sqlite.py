"""Sets up SQLite: WAL, private files, one server, and three kinds of connections with a checkpoint thread.

Only their owner can read the files, and only one server at a time uses them.
"""

import os
import sqlite3
import stat
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import structlog
from sqlalchemy import Connection, CursorResult, Dialect, Executable, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

from frontdesk.errors import Conflict, Unavailable

T = TypeVar("T")
BUSY_SECONDS = 10
WRITE_OPTION = "frontdesk_writes"
BEGIN_WRITE = "BEGIN IMMEDIATE"
# The number of read transactions at the same time.
READER_CONNECTIONS = 8
BEGIN_RETRY_DELAYS = (0.001, 0.002, 0.005, 0.01, 0.02)
# After so many transactions in threads, the WAL is checkpointed in a quiet moment, or without waiting for one. A
# transaction that settles a hundred prompts changes about five hundred pages if there are many schedules.
CHECKPOINT_IN_LULL = 32
CHECKPOINT_AT_ONCE = 160
LULL_SECONDS = 0.25
# A writer that fills the WAL beyond so many pages checkpoints it; the file is then cut to so many bytes.
LAST_RESORT_PAGES = 100_000
LOG_BYTES = 64 * 1024 * 1024
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON")
# SQLite gives its own files the permissions of the database file.
FILE_SUFFIXES = ("", "-wal", "-shm", "-journal")
LOCK_SUFFIX = ".lock"
LOCKED_BYTE = 1024

log = structlog.get_logger("frontdesk.db")


def make_files_private(path: Path, *, with_copies: bool) -> None:
    """Make the database file readable by its owner alone, before SQLite creates it or if it exists.

    `with_copies`: also do this for all files whose names begin with its name, which are copies in our folder.
    """
    # Only if there is no file yet: closing a database file that this process has open would drop SQLite's locks.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    beside = [path.with_name(path.name + ending) for ending in FILE_SUFFIXES]
    with suppress(OSError):
        beside += [one for one in path.parent.iterdir() if with_copies and one.name.startswith(path.name)]
    for one in beside:
        try:
            found = one.stat() if one == path else one.lstat()
            if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
                one.chmod(stat.S_IMODE(found.st_mode) & 0o700)
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("database_open_to_others", file=str(one), error=error.strerror)


@contextmanager
def hold_server_lock(path: Path) -> Generator[None]:
    """Hold the lock of a database's one server; the system releases it when the process ends, for any reason."""
    try:
        lock = os.open(path.with_name(path.name + LOCK_SUFFIX), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise Unavailable(f"{path.parent} cannot be written to: {error.strerror}; set FRONTDESK_DATA") from error
    try:
        if not _try_lock(lock):
            by = os.read(lock, 20).decode("ascii", "replace").strip()
            raise Conflict(
                f"Another server{f' (process {by})' if by.isdigit() else ''} uses the database {path} already. "
                "Stop it first, set FRONTDESK_DATA to another folder, or use PostgreSQL, which serves several; "
                "workers and commands may run beside a server"
            )
        # Only for the message to a second server.
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        yield
    finally:
        # The file is not deleted: otherwise one server could lock the old file and the next one a new file.
        os.close(lock)


def _try_lock(number: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            # A lock on a byte also keeps readers out, so it is on a byte behind the text.
            os.lseek(number, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
            os.lseek(number, 0, os.SEEK_SET)
        else:
            import fcntl  # noqa: PLC0415

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        # Some network file systems have no locks; SQLite does not work on them either.
        log.warning("server_lock_unavailable", error=error.strerror)
    return True


def create_sqlite_engine(url: URL, pool_seconds: float) -> AsyncEngine:
    """An engine whose writers take the write lock first; see `Database.transaction`."""
    engine = create_async_engine(
        url, connect_args={"timeout": BUSY_SECONDS, "isolation_level": None}, pool_timeout=pool_seconds
    )
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    event.listen(engine.sync_engine, "begin", _begin_transaction)
    return engine


class InPlaceWriter:
    """A connection that is used on the event loop's own thread.

    The driver passes each statement to a thread, with four switches for a SELECT, and a switch costs many times as much
    as a small statement. Here nothing blocks: if the lock is taken, the writer tries again later, and the other
    connections do the checkpoints.
    """

    def __init__(self, url: URL) -> None:
        self._engine = create_engine(
            url.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": 0, "isolation_level": None, "check_same_thread": False},
            poolclass=StaticPool,
        )
        event.listen(self._engine, "connect", _set_in_place_pragmas)
        self._turn = anyio.Lock()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator["InPlaceTransaction"]:
        async with self._turn:
            with self._engine.connect() as connection:
                await _begin_with_retries(connection)
                yield InPlaceTransaction(connection)
                # After an exception, the connection rolls back when it is closed.
                connection.commit()

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run a function as a transaction; nothing else runs between its statements."""
        async with self._turn:
            with self._engine.connect() as connection:
                await _begin_with_retries(connection)
                done = work(connection)
                connection.commit()
                return done

    def close(self) -> None:
        self._engine.dispose()


class ThreadWriter:
    """A connection for whole transactions in a thread: one switch for any number of statements."""

    def __init__(self, url: URL) -> None:
        self._engine = create_engine(
            url.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": BUSY_SECONDS, "isolation_level": None, "check_same_thread": False},
            poolclass=StaticPool,
        )
        event.listen(self._engine, "connect", _set_thread_pragmas)
        self._checkpoints = CheckpointThread(url)
        self._turn = anyio.Lock()
        # A caller that is cancelled in another way than by a scope leaves the thread running.
        self._thread = Lock()

    async def run(self, work: Callable[[Connection], T]) -> T:
        async with self._turn:
            return await anyio.to_thread.run_sync(self._run, work)

    def _run(self, work: Callable[[Connection], T]) -> T:
        with self._thread, self._engine.connect() as connection:
            connection.exec_driver_sql(BEGIN_WRITE)
            done = work(connection)
            connection.commit()
        self._checkpoints.count_transaction()
        return done

    def close(self) -> None:
        self._checkpoints.close()
        self._engine.dispose()


class SqliteReaders:
    """Connections for read transactions: each transaction runs in one thread, and several run in parallel."""

    def __init__(self, url: URL) -> None:
        self._engine = create_engine(
            url.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": BUSY_SECONDS, "isolation_level": None, "check_same_thread": False},
            pool_size=READER_CONNECTIONS,
            max_overflow=0,
        )
        event.listen(self._engine, "connect", _set_pragmas)
        event.listen(self._engine, "begin", _begin_transaction)
        self._turns = anyio.CapacityLimiter(READER_CONNECTIONS)

    async def run(self, work: Callable[[Connection], T]) -> T:
        return await anyio.to_thread.run_sync(self._run, work, limiter=self._turns)

    def _run(self, work: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return work(connection)

    def close(self) -> None:
        self._engine.dispose()


class CheckpointThread:
    """Checkpoints the WAL after many writes, in a thread that may wait for the disk.

    Much work is due at the same time, on the hour, and takes seconds; if possible, a checkpoint waits until it is over.
    """

    def __init__(self, url: URL) -> None:
        self._path = url.database or ""
        self._noted = self._folded = 0
        self._wanted, self._closed = Event(), Event()
        self._thread: Thread | None = None

    def count_transaction(self) -> None:
        """Count one more transaction."""
        self._noted += 1
        if self._noted - self._folded < CHECKPOINT_IN_LULL:
            return
        if self._thread is None:
            self._thread = Thread(target=self._run, name="checkpoints", daemon=True)
            self._thread.start()
        self._wanted.set()

    def close(self) -> None:
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(BUSY_SECONDS)

    def _run(self) -> None:
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            while self._wanted.wait() and not self._closed.is_set():
                self._wait_for_lull()
                self._folded = self._noted
                self._wanted.clear()
                # If the file is locked or the disk full, the WAL grows until the next time, or until a writer
                # checkpoints it.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _wait_for_lull(self) -> None:
        seen = -1
        while seen != self._noted and self._noted - self._folded < CHECKPOINT_AT_ONCE:
            seen = self._noted
            self._closed.wait(LULL_SECONDS)


class InPlaceTransaction:
    """A transaction on the event loop's thread, with the interface of SQLAlchemy's connections."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    async def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, /
    ) -> CursorResult[Any]:
        return self._connection.execute(statement, parameters)


async def _begin_with_retries(connection: Connection) -> None:
    until, pauses = anyio.current_time() + BUSY_SECONDS, iter(BEGIN_RETRY_DELAYS)
    while True:
        try:
            connection.exec_driver_sql(BEGIN_WRITE)
        except OperationalError:
            connection.rollback()
            if anyio.current_time() > until:
                raise
            await anyio.sleep(next(pauses, BEGIN_RETRY_DELAYS[-1]))
        else:
            return


def _set_pragmas(connection: Any, _record: object) -> None:  # noqa: ANN401 - the DBAPI has no common type
    cursor = connection.cursor()
    # WAL lets readers work beside a writer. NORMAL loses nothing on kill -9; a power cut loses only what followed the
    # last checkpoint.
    for pragma in PRAGMAS:
        _execute_with_retries(cursor, f"PRAGMA {pragma}")
    cursor.close()


def _set_in_place_pragmas(connection: Any, record: object) -> None:  # noqa: ANN401 - the DBAPI has no common type
    _set_pragmas(connection, record)
    connection.execute("PRAGMA wal_autocheckpoint=0")


def _set_thread_pragmas(connection: Any, record: object) -> None:  # noqa: ANN401 - the DBAPI has no common type
    _set_pragmas(connection, record)
    # This connection writes in bulk. Checkpoints every thousand pages took a third of the time; so did pages that did
    # not fit into the default cache of two megabytes.
    connection.execute(f"PRAGMA wal_autocheckpoint={LAST_RESORT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
    connection.execute("PRAGMA cache_size=-32000")


def _execute_with_retries(cursor: Any, statement: str) -> None:  # noqa: ANN401 - the DBAPI has no common type
    """Retry: SQLite does not wait for a lock to change the journal mode, so parallel starts would fail."""
    for _ in range(BUSY_SECONDS * 50):
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError:
            time.sleep(0.02)
        else:
            return
    cursor.execute(statement)


def _begin_transaction(connection: Connection) -> None:
    # Python's driver would begin late and leave DDL out of the transaction, so we send BEGIN ourselves.
    writes = connection.get_execution_options().get(WRITE_OPTION, False)
    connection.exec_driver_sql(BEGIN_WRITE if writes else "BEGIN")
