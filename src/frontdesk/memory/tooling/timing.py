"""The tools for the time that is spent."""

from collections.abc import Sequence

from frontdesk.errors import Denied
from frontdesk.memory.asked import timing as asked
from frontdesk.memory.asked.common import Nothing
from frontdesk.memory.model import ItemType, TimeEntry
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.timing.model import DaySpending
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.timing import day_told, entries_told, entry_told
from frontdesk.memory.tooling.telling.words import lines
from frontdesk.memory.tooling.tool import MAKES, Answer, MemoryTool, Told

DAY = (
    "Where a day's time went, from midnight to midnight where the person is: in all, by what it was spent on, and by "
    'category. Example: {"date": "2026-11-20", "timezone": "Europe/Berlin"}.'
)
ENTRIES = (
    "The time that was tracked on one task: each stretch, and their sum. Narrow it down to days with start_date and "
    'end_date. Example: {"task_id": "0199…", "start_date": "2026-11-01"}.'
)
START = (
    "Start tracking time on a task, as of now. A person has one timer at a time: where another task's runs, the answer "
    'says which, and that one must be stopped first. Example: {"task_id": "0199…", "description": "First draft"}.'
)
STOP = 'Stop the timer of a task; the answer says how long it ran. Example: {"task_id": "0199…"}.'
RUNNING = "The timer that runs right now, if one does: on what, since when, how long so far."


class TimerAnswer(Answer):
    """A stretch of time; none where no timer runs."""

    entry: TimeEntry | None


class TimeEntriesAnswer(Answer):
    """Stretches of time, and what they come to; what still runs is not in the sum."""

    entries: Sequence[TimeEntry]
    total_minutes: int


class DayAnswer(Answer):
    """Where a day went."""

    spending: DaySpending


async def day(room: MemoryRoom, scope: Scope, given: asked.DaySpending) -> Told:
    if given.user_id and given.user_id != scope.user_id:
        raise Denied("Only your own time can be asked for; leave user_id out")
    spending = await room.timing.day(scope, given.date, given.timezone)
    return Told(day_told(spending), DayAnswer(spending=spending))


async def entries(room: MemoryRoom, scope: Scope, given: asked.TaskTime) -> Told:
    found = await room.timing.of_item(scope, given.task_id, given.start_date, given.end_date, kind=ItemType.TASK)
    answer = TimeEntriesAnswer(entries=found, total_minutes=sum(one.duration_minutes or 0 for one in found))
    return Told(entries_told(found, answer.total_minutes, await clock(room, scope)), answer)


async def start(room: MemoryRoom, scope: Scope, given: asked.StartTimer) -> Told:
    started = await room.timing.start(scope, given.task_id, given.description, kind=ItemType.TASK)
    first = "Started." if started.created else "It runs already."
    return await _told(room, scope, started.entry, first)


async def stop(room: MemoryRoom, scope: Scope, given: asked.StopTimer) -> Told:
    entry = await room.timing.stop(scope, given.task_id, kind=ItemType.TASK)
    return await _told(room, scope, entry, "Stopped.")


async def running(room: MemoryRoom, scope: Scope, _given: Nothing) -> Told:
    return await _told(room, scope, await room.timing.running(scope), "Running.")


async def _told(room: MemoryRoom, scope: Scope, entry: TimeEntry | None, first: str) -> Told:
    if entry is None:
        return Told("No timer is running; start one with start_task_timer.", TimerAnswer(entry=None))
    return Told(lines(first, entry_told(entry, await clock(room, scope))), TimerAnswer(entry=entry))


TIMING: tuple[MemoryTool, ...] = (
    MemoryTool("get_day_time_spending", "Where a day went", DAY, asked.DaySpending, DayAnswer, day),
    MemoryTool("get_task_time_entries", "Time on a task", ENTRIES, asked.TaskTime, TimeEntriesAnswer, entries),
    MemoryTool("start_task_timer", "Start a timer", START, asked.StartTimer, TimerAnswer, start, **MAKES),
    MemoryTool("stop_task_timer", "Stop a timer", STOP, asked.StopTimer, TimerAnswer, stop, **MAKES),
    MemoryTool("get_running_timer", "The running timer", RUNNING, Nothing, TimerAnswer, running),
)
