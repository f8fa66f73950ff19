"""Database outages: a test's own PostgreSQL that crashes and restarts, a file that is locked or cannot grow."""

import os
import resource
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.support.postgres import NOBODY, START_SECONDS, Postgres, open_postgres

POLL_SECONDS = 0.05
LOG_BYTES = 128 * 1024
BACKENDS = """SELECT pid FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND datname = current_database()"""


@dataclass(slots=True)
class OwnPostgres:
    """A server that can be stopped immediately and restarted on its data."""

    server: Postgres
    process: subprocess.Popen[bytes]

    def crash(self) -> None:
        """Stop immediately: without waiting for clients, and without writing unwritten data."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(START_SECONDS)

    def start(self) -> None:
        user = NOBODY if os.geteuid() == 0 else None
        with (self.server.folder / "log").open("ab") as sink:
            self.process = subprocess.Popen(self.server.process.args, user=user, stdout=sink, stderr=sink)
        pause = threading.Event()
        for _ in range(int(START_SECONDS / POLL_SECONDS)):
            if self._answers():
                return
            pause.wait(POLL_SECONDS)
        raise AssertionError("PostgreSQL did not come back")

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.server.url("postgres")) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False


@contextmanager
def open_own_postgres() -> Generator[OwnPostgres]:
    with open_postgres() as server:
        own = OwnPostgres(server, server.process)
        try:
            yield own
        finally:
            own.process.send_signal(signal.SIGINT)
            own.process.wait(START_SECONDS)


def terminate_backends(url: str) -> int:
    """Cut every connection to a database; gives their number."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = [pid for (pid,) in connection.execute(BACKENDS).fetchall()]
        for pid in found:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return len(found)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the write lock of a SQLite file, so that all others get the error that it is busy."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def is_locked(path: Path) -> bool:
    """Whether another process holds the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        return False


@contextmanager
def disk_full(path: Path, pids: Iterable[int]) -> Generator[None]:
    """Let these processes add nothing to a SQLite file, as on a full disk; their logs are shorter."""
    pids = list(pids)
    assert path.with_name(f"{path.name}-wal").stat().st_size > LOG_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (LOG_BYTES, hard))
    yield
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
