"""Runs work again and again, logs its errors, and goes on."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain, repeat

import anyio
import structlog
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from frontdesk.errors import FrontdeskError

Work = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """`waits` and `failed` are the log events for expected and for unexpected errors."""

    log: structlog.stdlib.BoundLogger
    expected_event: str
    unexpected_event: str

    async def attempt(self, work: Work, /, **facts: object) -> bool:
        """Run it once; returns whether it worked. It never raises, so other work goes on."""
        try:
            await work()
        except FrontdeskError as error:
            # A stop in the middle of a query looks like a lost database.
            await checkpoint_if_cancelled()
            self.log.warning(self.expected_event, error=str(error), **facts)
        except Exception:
            self.log.exception(self.unexpected_event, **facts)
        else:
            return True
        return False

    async def run_every(self, seconds: float, work: Work, /, *, at_once: bool = False, **facts: object) -> None:
        """Run until cancelled. `at_once`: the first time now, for work that is rarer than restarts."""
        if not at_once:
            await anyio.sleep(seconds)
        while True:
            await self.attempt(work, **facts)
            await anyio.sleep(seconds)

    async def flush_every(self, seconds: float, flush: Work, drain_seconds: float) -> None:
        """Like `every`, and once more when cancelled, so that nothing remains unwritten."""
        try:
            await self.run_every(seconds, flush)
        finally:
            with anyio.move_on_after(drain_seconds, shield=True):
                await self.attempt(flush)


@asynccontextmanager
async def background_group() -> AsyncGenerator[TaskGroup]:
    """A task group that ends with its body, and raises an error itself, not in a group."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def retry_delays(*seconds: float) -> Iterator[float]:
    """The pauses before each new attempt: these, and then the last one for ever."""
    return chain(seconds, repeat(seconds[-1]))
