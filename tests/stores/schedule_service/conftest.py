"""The scheduler's service in an open installation, on both databases, with two agents and a clock that nobody moves."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.schedules.delivery_rules import ClaimRequest
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.model import SECOND, Occurrence, Schedule, ScheduleDefinition, Trigger, TriggerKind, now_us
from frontdesk.schedules.service import ScheduleService
from frontdesk.settings import Settings

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
        """A schedule of theirs, from behind: one that repeats every hour from the time it is due."""
        start = now_us() + HOUR_US if due_us is None else due_us
        new = ScheduleDefinition(agent_id, "Ping", Trigger(TriggerKind.INTERVAL, "1h", start_us=start), user_id)
        return await self.app.schedules.store.add(new, start, now_us())


def agent(agent_id: str, user_id: str | None = None) -> Caller:
    """An agent that names itself on this machine, or one that a key proves together with a person."""
    proven = user_id is not None
    source = AgentIdSource.CREDENTIAL if proven else AgentIdSource.HEADER
    return Caller("test", agent_id, user_id, source, verified=proven, local=not proven)


def program(agent_id: str) -> Caller:
    """A program on this machine that runs an agent's prompts, and names it in its calls."""
    return Caller("test", agent_id, source=AgentIdSource.PARAMETER, local=True)


def person(user_id: str) -> Caller:
    return Caller("test", user_id=user_id, verified=True, credential_id=f"key:{user_id}")


async def begun(installation: Installation) -> list[Occurrence]:
    """What is due, under way in another process."""
    return list(await DeliveryStore(installation.app.database, str(LeaseOwner()), 60 * SECOND).claim(ClaimRequest(10)))


@pytest.fixture
async def installation(settings: Settings) -> AsyncGenerator[Installation]:
    async with open_app(settings) as app:
        ada, bob = [(await app.host.create(NewAgent(name))).id for name in ("Ada", "Bob")]
        yield Installation(app, ada, bob)
