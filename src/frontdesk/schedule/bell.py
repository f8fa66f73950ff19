"""Wakes workers when something is due earlier than they know: in this process, on this machine, across machines."""

from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager, suppress

import anyio
import structlog

from frontdesk.background import Chore, pauses
from frontdesk.db.engine import Database
from frontdesk.db.notify import listening
from frontdesk.schedule.knocker import Knocker
from frontdesk.schedule.model import SECOND

CHANNEL = "frontdesk_schedule"
# Workers look by themselves more often than this, so what is due later needs no word.
SOON_US = 30 * SECOND
PAUSES = (0.1, 0.5, 2.0, 5.0)

LISTENING = Chore(structlog.get_logger("frontdesk.schedule"), "schedule_bell_lost", "schedule_bell_failed")

Heard = Callable[[int], None]


class Bell:
    """One for a process; stores ring it, its workers hear it."""

    def __init__(self, database: Database) -> None:
        self._url = database.url
        self._shared = database.shared
        self._hearing: list[Heard] = []
        self._rests = pauses(*PAUSES)
        self._knocker = None if database.shared else Knocker(database.url.database or "")

    def ring(self, due_us: int, now_us: int) -> None:
        """Something will be due at that time, as the database shows by now; PostgreSQL tells other machines itself."""
        if due_us > now_us + SOON_US:
            return
        self._tell(due_us)
        if self._knocker is not None:
            self._knocker.knock(due_us)

    @contextmanager
    def heard_by(self, heard: Heard) -> Generator[None]:
        self._hearing.append(heard)
        try:
            yield
        finally:
            self._hearing.remove(heard)

    async def run(self) -> None:
        """Listen to other processes until cancelled."""
        if self._knocker is not None:
            await self._knocker.listen(self._tell)
            return
        while True:
            await LISTENING.attempt(self._listen)
            await anyio.sleep(next(self._rests))

    async def _listen(self) -> None:
        async with listening(self._url, CHANNEL) as said, aclosing(said):
            self._rests = pauses(*PAUSES)
            # What was said while nobody listened is found by looking.
            self._tell(0)
            async for payload in said:
                # Whoever can write to the database can say anything here.
                with suppress(ValueError):
                    self._tell(int(payload))

    def _tell(self, due_us: int) -> None:
        for heard in self._hearing:
            heard(due_us)
