"""A person's time: the timer that runs, and where a week went."""

from datetime import timedelta

from frontdesk.memory.timing.service import WEEK
from frontdesk.surfaces.web.model import Shown
from frontdesk.surfaces.web.pages.people.whose import Whose

# Of a day; what more there is, the command tells.
MOST = 50


async def look(whose: Whose) -> Shown:
    days = await whose.room.timing.days(whose.scope, whose.said("day") or None)
    last, first = days[0].day, days[-1].day
    context = {
        "running": await whose.room.timing.running(whose.scope),
        "days": days,
        "total": sum(day.total_minutes for day in days),
        "longest": max(day.total_minutes for day in days),
        "most": MOST,
        "day": whose.said("day"),
        "older": first - timedelta(days=1),
        "newer": last + timedelta(days=WEEK),
    }
    return whose.shown("time", "time", context)
