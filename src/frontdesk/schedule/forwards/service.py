"""Forwards answers to webhooks in the background: several at once, again after a failure, and not for ever."""

import random
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import anyio
import structlog
from anyio.abc import TaskGroup
from pydantic import SecretStr

from frontdesk.background import Chore
from frontdesk.schedule.forwards.model import Due, Pace, Unsent
from frontdesk.schedule.forwards.post import Poster
from frontdesk.schedule.forwards.store import ForwardStore
from frontdesk.schedule.model import SECOND, now_us

AT_ONCE = 16
# What another process took and left is looked for this often; what this one writes rings the bell.
IDLE_SECONDS = 30.0
DATABASE_SECONDS = 5.0

log = structlog.get_logger("frontdesk.schedule")
LOOKING = Chore(log, "webhooks_wait", "webhooks_failed")
SENDING = Chore(log, "webhook_not_settled", "webhook_attempt_failed")


class Forwards:
    """Give `run` a task of its own, and `wake` to whoever writes new ones."""

    def __init__(
        self,
        store: ForwardStore,
        secret: SecretStr | None,
        *,
        private: bool = False,
        pace: Pace | None = None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._store = store
        self._pace = pace or Pace()
        self._poster = Poster(secret, private=private, seconds=self._pace.send_seconds)
        self._clock = clock
        self._bell = anyio.Event()
        self._under_way = 0
        self._rest_seconds = DATABASE_SECONDS

    def wake(self) -> None:
        """There is something new to look for."""
        self._bell.set()

    async def run(self) -> None:
        """Until cancelled; what is being sent then comes up again later."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._bell = anyio.Event()
                self._rest_seconds = DATABASE_SECONDS
                await LOOKING.attempt(partial(self._begin, tasks))
                with anyio.move_on_after(self._rest_seconds):
                    await self._bell.wait()

    async def _begin(self, tasks: TaskGroup) -> None:
        """Start on what is due, and know when it is worth looking again, unless the bell rings."""
        free = AT_ONCE - self._under_way
        if not free:
            self._rest_seconds = IDLE_SECONDS
            return
        now = self._clock()
        taken = await self._store.take(free, now, now + int(self._pace.lease_seconds * SECOND))
        for due in taken:
            self._under_way += 1
            tasks.start_soon(self._forward, due)
        next_us = await self._store.next_us() if len(taken) < free else None
        until = IDLE_SECONDS if next_us is None else (next_us - now) / SECOND
        self._rest_seconds = min(max(until, 0.0), IDLE_SECONDS)

    async def _forward(self, due: Due) -> None:
        try:
            # Where nobody knows what became of it, it is sent once more: the receiver tells by the delivery's id.
            await SENDING.attempt(partial(self._attempt, due), delivery_id=due.occurrence_id)
        finally:
            self._under_way -= 1
            self.wake()

    async def _attempt(self, due: Due) -> None:
        # The host alone: the rest of an address is often a secret.
        said = {"delivery_id": due.occurrence_id, "host": urlsplit(due.url).hostname, "attempt": due.attempt}
        try:
            await self._poster.post(due)
        except Unsent as error:
            over = error.permanent or due.attempt >= self._pace.attempts
            wait = self._pace.wait(due.attempt, error.retry_after, random.random())  # noqa: S311 - no secret
            await self._store.failed(due, str(error), None if over else self._clock() + int(wait * SECOND))
            say = log.error if over else log.warning
            say("webhook_dead" if over else "webhook_failed", **said, error=str(error))
        else:
            await self._store.sent(due)
            log.info("webhook_sent", **said)
