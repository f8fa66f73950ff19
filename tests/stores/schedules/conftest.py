"""Fixtures of the scheduler's stores and its service: a clock that tests set, schedules, and two agents."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.app import App, open_app
from frontdesk.db.engine import Database
from frontdesk.db.schema import occurrences
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.schedules.delivery_rules import ClaimRequest, SettledRun, settle_attempt
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.model import (
    SECOND,
    DeliveryFailed,
    Occurrence,
    Schedule,
    ScheduleDefinition,
    SchedulePolicy,
    Trigger,
    TriggerKind,
    from_us,
    now_us,
)
from frontdesk.schedules.service import ScheduleService
from frontdesk.schedules.store import ScheduleStore
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.settings import Settings

# Shared by the scheduler's tests: a clock that tests set, schedules, named workers


NOW = 1_800_000_000 * SECOND
LEASE = 60 * SECOND
MINUTE = 60 * SECOND


def once(at_us: int) -> Trigger:
    return Trigger(TriggerKind.ONCE, from_us(at_us).isoformat())


def every(length: str, start_us: int, **more: Any) -> Trigger:
    return Trigger(TriggerKind.INTERVAL, length, start_us=start_us, **more)


@dataclass
class Lab:
    """The stores on one database, and a clock that all of its workers use."""

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
        """All of them with this end, by default success."""
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
        """All stored occurrences, in order of their times."""
        wanted = select(occurrences).order_by(occurrences.c.intended_us, occurrences.c.id)
        async with self.database.read_transaction() as connection:
            return [dict(row) for row in (await connection.execute(wanted)).mappings()]

    async def standings(self) -> list[str]:
        return [row["standing"] for row in await self.rows()]


# The scheduler's stores on an empty database, once for each kind


@pytest.fixture
def lab(database: Database) -> Lab:
    return Lab(database)


# The scheduler's service in an open installation, on both databases, with two agents and the real clock


HOUR_US = 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Installation:
    """An open app, and the ids of two agents of its host."""

    app: App
    ada: str
    bob: str

    @property
    def schedules(self) -> ScheduleService:
        return self.app.schedules

    async def put(self, agent_id: str, user_id: str | None = None, due_us: int | None = None) -> Schedule:
        """A schedule of theirs, written to the store: it repeats every hour from the time it is due."""
        start = now_us() + HOUR_US if due_us is None else due_us
        new = ScheduleDefinition(agent_id, "Ping", Trigger(TriggerKind.INTERVAL, "1h", start_us=start), user_id)
        return await self.app.schedules.store.add(new, start, now_us())


def agent(agent_id: str, user_id: str | None = None) -> Caller:
    """An agent that names itself on this machine, or an agent with a person, both proven by a key."""
    proven = user_id is not None
    source = AgentIdSource.CREDENTIAL if proven else AgentIdSource.HEADER
    return Caller("test", agent_id, user_id, source, verified=proven, local=not proven)


def program(agent_id: str) -> Caller:
    """A program on this machine that runs an agent's prompts, and names it in its calls."""
    return Caller("test", agent_id, source=AgentIdSource.PARAMETER, local=True)


def person(user_id: str) -> Caller:
    return Caller("test", user_id=user_id, verified=True, credential_id=f"key:{user_id}")


async def begun(installation: Installation) -> list[Occurrence]:
    """The due prompts, claimed by another process."""
    return list(await DeliveryStore(installation.app.database, str(LeaseOwner()), 60 * SECOND).claim(ClaimRequest(10)))


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[Installation]:
    async with open_app(settings) as app:
        ada, bob = [(await app.host.create(NewAgent(name))).id for name in ("Ada", "Bob")]
        yield Installation(app, ada, bob)
