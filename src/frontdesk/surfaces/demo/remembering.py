"""A person's day in the memory room: tasks, memories, what was done, and where the time went."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from frontdesk.memory.model import TaskStatus
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom

CATEGORIES: Sequence[Mapping[str, Any]] = (
    {"name": "Work", "color": "#2457C5"},
    {"name": "Home", "color": "#17693A"},
    {"name": "Travel", "color": "#7A4B00"},
)
TASKS: Sequence[Mapping[str, Any]] = (
    {"title": "Write the offer for Nord", "category": "Work", "priority": "urgent", "tags": ["nord", "sales"]},
    {"title": "Review the new contract", "category": "Work", "priority": "high", "estimated_duration": 45},
    {"title": "Call Marta about the workshop", "category": "Work", "priority": "medium"},
    {"title": "Water the plants", "category": "Home", "priority": "low"},
    {"title": "Find a hotel in Porto", "category": "Travel", "priority": "medium", "tags": ["porto"]},
    {"title": "Pay the electricity bill", "category": "Home", "priority": "high"},
)
MEMORIES: Sequence[tuple[float, Mapping[str, Any]]] = (
    (3, {"note": "Nord wants the offer as a PDF, with the prices per seat.", "tags": ["nord"], "salience_score": 0.8}),
    (5, {"note": "Marta prefers calls after four.", "tags": ["people"], "salience_score": 0.6}),
    (
        26,
        {"note": "The walk along the river was the best part of the day.", "is_highlight": True, "place_name": "Porto"},
    ),
    (30, {"note": "Small batches get done; large ones wait.", "memory_type": "insight", "emotion_valence": 3}),
    (50, {"note": "The blue notebook has the sketches for the workshop.", "tags": ["workshop"]}),
)
DONE: Sequence[tuple[float, Mapping[str, Any]]] = (
    (9, {"title": "Run along the river", "activity_type": "exercise", "duration_minutes": 40, "mood_after": 8}),
    (6, {"title": "Lunch with Jo", "activity_type": "socializing", "duration_minutes": 55, "satisfaction_level": 9}),
    (2, {"title": "Read about queues", "activity_type": "learning", "duration_minutes": 30, "mood_after": 7}),
)
# (task, how many hours ago it was begun, for how many minutes, what was done)
SPENT = (
    (0, 8.0, 95, "First draft"),
    (1, 5.5, 40, "Comments to legal"),
    (0, 4.0, 50, "Prices"),
    (4, 1.5, 20, "Looking"),
)


async def remember(room: MemoryRoom, scope: Scope, helper: str, now: datetime) -> Mapping[str, int]:
    """Have a day kept for a person, with `helper` as the agent that works for them; how much of what was made."""
    await room.people.set_zone(scope, "Europe/Lisbon")
    for one in CATEGORIES:
        await room.categories.create(scope, one)
    tasks = await _tasks(room, scope, now)
    for hours, memory in MEMORIES:
        await room.memories.create(scope, {**memory, "captured_at": _ago(now, hours)})
    for hours, activity in DONE:
        await room.activities.create(scope, {**activity, "started_at": _ago(now, hours)})
    for number, hours, minutes, note in SPENT:
        span = {"start_at": _ago(now, hours), "end_at": _ago(now, hours - minutes / 60), "note": note}
        await room.timing.add(scope, tasks[number], span)
    await room.timing.start(scope, tasks[1], "Second reading")
    work = {"task_id": tasks[4], "agent_id": helper, "objective": "Compare three hotels near the river"}
    await room.queue.create(scope, {**work, "task_type": "research"})
    return {"tasks": len(tasks), "memories": len(MEMORIES), "activities": len(DONE), "time entries": len(SPENT) + 1}


async def _tasks(room: MemoryRoom, scope: Scope, now: datetime) -> Sequence[str]:
    made: list[str] = []
    for days, one in enumerate(TASKS):
        due = (now + timedelta(days=days - 1)).date().isoformat()
        made.append((await room.tasks.create(scope, {**one, "due_date": due})).id)
    for title in ("Gather the prices", "Ask Jo to proofread"):
        await room.tasks.create(scope, {"title": title, "parent_task_id": made[0]})
    await room.tasks.set_status(scope, made[1], TaskStatus.IN_PROGRESS, progress=60)
    await room.tasks.set_status(scope, made[3], TaskStatus.COMPLETED)
    return made


def _ago(now: datetime, hours: float) -> str:
    return (now - timedelta(hours=hours)).isoformat(timespec="seconds")
