"""The memory records on an empty database, once for each kind, two people who keep some, and a still clock."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from typing_extensions import override

from frontdesk.db.engine import Database
from frontdesk.memory import store
from frontdesk.memory.model import PersonScope
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks import TaskService

ANN = PersonScope("ann")
BOB = PersonScope("bob")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass(slots=True)
class Clock:
    """What time it is for records, a Friday's noon until it is set."""

    now: datetime = NOON

    def forward(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
def records(database: Database) -> PersonDatabase:
    return PersonDatabase(database)


@pytest.fixture
def tasks(records: PersonDatabase) -> TaskService:
    return TaskService(records)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    told = Clock()

    class SetClock(datetime):
        @classmethod
        @override
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return told.now

    monkeypatch.setattr(store, "datetime", SetClock)
    return told
