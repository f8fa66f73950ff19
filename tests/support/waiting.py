"""Waits for actions of another thread, task or process, and leases that end without waiting."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self

import anyio
import pytest
from sqlalchemy import Column, select, update
from typing_extensions import override

from frontdesk.db import statements
from frontdesk.db.engine import Database

# Waits for actions of another thread, task or process; all have a limit


WAIT_SECONDS = 20
POLL_SECONDS = 0.005


async def until(holds: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    """Wait for it in a task; raises `TimeoutError` if it does not come."""
    with anyio.fail_after(seconds):
        while True:
            if holds():
                return
            await anyio.sleep(POLL_SECONDS)


def comes_true(holds: Callable[[], bool], seconds: float = WAIT_SECONDS, every: float = POLL_SECONDS) -> bool:
    """Wait for it in a thread; gives whether it came, after a limited number of checks."""
    pause = threading.Event()
    return any(holds() or pause.wait(every) for _ in range(int(seconds / every)))


# Leases without waiting: one that has run for a while, and a machine whose clock is ahead


AHEAD = timedelta(minutes=10)


class Ahead(datetime):
    """The reading of a machine whose clock is wrong by minutes."""

    @classmethod
    @override
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + AHEAD


def set_clock_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this process has a clock that is ahead of the database's."""
    monkeypatch.setattr(statements, "datetime", Ahead)


async def age(database: Database, column: Column[Any], by: timedelta) -> None:
    """Make every lease in this column look as if it had been given that much earlier."""
    async with database.transaction() as connection:
        given = select(column).where(column.is_not(None)).distinct().order_by(column)
        for was in (await connection.execute(given)).scalars().all():
            await connection.execute(update(column.table).where(column == was).values({column: was - by}))
