"""Figures of the work queue, counted in the database."""

from collections import Counter

from sqlalchemy import ColumnElement, and_, func, select

from frontdesk.db.schema import ai_tasks as table
from frontdesk.memory.model import AiStatus
from frontdesk.memory.moments import span_of, today, zone_of
from frontdesk.memory.queue.figures.model import AiStats
from frontdesk.memory.queue.states import OPEN
from frontdesk.memory.store import Mine

ALIKE = (table.c.status, table.c.mode, table.c.task_type, table.c.agent_name)
COMPLETED, FAILED = table.c.status == AiStatus.COMPLETED, table.c.status == AiStatus.FAILED


def stats(mine: Mine, zone: str | None = None) -> AiStats:
    own = table.c.user_id == mine.user_id
    rows = mine.connection.execute(select(*ALIKE, func.count().label("count")).where(own).group_by(*ALIKE)).all()
    counted: list[Counter[str]] = [Counter() for _ in ALIKE]
    for row in rows:
        for counter, name in zip(counted, row[:-1], strict=True):
            counter[name] += row[-1]
    by_status, by_mode, by_type, by_agent = (dict(sorted(counter.items())) for counter in counted)
    completed, failed = by_status.get(AiStatus.COMPLETED, 0), by_status.get(AiStatus.FAILED, 0)
    done_today = and_(COMPLETED, _today(mine, table.c.completed_at, zone))
    # A piece that has failed is not changed any more until it is assigned again.
    failed_today = and_(FAILED, _today(mine, table.c.updated_at, zone))
    late = and_(table.c.due_at < mine.now, table.c.status.in_(OPEN))
    found = mine.connection.execute(
        select(
            func.count().filter(done_today).label("completed_today"),
            func.count().filter(failed_today).label("failed_today"),
            func.count().filter(late).label("overdue"),
            func.avg(table.c.actual_duration_min).filter(COMPLETED).label("duration"),
            func.avg(table.c.actual_cost_usd).filter(COMPLETED).label("cost"),
            func.sum(table.c.actual_cost_usd).label("spent"),
            func.sum(table.c.actual_cost_usd).filter(done_today).label("spent_today"),
        ).where(own)
    ).one()
    duration = None if found.duration is None else round(float(found.duration), 1)
    return AiStats(
        total=sum(by_status.values()),
        active=sum(by_status.get(status, 0) for status in OPEN),
        completed=completed,
        failed=failed,
        overdue=found.overdue,
        pending_for_agent=by_status.get(AiStatus.ASSIGNED, 0),
        in_progress=by_status.get(AiStatus.IN_PROGRESS, 0),
        completed_today=found.completed_today,
        failed_today=found.failed_today,
        by_status=by_status,
        by_mode=by_mode,
        by_type=by_type,
        by_task_type=by_type,
        by_agent=by_agent,
        success_rate=round(completed / (completed + failed), 3) if completed else 0.0,
        avg_duration_min=duration,
        avg_completion_time=duration or 0.0,
        avg_cost_usd=None if found.cost is None else round(float(found.cost), 6),
        total_cost_usd=round(float(found.spent or 0), 6),
        total_cost_today=round(float(found.spent_today or 0), 6),
    )


def _today(mine: Mine, moment: ColumnElement[object], zone: str | None) -> ColumnElement[bool]:
    where = zone_of(zone, mine.zone_name)
    day = span_of(today(mine.now, where), where)
    return and_(moment >= day.start, moment < day.end)
