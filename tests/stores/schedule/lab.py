"""What the scheduler's tests share: a clock that is set by hand, schedules to order, workers by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from frontdesk.db.engine import Database
from frontdesk.db.schema import occurrences
from frontdesk.schedules.delivery_rules import ClaimRequest, SettledRun, settle_attempt
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.model import (
    SECOND,
    DeliveryFailed,
    Occurrence,
    ScheduleDefinition,
    SchedulePolicy,
    Trigger,
    TriggerKind,
    from_us,
)
from frontdesk.schedules.store import ScheduleStore
from frontdesk.schedules.wakeup import WakeupNotifier

NOW = 1_800_000_000 * SECOND
LEASE = 60 * SECOND
MINUTE = 60 * SECOND


def once(at_us: int) -> Trigger:
    return Trigger(TriggerKind.ONCE, from_us(at_us).isoformat())


def every(length: str, start_us: int, **more: Any) -> Trigger:
    return Trigger(TriggerKind.INTERVAL, length, start_us=start_us, **more)


@dataclass
class Lab:
    """The stores on one database, and a clock that all of its workers go by."""

    database: Database
    now_us: int = NOW
    workers: dict[str, DeliveryStore] = field(default_factory=dict[str, DeliveryStore])

    def __post_init__(self) -> None:
        self.notifier = WakeupNotifier(self.database)
        self.schedules = ScheduleStore(self.database, self.notifier)
        self.past = HistoryStore(self.database, self.notifier)

    def clock(self) -> int:
        return self.now_us

    def worker(self, name: str = "one") -> DeliveryStore:
        if name not in self.workers:
            self.workers[name] = DeliveryStore(self.database, name, LEASE, self.clock)
        return self.workers[name]

    async def add(
        self, agent_id: str = "ada", at_us: int | None = None, trigger: Trigger | None = None, **more: Any
    ) -> int:
        """A schedule: once, at that time, unless a trigger is given."""
        policy = SchedulePolicy(
            **{name: more.pop(name) for name in list(more) if name in SchedulePolicy.__dataclass_fields__}
        )
        at_us = self.now_us if at_us is None else at_us
        new = ScheduleDefinition(agent_id, more.pop("prompt", "Hello"), trigger or once(at_us), policy=policy, **more)
        return (await self.schedules.add(new, at_us, self.now_us)).id

    async def claim(self, name: str = "one", places: int = 100, **more: Any) -> Sequence[Occurrence]:
        return await self.worker(name).claim(ClaimRequest(places, **more))

    async def settle(
        self, claimed: Sequence[Occurrence], outcome: str | DeliveryFailed | None = "Done", name: str = "one"
    ) -> Sequence[SettledRun]:
        """All of them ended like that, by default well."""
        ends = [settle_attempt(one, outcome, self.now_us, 5, 0.0) for one in claimed]
        return await self.worker(name).settle(ends)

    async def run_through(self, name: str = "one") -> list[Occurrence]:
        """Claim and settle until nothing is due."""
        ran: list[Occurrence] = []
        while claimed := await self.claim(name):
            ran += claimed
            await self.settle(claimed, name=name)
        return ran

    async def rows(self) -> list[dict[str, Any]]:
        """All occurrences as they are stored, in order of their times."""
        wanted = select(occurrences).order_by(occurrences.c.intended_us, occurrences.c.id)
        async with self.database.read_transaction() as connection:
            return [dict(row) for row in (await connection.execute(wanted)).mappings()]

    async def standings(self) -> list[str]:
        return [row["standing"] for row in await self.rows()]
