"""Opens the database, SQLite or PostgreSQL, and gives its transactions."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import anyio.lowlevel
from sqlalchemy import Connection, CursorResult, Dialect, Executable, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from frontdesk.db.migrate import upgrade_schema
from frontdesk.db.sqlite import (
    WRITE_OPTION,
    InPlaceWriter,
    SqliteReaders,
    ThreadWriter,
    create_sqlite_engine,
    hold_server_lock,
    make_files_private,
)
from frontdesk.errors import ConfigurationError, Unavailable, Unstorable
from frontdesk.settings import Settings

T = TypeVar("T")
POOL_SECONDS = 10
STATEMENT_SECONDS = 20
# The time limit of a check whether writing works, and how long its result is used.
CHECK_SECONDS = 2
CHECK_VALID_SECONDS = 5
# On SQLite, one check in so many is made where the WAL is checkpointed.
CHECKS_PER_CHECKPOINT = 16
# This check writes an existing row unchanged, which fails on a full disk or a read-only replica like any write.
WRITE_NOTHING = text("UPDATE alembic_version SET version_num = version_num")
DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


class Transaction(Protocol):
    """The connection of a brief transaction; only stores use it."""

    @property
    def dialect(self) -> Dialect: ...

    async def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, /
    ) -> CursorResult[Any]: ...


@dataclass(slots=True)
class WriteCheck:
    """The result of the last check of whether writing works."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    number: int = 0
    at: float = -float("inf")
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Database:
    """The database: its engines and its transactions."""

    engine: AsyncEngine
    url: URL
    in_place_writer: InPlaceWriter | None = None
    thread_writer: ThreadWriter | None = None
    readers: SqliteReaders | None = None
    write_check: WriteCheck = field(default_factory=WriteCheck)

    @classmethod
    async def open(cls, settings: Settings) -> Self:
        """Connect, and bring the schema up to date."""
        url = database_url(settings)
        if (path := database_file(url)) is not None:
            _make_private_folder(path.parent)
            make_files_private(path, with_copies=settings.database_url is None)
        engine = _create_engine(url)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(engine.dispose)
            try:
                with anyio.CancelScope(shield=url.drivername.startswith("sqlite")):
                    await upgrade_schema(engine.execution_options(**{WRITE_OPTION: True}))
            except (DBAPIError, OSError) as error:
                raise Unavailable(
                    f"The database {describe_url(url)} cannot be used: {_cause_text(error)}. "
                    "Check FRONTDESK_DATABASE_URL, or that FRONTDESK_DATA can be written to"
                ) from error
            undo.pop_all()
        if not url.drivername.startswith("sqlite"):
            return cls(engine, url)
        return cls(engine, url, InPlaceWriter(url), ThreadWriter(url), SqliteReaders(url))

    @property
    def shared(self) -> bool:
        """Whether other replicas may use this database."""
        return not self.url.drivername.startswith("sqlite")

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that writes; on SQLite it takes the write lock first, so that it cannot fail midway."""
        return self._begin(self.engine.execution_options(**{WRITE_OPTION: True}))

    @asynccontextmanager
    async def brief_transaction(self) -> AsyncGenerator[Transaction]:
        """A transaction of a few small statements and no other waits; SQLite runs it on the event loop's thread."""
        if self.in_place_writer is None:
            async with self.transaction() as connection:
                yield connection
            return
        with self._translated_errors():
            async with self.in_place_writer.transaction() as here:
                yield here

    async def write(self, work: Callable[[Connection], T], *, small: bool) -> T:
        """Run a function of many statements in a transaction; on SQLite, all of it runs in one call to a thread.

        A `small` transaction of a few rows costs less than the call to a thread, so it runs on the event loop's thread.
        """
        if self.in_place_writer is None or self.thread_writer is None:
            async with self.transaction() as connection:
                return await connection.run_sync(work)
        with self._translated_errors():
            return await (self.in_place_writer if small else self.thread_writer).run(work)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a function that only reads in a transaction; on SQLite, all of it runs in one call to a thread."""
        if self.readers is None:
            async with self.read_transaction() as connection:
                return await connection.run_sync(work)
        with self._translated_errors():
            return await self.readers.run(work)

    def read_transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that only reads and blocks nobody."""
        return self._begin(self.engine)

    @asynccontextmanager
    async def _begin(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        # A cancelled transaction would leave SQLite's thread running; it is short, so a cancelled caller waits for it.
        # PostgreSQL may be remote and silent, so the caller's time limit must apply there.
        try:
            with self._translated_errors(), anyio.CancelScope(shield=not self.shared):
                async with engine.begin() as connection:
                    yield connection
        except Unavailable:
            # If the call is cancelled while the pool checks a connection, the check's own error is raised.
            await anyio.lowlevel.checkpoint_if_cancelled()
            raise

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        """Translates the driver's errors into ours."""
        try:
            yield
        except DataError as error:
            raise Unstorable("A value is too long, out of range, or holds NUL, and cannot be stored") from error
        except (DBAPIError, PoolTimeout) as error:
            raise Unavailable(
                f"The database {describe_url(self.url)} does not answer: {_cause_text(error)}",
                public="The database does not answer; try again shortly",
            ) from error

    async def ping(self) -> None:
        """Make one round trip to the database."""
        async with self.read_transaction() as connection:
            await connection.exec_driver_sql("SELECT 1")

    async def write_problem(self) -> str | None:
        """The reason why writing fails, or None if a small write works; checked every few seconds at most."""
        checked = self.write_check
        async with checked.lock:
            if anyio.current_time() - checked.at < CHECK_VALID_SECONDS:
                return checked.problem
            checked.number += 1
            try:
                with anyio.fail_after(CHECK_SECONDS):
                    await self.write(_write_nothing, small=True)
                if self.in_place_writer is not None and checked.number % CHECKS_PER_CHECKPOINT == 0:
                    async with self.transaction() as connection:
                        await connection.run_sync(_write_nothing)
                checked.problem = None
            except TimeoutError:
                checked.problem = f"no write within {CHECK_SECONDS} s"
            except Unavailable as error:
                cause = error.__cause__
                checked.problem = _cause_text(cause) if isinstance(cause, DBAPIError | PoolTimeout) else str(error)
            checked.at = anyio.current_time()
            return checked.problem

    async def close(self) -> None:
        for extra in (self.in_place_writer, self.thread_writer, self.readers):
            if extra is not None:
                extra.close()
        await self.engine.dispose()


def database_url(settings: Settings) -> URL:
    """The configured database, or SQLite in the data folder, with the driver we use."""
    if settings.database_url is None:
        return URL.create("sqlite+aiosqlite", database=str(settings.data / "frontdesk.db"))
    try:
        url = make_url(settings.database_url.get_secret_value())
    except ArgumentError as error:
        raise ConfigurationError("FRONTDESK_DATABASE_URL is not a database URL; write postgresql://…") from error
    driver = DRIVERS.get(url.drivername)
    if driver is None:
        raise ConfigurationError(
            f"FRONTDESK_DATABASE_URL names {url.drivername!r}; use postgresql://… or sqlite:///path"
        )
    return url.set(drivername=driver)


def database_file(url: URL) -> Path | None:
    """The real path of a SQLite database's file, if it has one; SQLite puts its own files next to it."""
    named = url.database if url.drivername.startswith("sqlite") else None
    if named and named.startswith("file:") and "uri" in url.query:
        named = None if url.query.get("mode") == "memory" else unquote(urlsplit(named).path)
    return Path(named).resolve() if named and named != ":memory:" else None


@contextmanager
def server_lock(settings: Settings) -> Generator[None]:
    """Hold a server's lock on the database: SQLite allows one server, PostgreSQL any number."""
    path = database_file(database_url(settings))
    if path is None:
        yield
        return
    _make_private_folder(path.parent)
    with hold_server_lock(path):
        yield


def describe_url(url: URL) -> str:
    """A description of the database without its password."""
    if url.drivername.startswith("sqlite"):
        return url.database or ":memory:"
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def _create_engine(url: URL) -> AsyncEngine:
    if url.drivername.startswith("sqlite"):
        return create_sqlite_engine(url, POOL_SECONDS)
    engine = create_async_engine(
        url,
        pool_size=10,
        max_overflow=10,
        pool_timeout=POOL_SECONDS,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": POOL_SECONDS,
            "options": f"-c statement_timeout={STATEMENT_SECONDS}s",
            "tcp_user_timeout": STATEMENT_SECONDS * 1000,
        },
    )
    event.listen(engine.sync_engine, "checkin", _discard_if_busy)
    return engine


def _discard_if_busy(connection: Any, record: ConnectionPoolEntry) -> None:  # noqa: ANN401 - the DBAPI has no common type
    """Discard a connection whose cancelled check still waits for a response; it cannot be used again."""
    # By name, since importing psycopg takes a while, and a SQLite installation does not need it.
    if connection is not None and connection.driver_connection.info.transaction_status.name == "ACTIVE":
        record.invalidate()


def _write_nothing(connection: Connection) -> None:
    connection.execute(WRITE_NOTHING)


def _make_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"The folder {folder} cannot be made: {error.strerror}; set FRONTDESK_DATA") from error


def _cause_text(error: DBAPIError | PoolTimeout | OSError) -> str:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return str(origin).strip().splitlines()[0] if str(origin).strip() else type(origin).__name__
