"""The facts of a stretch of time, read from the database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select

from frontdesk.db.schema import activities, categories, memories, tasks, time_entries
from frontdesk.db.schema import timeline_items as items
from frontdesk.memory.items.store import split
from frontdesk.memory.model import ItemStatus, ItemType, MemoryStatus, TaskStatus
from frontdesk.memory.moments import Span
from frontdesk.memory.store import Mine
from frontdesk.memory.timeline.model import Facts, Feeling, Stretch, TaskFact, Thing, Tracked

# A memory counts for when it was captured, an activity for when it began, all else for when it was made.
AT = func.coalesce(memories.c.captured_at, activities.c.started_at, items.c.created_at)
WITH_OWN = items.outerjoin(
    memories, and_(memories.c.user_id == items.c.user_id, memories.c.id == items.c.id)
).outerjoin(activities, and_(activities.c.user_id == items.c.user_id, activities.c.id == items.c.id))


def facts(mine: Mine, stretch: Stretch) -> Facts:
    return Facts(
        stretch=stretch,
        now=mine.now,
        things=_things(mine, stretch.span),
        tasks=_tasks(mine, Span(stretch.before.start, stretch.span.end)),
        tracked=_tracked(mine, stretch.span),
        feelings=[*_activities(mine, stretch.span), *_memories(mine, stretch.span)],
    )


def _things(mine: Mine, span: Span) -> Sequence[Thing]:
    shown = (items.c.user_id == mine.user_id, items.c.status != ItemStatus.DELETED, memories.c.superseded_by.is_(None))
    found = select(items.c.type, AT.label("at"), items.c.tags).select_from(WITH_OWN).where(*shown, _in(AT, span))
    return [Thing(ItemType(row.type), row.at, split(row.tags)) for row in mine.connection.execute(found)]


def _tasks(mine: Mine, span: Span) -> Sequence[TaskFact]:
    moments = (items.c.created_at, tasks.c.due_date, tasks.c.completion_date)
    together = and_(items.c.user_id == tasks.c.user_id, items.c.id == tasks.c.id)
    touched = or_(*(_in(moment, span) for moment in moments))
    found = select(tasks.c.status, *moments).where(tasks.c.user_id == mine.user_id, together, touched)
    return [
        TaskFact(TaskStatus(row.status), row.created_at, row.due_date, row.completion_date)
        for row in mine.connection.execute(found)
    ]


def _tracked(mine: Mine, span: Span) -> Sequence[Tracked]:
    named = and_(categories.c.user_id == time_entries.c.user_id, categories.c.id == time_entries.c.category_id)
    overlaps = (
        time_entries.c.start_at < span.end,
        or_(time_entries.c.end_at.is_(None), time_entries.c.end_at > span.start),
    )
    found = (
        select(time_entries.c.start_at, time_entries.c.end_at, categories.c.name)
        .select_from(time_entries.outerjoin(categories, named))
        .where(time_entries.c.user_id == mine.user_id, *overlaps)
    )
    return [Tracked(row.start_at, row.end_at, row.name) for row in mine.connection.execute(found)]


def _activities(mine: Mine, span: Span) -> Sequence[Feeling]:
    moods = (activities.c.mood_after - activities.c.mood_before).label("mood")
    energies = (activities.c.energy_after - activities.c.energy_before).label("energy")
    begun = (activities.c.user_id == mine.user_id, _in(activities.c.started_at, span))
    rows = mine.connection.execute(select(moods, energies, activities.c.location).where(*begun))
    return [Feeling(mood_change=row.mood, energy_change=row.energy, place=row.location) for row in rows]


def _memories(mine: Mine, span: Span) -> Sequence[Feeling]:
    shown = (memories.c.status != MemoryStatus.DELETED, memories.c.superseded_by.is_(None))
    captured = (memories.c.user_id == mine.user_id, _in(memories.c.captured_at, span))
    rows = mine.connection.execute(select(memories.c.emotion_valence, memories.c.place_name).where(*captured, *shown))
    return [Feeling(valence=row.emotion_valence, place=row.place_name) for row in rows]


def _in(moment: ColumnElement[Any], span: Span) -> ColumnElement[bool]:
    return and_(moment >= span.start, moment < span.end)
