"""Wakes workers when something becomes due early: in this process, on this machine, and across machines."""

import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import aclosing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

import anyio
import structlog

from frontdesk.background import BackgroundJob, retry_delays
from frontdesk.db.engine import Database
from frontdesk.db.notify import listen
from frontdesk.schedules.model import SECOND

LARGEST_DATAGRAM = 32

log = structlog.get_logger("frontdesk.schedules")


class SocketNotifier:
    """Wakes the processes on this machine that share a database file.

    It sends datagrams to Unix sockets in a private folder. On a system without Unix sockets, it sends nothing.
    """

    def __init__(self, database: str, place: Path | None = None) -> None:
        key = blake2b(str(Path(database).resolve()).encode(), digest_size=8).hexdigest()
        self.folder = (place or Path(tempfile.gettempdir())) / f"frontdesk-{_user_id()}" / key
        self._own: Path | None = None

    def send(self, due_us: int) -> None:
        """Send without waiting or failing: a worker that is not reached looks for work by itself a little later."""
        with suppress(OSError):
            _check_private_folder(self.folder.parent)
            _check_private_folder(self.folder)
            sockets = [path for path in self.folder.iterdir() if path != self._own]
            if sockets:
                _send_to_sockets(sockets, str(due_us).encode())

    async def listen(self, on_wakeup: Callable[[int], None]) -> None:
        """Call back for every datagram, until cancelled."""
        try:
            opened = self._open_with_retry()
        except OSError as error:
            log.warning("schedule_wakeups_unavailable", error=str(error))
            await anyio.sleep_forever()
            return
        try:
            while True:
                await anyio.wait_readable(opened)
                with suppress(BlockingIOError, ValueError):
                    while True:
                        on_wakeup(int(opened.recv(LARGEST_DATAGRAM)))
        finally:
            opened.close()
            with suppress(OSError):
                (self._own or self.folder).unlink()
                self.folder.rmdir()

    def _open_with_retry(self) -> socket.socket:
        """Open the socket; it retries because the last process to stop may delete the folder meanwhile."""
        with suppress(FileNotFoundError):
            return self._open()
        return self._open()

    def _open(self) -> socket.socket:
        _make_private_folder(self.folder.parent)
        _make_private_folder(self.folder)
        self._own = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        opened = _make_socket()
        try:
            opened.bind(str(self._own))
        except OSError:
            opened.close()
            raise
        return opened


def _send_to_sockets(sockets: Sequence[Path], payload: bytes) -> None:
    with _make_socket() as sender:
        for path in sockets:
            try:
                sender.sendto(payload, str(path))
            except ConnectionRefusedError:
                # A socket left by a process that was killed.
                if path.is_socket():
                    path.unlink(missing_ok=True)
            except OSError:
                # It is gone, or so full that one more datagram changes nothing.
                continue


def _make_socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no sockets in its files")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _make_private_folder(folder: Path) -> None:
    """Create a folder in which no other user can put sockets."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _check_private_folder(folder)


def _check_private_folder(folder: Path) -> None:
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != _user_id() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not ours alone")


def _user_id() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


WAKEUP_CHANNEL = "frontdesk_schedule"
# Workers look for work more often than this, so later runs need no notification.
SOON_US = 30 * SECOND
RECONNECT_PAUSES = (0.1, 0.5, 2.0, 5.0)

LISTEN_JOB = BackgroundJob(
    structlog.get_logger("frontdesk.schedules"), "schedule_wakeups_lost", "schedule_wakeups_failed"
)

OnWakeup = Callable[[int], None]


class WakeupNotifier:
    """Notifies the workers of all processes when something becomes due soon. Each process has one; stores call it."""

    def __init__(self, database: Database) -> None:
        self._url = database.url
        self._shared = database.shared
        self._subscribers: list[OnWakeup] = []
        self._pauses = retry_delays(*RECONNECT_PAUSES)
        self._sockets = None if database.shared else SocketNotifier(database.url.database or "")

    def notify(self, due_us: int, now_us: int) -> None:
        """Notify workers of committed work that is due at that time; PostgreSQL itself notifies other machines."""
        if due_us > now_us + SOON_US:
            return
        self._notify_subscribers(due_us)
        if self._sockets is not None:
            self._sockets.send(due_us)

    @contextmanager
    def subscribed(self, on_wakeup: OnWakeup) -> Generator[None]:
        self._subscribers.append(on_wakeup)
        try:
            yield
        finally:
            self._subscribers.remove(on_wakeup)

    async def run(self) -> None:
        """Listen to other processes until cancelled."""
        if self._sockets is not None:
            await self._sockets.listen(self._notify_subscribers)
            return
        while True:
            await LISTEN_JOB.attempt(self._listen)
            await anyio.sleep(next(self._pauses))

    async def _listen(self) -> None:
        async with listen(self._url, WAKEUP_CHANNEL) as payloads, aclosing(payloads):
            self._pauses = retry_delays(*RECONNECT_PAUSES)
            # Wakes all workers, because notifications were lost while nobody listened.
            self._notify_subscribers(0)
            async for payload in payloads:
                # Anybody who can write to the database can send any text here.
                with suppress(ValueError):
                    self._notify_subscribers(int(payload))

    def _notify_subscribers(self, due_us: int) -> None:
        for on_wakeup in self._subscribers:
            on_wakeup(due_us)
