"""Fixtures of the memory stores: an empty database of each kind, two people, and a clock that tests set."""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest
from sqlalchemy import update
from typing_extensions import override

from frontdesk.db.engine import Database
from frontdesk.db.schema import people
from frontdesk.errors import FrontdeskError
from frontdesk.memory import store
from frontdesk.memory.items_store import insert_category
from frontdesk.memory.model import Category, PersonScope, Task
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.tasks_rules import TaskFilter
from frontdesk.memory.validation import new_id

# The memory records on an empty database, once for each kind, two people, and a clock that stands still


ANN = PersonScope("ann")
BOB = PersonScope("bob")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass(slots=True)
class Clock:
    """The time for records, a Friday's noon until a test sets it."""

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


# Frequent steps of the memory tests


async def make(tasks: TaskService, title: str, parent: Task | None = None, **fields: object) -> Task:
    """One of Ann's."""
    under = {} if parent is None else {"parent_task_id": parent.id}
    return await tasks.create(ANN, {"title": title, **under, **fields})


async def titles(tasks: TaskService, **wanted: Any) -> list[str]:
    """Ann's records that match this filter."""
    return [one.title for one in (await tasks.list(ANN, TaskFilter(**wanted))).items]


async def add_category(records: PersonDatabase, name: str, scope: PersonScope = ANN) -> Category:
    def work(mine: PersonTransaction) -> Category:
        made = Category(id=new_id(mine.now), name=name, created_at=mine.now, updated_at=mine.now)
        insert_category(mine, made)
        return made

    return await records.change(scope, work)


async def live_in(database: Database, zone: str) -> None:
    """Everybody with records so far."""
    async with database.transaction() as connection:
        await connection.execute(update(people).values(zone=zone))


async def refusal(work: Awaitable[object]) -> str | None:
    """The kind of error and its text, if the call was refused."""
    try:
        await work
    except FrontdeskError as error:
        return f"{type(error).__name__}: {error}"
    return None
