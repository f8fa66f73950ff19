"""The numbered points of a worker's life: before each statement and commit, and around each delivery."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection, Engine, event

from frontdesk.schedules.model import Occurrence


class Points:
    """Counts them as they go by, notes each on standard output, and dies at one of them as from kill -9."""

    def __init__(self, die_at: int) -> None:
        self._die_at = die_at
        self._passed = 0

    def count(self) -> None:
        """From now on; whoever is not to die is left alone."""
        if self._die_at:
            event.listen(Engine, "before_cursor_execute", self._statement)
            event.listen(Engine, "commit", self._commit)

    def around(
        self, deliver: Callable[[Occurrence], Awaitable[str | None]]
    ) -> Callable[[Occurrence], Awaitable[str | None]]:
        async def delivered(occurrence: Occurrence) -> str | None:
            self._reach("deliver")
            answer = await deliver(occurrence)
            self._reach("delivered")
            return answer

        return delivered if self._die_at else deliver

    def _statement(self, _connection: Connection, _cursor: Any, statement: str, *_: object) -> None:
        self._reach(" ".join(statement.split())[:60])

    def _commit(self, _connection: Connection) -> None:
        self._reach("COMMIT")

    def _reach(self, name: str) -> None:
        self._passed += 1
        os.write(1, f"point {self._passed}: {name}\n".encode())
        if self._passed == self._die_at:
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
