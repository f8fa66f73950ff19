"""How everything stands, in numbers, over HTTP."""

from datetime import UTC, datetime

from fastapi import APIRouter

from frontdesk.memory.activities.wanted import ActivityStats
from frontdesk.memory.memories.wanted import MemoryStats
from frontdesk.memory.model import TimeEntry
from frontdesk.memory.moments import today, zone_of
from frontdesk.memory.queue.figures.model import AiStats
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tasks.stats import TaskStats
from frontdesk.surfaces.rest.memory.queries import Where
from frontdesk.surfaces.rest.memory.told import Told
from frontdesk.surfaces.rest.memory.who import ReadsNumbers


class TimeStats(Told):
    """The time that was tracked today, and the timer that runs."""

    minutes_today: int
    entries_today: int
    running: TimeEntry | None


class Stats(Told):
    """Of everything."""

    tasks: TaskStats
    memories: MemoryStats
    activities: ActivityStats
    time: TimeStats
    ai_tasks: AiStats


def add_stats(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/stats", summary="How everything stands, in numbers")
    async def show_stats(scope: ReadsNumbers, timezone: Where = None) -> Stats:
        return Stats(
            tasks=await room.tasks.stats(scope, zone=timezone),
            memories=await room.memories.stats(scope, timezone),
            activities=await room.activities.stats(scope, timezone),
            time=await _time(room, scope, timezone),
            ai_tasks=await room.queue.stats(scope, timezone),
        )


async def _time(room: MemoryRoom, scope: Scope, timezone: str | None) -> TimeStats:
    where = zone_of(timezone, await room.people.zone(scope))
    spent = await room.timing.day(scope, today(datetime.now(UTC), where).isoformat(), where.key)
    running = await room.timing.running(scope)
    return TimeStats(minutes_today=spent.total_minutes, entries_today=len(spent.entries), running=running)
