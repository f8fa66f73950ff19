"""What the tests of the memory room do often."""

from collections.abc import Awaitable
from typing import Any

from sqlalchemy import update

from frontdesk.db.engine import Database
from frontdesk.db.schema import people
from frontdesk.errors import FrontdeskError
from frontdesk.memory.categories import store as categories
from frontdesk.memory.ids import new_id
from frontdesk.memory.model import Category, Task
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records
from frontdesk.memory.tasks.service import Tasks
from frontdesk.memory.tasks.wanted import TaskWanted
from tests.stores.memory.conftest import ANN


async def make(tasks: Tasks, title: str, parent: Task | None = None, **fields: object) -> Task:
    """One of Ann's."""
    under = {} if parent is None else {"parent_task_id": parent.id}
    return await tasks.create(ANN, {"title": title, **under, **fields})


async def titles(tasks: Tasks, **wanted: Any) -> list[str]:
    """Of those of Ann's that are asked for."""
    return [one.title for one in (await tasks.list(ANN, TaskWanted(**wanted))).items]


async def add_category(records: Records, name: str, scope: Scope = ANN) -> Category:
    def work(mine: Mine) -> Category:
        made = Category(id=new_id(mine.now), name=name, created_at=mine.now, updated_at=mine.now)
        categories.add(mine, made)
        return made

    return await records.change(scope, work)


async def live_in(database: Database, zone: str) -> None:
    """Everybody whose records are kept so far."""
    async with database.transaction() as connection:
        await connection.execute(update(people).values(zone=zone))


async def refusal(work: Awaitable[object]) -> str | None:
    """How it was refused, if it was: the kind of error and its words."""
    try:
        await work
    except FrontdeskError as error:
        return f"{type(error).__name__}: {error}"
    return None
