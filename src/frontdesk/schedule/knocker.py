"""How the processes on one SQLite file wake each other: a datagram to each one's socket, in a folder of their own."""

import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import anyio
import structlog

LARGEST = 32

log = structlog.get_logger("frontdesk.schedule")


class Knocker:
    """Knocks at the doors of all who listen for a database file; where there are no sockets, nobody does."""

    def __init__(self, database: str, place: Path | None = None) -> None:
        key = blake2b(str(Path(database).resolve()).encode(), digest_size=8).hexdigest()
        self.folder = (place or Path(tempfile.gettempdir())) / f"frontdesk-{_user()}" / key
        self._own: Path | None = None

    def knock(self, due_us: int) -> None:
        """Never waits and never fails: whoever is not reached looks by himself a little later."""
        with suppress(OSError):
            _check_private(self.folder.parent)
            _check_private(self.folder)
            doors = [door for door in self.folder.iterdir() if door != self._own]
            if doors:
                _send(doors, str(due_us).encode())

    async def listen(self, heard: Callable[[int], None]) -> None:
        """Tell of every knock, until cancelled."""
        try:
            door = self._open_in_the_end()
        except OSError as error:
            log.warning("schedule_bell_silent", error=str(error))
            await anyio.sleep_forever()
            return
        try:
            while True:
                await anyio.wait_readable(door)
                with suppress(BlockingIOError, ValueError):
                    while True:
                        heard(int(door.recv(LARGEST)))
        finally:
            door.close()
            with suppress(OSError):
                (self._own or self.folder).unlink()
                self.folder.rmdir()

    def _open_in_the_end(self) -> socket.socket:
        """The last to leave takes the folder away, perhaps just now."""
        with suppress(FileNotFoundError):
            return self._open()
        return self._open()

    def _open(self) -> socket.socket:
        _make_private(self.folder.parent)
        _make_private(self.folder)
        self._own = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        door = _socket()
        try:
            door.bind(str(self._own))
        except OSError:
            door.close()
            raise
        return door


def _send(doors: Sequence[Path], payload: bytes) -> None:
    with _socket() as sender:
        for door in doors:
            try:
                sender.sendto(payload, str(door))
            except ConnectionRefusedError:
                # Left behind by a process that was killed.
                if door.is_socket():
                    door.unlink(missing_ok=True)
            except OSError:
                # Gone by now, or so full of knocks that one more says nothing new.
                continue


def _socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no sockets in its files")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _make_private(folder: Path) -> None:
    """A folder that nobody else can put doors into."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _check_private(folder)


def _check_private(folder: Path) -> None:
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != _user() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not ours alone")


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
