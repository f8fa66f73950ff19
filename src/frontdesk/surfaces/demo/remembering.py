"""A person's day in the memory room: tasks, memories, what was done, and where the time went."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from frontdesk.memory.model import TaskStatus
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.demo.day import Day

Fields = Mapping[str, Any]

CATEGORIES: Sequence[Fields] = (
    {"name": "Work", "color": "#2457C5"},
    {"name": "Home", "color": "#17693A"},
    {"name": "Travel", "color": "#7A4B00"},
)
# (in how many days it is due, at what hour, the task)
TASKS: Sequence[tuple[int, str, Fields]] = (
    (1, "12:00", {"title": "Write the offer for Nord", "category": "Work", "priority": "urgent", "tags": ["nord"]}),
    (
        1,
        "17:00",
        {"title": "Review the new contract", "category": "Work", "priority": "high", "estimated_duration": 45},
    ),
    (2, "16:30", {"title": "Call Marta about the workshop", "category": "Work", "priority": "medium"}),
    (-1, "20:00", {"title": "Water the plants", "category": "Home", "priority": "low"}),
    (4, "18:00", {"title": "Find a hotel in Porto", "category": "Travel", "priority": "medium", "tags": ["porto"]}),
    (-1, "18:00", {"title": "Pay the electricity bill", "category": "Home", "priority": "high"}),
)
# (how many days before the last time that it was this hour, the hour, the memory)
MEMORIES: Sequence[tuple[int, str, Fields]] = (
    (0, "11:20", {"note": "Nord wants the offer as a PDF, with the prices per seat.", "tags": ["nord"]}),
    (0, "09:45", {"note": "Marta prefers calls after four.", "tags": ["people"], "salience_score": 0.6}),
    (
        0,
        "19:30",
        {"note": "The walk along the river was the best part of the day.", "is_highlight": True, "place_name": "Belém"},
    ),
    (0, "17:50", {"note": "Small batches get done; large ones wait.", "memory_type": "insight", "emotion_valence": 3}),
    (2, "15:10", {"note": "The blue notebook has the sketches for the workshop.", "tags": ["workshop"]}),
)
# (when it began, for how many minutes, what it was)
DONE: Sequence[tuple[str, int, Fields]] = (
    ("07:00", 40, {"title": "Run along the river", "activity_type": "exercise", "mood_after": 8}),
    ("12:30", 55, {"title": "Lunch with Jo", "activity_type": "socializing", "satisfaction_level": 9}),
    ("21:00", 30, {"title": "Read about queues", "activity_type": "learning", "mood_after": 7}),
)
# (task, how many days before, when it was begun, for how many minutes, what was done)
SPENT = (
    (0, 2, "10:00", 60, "What Nord asked for"),
    (4, 1, "18:10", 20, "The quarter by the river"),
    (0, 1, "09:10", 95, "First draft"),
    (1, 0, "11:30", 40, "Comments to legal"),
    (0, 0, "09:00", 50, "Prices"),
    (4, 0, "14:00", 20, "Three to choose from"),
)


async def remember(room: MemoryRoom, scope: Scope, helper: str, day: Day) -> None:
    """Have a day kept for a person, with `helper` as the agent that works for them."""
    await room.people.set_zone(scope, day.zone.key)
    for one in CATEGORIES:
        await room.categories.create(scope, one)
    tasks = await _tasks(room, scope, day)
    for days, hour, memory in MEMORIES:
        await room.memories.create(scope, {**memory, "captured_at": _told(day.past(hour, 0, days))})
    for hour, minutes, activity in DONE:
        began = {"started_at": _told(day.past(hour, minutes)), "duration_minutes": minutes}
        await room.activities.create(scope, {**activity, **began})
    for number, days, hour, minutes, note in SPENT:
        start = day.past(hour, minutes, days)
        span = {"start_at": _told(start), "end_at": _told(start + timedelta(minutes=minutes)), "note": note}
        await room.timing.add(scope, tasks[number], span)
    await room.timing.start(scope, tasks[1], "Second reading")
    work = {"task_id": tasks[4], "agent_id": helper, "objective": "Compare three hotels near the river"}
    await room.queue.create(scope, {**work, "task_type": "research"})


async def _tasks(room: MemoryRoom, scope: Scope, day: Day) -> Sequence[str]:
    """Their ids; two more stand below the first."""
    made: list[str] = []
    for days, hour, one in TASKS:
        made.append((await room.tasks.create(scope, {**one, "due_date": _told(day.due(hour, days))})).id)
    for title in ("Gather the prices", "Ask Jo to proofread"):
        await room.tasks.create(scope, {"title": title, "parent_task_id": made[0]})
    await room.tasks.set_status(scope, made[1], TaskStatus.IN_PROGRESS, progress=60)
    await room.tasks.set_status(scope, made[3], TaskStatus.COMPLETED)
    return made


def _told(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
