"""Figures of the work queue, counted in the database."""

from collections import Counter

from sqlalchemy import func, select

from frontdesk.db.schema import ai_tasks as table
from frontdesk.memory.model import AiStatus
from frontdesk.memory.queue.figures.model import AiStats
from frontdesk.memory.queue.states import OPEN
from frontdesk.memory.store import Mine

ALIKE = (table.c.status, table.c.mode, table.c.task_type, table.c.agent_name)


def stats(mine: Mine) -> AiStats:
    own = table.c.user_id == mine.user_id
    rows = mine.connection.execute(select(*ALIKE, func.count().label("count")).where(own).group_by(*ALIKE)).all()
    counted: list[Counter[str]] = [Counter() for _ in ALIKE]
    for row in rows:
        for counter, name in zip(counted, row[:-1], strict=True):
            counter[name] += row[-1]
    by_status, by_mode, by_type, by_agent = (dict(sorted(counter.items())) for counter in counted)
    completed, failed = by_status.get(AiStatus.COMPLETED, 0), by_status.get(AiStatus.FAILED, 0)
    return AiStats(
        total=sum(by_status.values()),
        by_status=by_status,
        by_mode=by_mode,
        by_type=by_type,
        by_agent=by_agent,
        success_rate=round(100 * completed / (completed + failed), 1) if completed else 0.0,
        average_duration_min=_average_duration(mine),
        total_cost_usd=_total_cost(mine),
        overdue=_overdue(mine),
    )


def _average_duration(mine: Mine) -> float | None:
    done = (table.c.user_id == mine.user_id, table.c.status == AiStatus.COMPLETED)
    found = mine.connection.execute(select(func.avg(table.c.actual_duration_min)).where(*done)).scalar_one()
    return None if found is None else round(float(found), 1)


def _total_cost(mine: Mine) -> float:
    found = select(func.sum(table.c.actual_cost_usd)).where(table.c.user_id == mine.user_id)
    return round(float(mine.connection.execute(found).scalar_one() or 0), 6)


def _overdue(mine: Mine) -> int:
    late = (table.c.user_id == mine.user_id, table.c.due_at < mine.now, table.c.status.in_(OPEN))
    return mine.connection.execute(select(func.count()).select_from(table).where(*late)).scalar_one()
