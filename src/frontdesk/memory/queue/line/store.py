"""The line of what waits for an agent in the database: looked at in order, and taken from by one at a time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import String, and_, bindparam, exists, not_, or_, select

from frontdesk.db.lists import one_of
from frontdesk.db.schema import Moment
from frontdesk.db.schema import ai_tasks as table
from frontdesk.loop.text import storable
from frontdesk.memory.model import AiMode, AiStatus, AiTask
from frontdesk.memory.queue.store import URGENCY, is_for, task_of
from frontdesk.memory.store import Mine

other = table.alias("other")
# Assigned, or in the hands of one who is taken for dead.
LAPSED = and_(table.c.status == AiStatus.IN_PROGRESS, table.c.leased_until <= bindparam("now", type_=Moment))
WAITING = select(table).where(
    table.c.user_id == bindparam("of_user"),
    or_(table.c.status == AiStatus.ASSIGNED, LAPSED),
    is_for(bindparam("agent", type_=String)),
)
OLDEST = WAITING.order_by(table.c.assigned_at, table.c.id).limit(bindparam("most"))
# Nobody's word is missing, by these words as `json.dumps` writes them; whoever takes one looks again with `guard`.
CLEARED = or_(
    table.c.mode != AiMode.EXECUTE,
    table.c.guardrails.contains('"requiresHumanApproval": false'),
    table.c.metadata.contains('"approved": true'),
)
UNFINISHED = and_(
    other.c.user_id == table.c.user_id,
    other.c.status != AiStatus.COMPLETED,
    table.c.dependencies.contains(other.c.id),
)
NEXT = (
    WAITING.where(CLEARED, or_(table.c.dependencies == "[]", ~exists().where(UNFINISHED)))
    .where(not_(one_of(table.c.id, "passed")))
    .order_by(URGENCY.desc(), table.c.assigned_at, table.c.id)
    .limit(1)
    .with_for_update(skip_locked=True, of=table)
)


def waiting(mine: Mine, agent: str, now: datetime, limit: int) -> Sequence[AiTask]:
    """What waits for the agent, the oldest first."""
    rows = mine.connection.execute(OLDEST, {**_whose(mine, agent, now), "most": limit})
    return [task_of(row) for row in rows.mappings()]


def next_for(mine: Mine, agent: str, now: datetime, passed: Sequence[str]) -> AiTask | None:
    """The most pressing of what can be begun, and of those the oldest, held until the transaction ends.

    What another one holds at this moment is not waited for. `passed` are left out.
    """
    row = mine.connection.execute(NEXT, {**_whose(mine, agent, now), "passed": list(passed)}).mappings().one_or_none()
    return None if row is None else task_of(row)


def _whose(mine: Mine, agent: str, now: datetime) -> dict[str, Any]:
    return {"of_user": mine.user_id, "agent": storable(agent), "now": now}
