"""The tools for activities."""

from collections.abc import Sequence
from functools import partial

from frontdesk.memory.activities.wanted import ActivityStats, ActivityWanted
from frontdesk.memory.asked import activities as asked
from frontdesk.memory.asked.common import Nothing, Which
from frontdesk.memory.model import Activity
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.activities import activity_line, activity_told, stats_told
from frontdesk.memory.tooling.telling.words import lines, listed
from frontdesk.memory.tooling.tool import CHANGES, MAKES, Answer, MemoryTool, Told

CREATE = (
    "Write down something that the person did or does, and how it felt: a run, a walk, an evening with friends. Title "
    "and type are needed. Moods, energies and satisfaction go from 1 to 10. Of start, end and duration_minutes, two "
    'are enough. Example: {"title": "Run along the river", "activity_type": "exercise", '
    '"started_at": "2026-11-20T07:00", "duration_minutes": 35, "mood_before": 5, "mood_after": 8, '
    '"satisfaction_level": 9, "intensity_level": "moderate"}. With status active it is still going on.'
)
SEARCH = (
    "Find activities: by words in them, type, when they began, where, how hard or how satisfying they were. All that "
    'is given must hold; nothing given lists all. Example: {"activity_type": "exercise", "from": "2026-11-01", '
    '"min_satisfaction": 7}.'
)
GET = "One activity by its id, with all that was written down of it."
UPDATE = (
    "Change an activity, or end one that is going on. What you leave out stays as it is. "
    'Example: {"id": "0199…", "status": "completed", "ended_at": "2026-11-20T08:10", "mood_after": 8}.'
)
STATS = "The person's activities in figures: how many and how long by type, how satisfying, what they do to the mood."
NONE = "No activity is like that. Leave out some of what you asked for, or write one down with create_activity."


class ActivityAnswer(Answer):
    """One activity."""

    activity: Activity


class ActivitiesAnswer(Answer):
    """Some activities, and how many there are in all."""

    activities: Sequence[Activity]
    total: int
    offset: int
    has_more: bool


class ActivityStatsAnswer(Answer):
    """The activities in figures."""

    stats: ActivityStats


async def create(room: MemoryRoom, scope: Scope, given: asked.CreateActivity) -> Told:
    return await _told(room, scope, await room.activities.create(scope, given.said()), "Written down.")


async def search(room: MemoryRoom, scope: Scope, given: asked.SearchActivities) -> Told:
    said = given.said("from_", "to", "limit", "offset")
    wanted = ActivityWanted(
        **said, started_from=given.from_, started_to=given.to, limit=given.limit, offset=given.offset
    )
    page = await room.activities.list(scope, wanted)
    zone = await clock(room, scope)
    text = listed(page, partial(activity_line, zone=zone), "activity", "activities", none=NONE)
    answer = ActivitiesAnswer(activities=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Told(text, answer)


async def get(room: MemoryRoom, scope: Scope, given: Which) -> Told:
    return await _told(room, scope, await room.activities.get(scope, given.id))


async def update(room: MemoryRoom, scope: Scope, given: asked.UpdateActivity) -> Told:
    return await _told(room, scope, await room.activities.update(scope, given.id, given.said("id")), "Changed.")


async def stats(room: MemoryRoom, scope: Scope, _given: Nothing) -> Told:
    found = await room.activities.stats(scope)
    return Told(stats_told(found), ActivityStatsAnswer(stats=found))


async def _told(room: MemoryRoom, scope: Scope, activity: Activity, first: str = "") -> Told:
    text = lines(first, activity_told(activity, await clock(room, scope)))
    return Told(text, ActivityAnswer(activity=activity))


ACTIVITIES: tuple[MemoryTool, ...] = (
    MemoryTool(
        "create_activity", "Write down an activity", CREATE, asked.CreateActivity, ActivityAnswer, create, **MAKES
    ),
    MemoryTool("search_activities", "Find activities", SEARCH, asked.SearchActivities, ActivitiesAnswer, search),
    MemoryTool("get_activity", "Look at an activity", GET, Which, ActivityAnswer, get),
    MemoryTool(
        "update_activity", "Change an activity", UPDATE, asked.UpdateActivity, ActivityAnswer, update, **CHANGES
    ),
    MemoryTool("get_activity_stats", "Activities in figures", STATS, Nothing, ActivityStatsAnswer, stats),
)
