"""A real Letta V1 server process, offline: its model is scripted, its database one of the tests' PostgreSQL."""

import os
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from letta_client import AsyncLetta

from tests.support.environments import program

START_SECONDS = 180
STOP_SECONDS = 15
ANSWER_SECONDS = 10
LOG_TAIL = 4000
LAUNCHER = Path(__file__).with_name("letta_launcher.py")


@dataclass(frozen=True, slots=True)
class LettaServer:
    """A running server: its address, its process, its log, and the address of its database."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    database_url: str

    @property
    def port(self) -> int:
        """For another server on the same port, after this one's end."""
        return int(self.url.rpartition(":")[2])

    def logged(self) -> str:
        return _read(self.log)

    def kill(self) -> None:
        _kill(self.process)


async def forget_servers(client: AsyncLetta) -> None:
    """Take all MCP servers from Letta, so that the next test finds it as this one did."""
    for server in await client.mcp_servers.list():
        await client.mcp_servers.delete(server.id or "")


@contextmanager
def open_letta(
    folder: Path, database_url: str, openai_url: str, password: str | None = None, *, port: int = 0
) -> Generator[LettaServer]:
    """Start a server and stop it at the end; it keeps all it knows in the database, its models are `openai-proxy/…`.

    The first start after an installation takes twice as long as the next, which finds the compiled modules.
    """
    python = program("letta", "python")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "letta.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            # -P, or this very module would be the one called letta. The last flag is Letta's own: it leaves out
            # the description of the API, a fifth of the time to start.
            [python, "-P", "-W", "ignore", LAUNCHER, str(port), "--no-generation"],
            env=_environment(folder, database_url, openai_url, password),
            stdout=sink,
            stderr=sink,
            cwd=folder,
            # A tool of an agent's is a process of Letta's; a group lets both end together.
            start_new_session=True,
        )
    try:
        yield _healthy(process, log, database_url)
    finally:
        # It would wait for streams that nobody reads any more; all it knows is in a database that goes with it.
        _kill(process)


def _environment(folder: Path, database_url: str, openai_url: str, password: str | None) -> dict[str, str]:
    """Only PATH is this process' own: Letta asks each provider whose key it finds for its models."""
    secure = {} if password is None else {"LETTA_SERVER_SECURE": "true", "LETTA_SERVER_PASSWORD": password}
    return secure | {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LETTA_DIR": str(folder / ".letta"),
        "LETTA_PG_URI": _with_host(database_url),
        # Of the server's hundred connections the other tests need some too.
        "LETTA_PG_POOL_SIZE": "10",
        "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
        "LETTA_DISABLE_TRACING": "true",
        # Otherwise it keeps every request to a model for good.
        "LETTA_TRACK_PROVIDER_TRACE": "false",
        "OPENAI_API_KEY": "sk-scripted",
        "OPENAI_BASE_URL": openai_url,
        "DO_NOT_TRACK": "1",
    }


def _with_host(database_url: str) -> str:
    """The same database in Letta's words: with a host and a password, though it is reached through its socket."""
    parts = urlsplit(database_url)
    return parts._replace(netloc="postgres:x@localhost:5432", query=f"{parts.query}&ssl=disable").geturl()


def _healthy(process: subprocess.Popen[bytes], log: Path, database_url: str) -> LettaServer:
    for _ in range(START_SECONDS * 10):
        found = re.search(r"Uvicorn running on (http://\S+)", _read(log))
        if found:
            # No proxy of the surroundings stands between the tests and their own machine.
            httpx2.get(f"{found[1]}/v1/health/", timeout=ANSWER_SECONDS, trust_env=False).raise_for_status()
            return LettaServer(found[1], process, log, database_url)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            break
    raise AssertionError(f"Letta did not start:\n{_read(log)[-LOG_TAIL:]}")


def _read(log: Path) -> str:
    # It is being written, so its last character may be half there.
    return log.read_text(encoding="utf-8", errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)
