"""What a forked worker's scheduler is made to do without, so that a test can show that it would be missed.

And what is made quicker for it, so that a test need not wait.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace

import anyio
from sqlalchemy import Connection, text

from frontdesk.db import sqlite
from frontdesk.schedules import claim_store as claiming
from frontdesk.schedules import delivery_rules as retry
from frontdesk.schedules import delivery_store as due
from frontdesk.schedules import model, worker
from frontdesk.schedules.claim_store import DUE_QUEUES
from frontdesk.schedules.delivery_rules import ActiveRun, ClaimContext, SettledRun
from frontdesk.schedules.delivery_store import DeliveryStore

HOUR_NS = 3_600_000_000_000
OURS_AGAIN = text("UPDATE occurrences SET owner = :owner, standing = 'running' WHERE id = :id RETURNING fence")


def quick_retries() -> None:
    retry.FIRST_RETRY_S, retry.LONGEST_RETRY_S, retry.FIRST_BUSY_RETRY_S, retry.LONGEST_BUSY_RETRY_S = (
        0.05,
        0.2,
        0.05,
        0.1,
    )


def quick_busy() -> None:
    """A locked file is reported after a second rather than after ten."""
    sqlite.BUSY_SECONDS = 1


def light_sleep() -> None:
    worker.IDLE_S = 0.2


def an_hour_fast() -> None:
    """This machine's clock is wrong."""
    model.time_ns = lambda: time.time_ns() + HOUR_NS


def an_hour_slow() -> None:
    model.time_ns = lambda: time.time_ns() - HOUR_NS


def without_pruning() -> None:
    """Nothing is forgotten, so that every point that is counted lies on the way of a delivery."""

    async def forget(self: worker.Worker) -> None:
        await anyio.sleep_forever()

    worker.Worker._prune_history = forget


def without_fence() -> None:
    """Whoever has something to settle settles it, whether or not he holds it still."""
    real = due.settle_runs

    def settle(connection: Connection, owner: str, settled: Sequence[SettledRun], now_us: int) -> list[SettledRun]:
        forced: list[SettledRun] = []
        for one in settled:
            fence = connection.execute(OURS_AGAIN, {"owner": owner, "id": one.occurrence.id}).scalar_one()
            forced.append(replace(one, occurrence=replace(one.occurrence, fence=fence)))
        return real(connection, owner, forced, now_us)

    due.settle_runs = settle


def without_renewal() -> None:
    """Nobody says that he is still at work on something."""

    async def renew(self: DeliveryStore) -> frozenset[str]:
        return frozenset()

    DeliveryStore.renew = renew


def without_takeover() -> None:
    """What somebody once holds is his for ever."""

    def abandoned(self: ClaimContext, one: ActiveRun) -> bool:
        return False

    ClaimContext.is_abandoned = abandoned


def without_lock() -> None:
    """Two may look at the same queue at once."""
    open_to_all = copy(DUE_QUEUES)
    open_to_all._for_update_arg = None
    claiming.DUE_QUEUES = open_to_all


CHANGES: dict[str, Callable[[], None]] = {
    "quick retries": quick_retries,
    "quick busy": quick_busy,
    "light sleep": light_sleep,
    "an hour fast": an_hour_fast,
    "an hour slow": an_hour_slow,
    "no pruning": without_pruning,
    "no fence": without_fence,
    "no renewal": without_renewal,
    "no takeover": without_takeover,
    "no lock": without_lock,
}


def tamper(names: Iterable[str]) -> None:
    for name in names:
        CHANGES[name]()
