"""What numbers say, in plain English; pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from frontdesk.memory.timeline.model import DateRange, Insights, TaskFigures

MOST = 6
HOUR = 60
LAST = {
    DateRange.TODAY: "Today",
    DateRange.WEEK: "In the last 7 days",
    DateRange.MONTH: "In the last 30 days",
    DateRange.QUARTER: "In the last 90 days",
    DateRange.YEAR: "In the last 365 days",
}
PLURALS = {"task": "tasks", "activity": "activities", "routine": "routines", "habit": "habits", "memory": "memories"}


def sentences(found: Insights) -> Sequence[str]:
    """Two to six, of what matters most; one where there is nothing to tell of."""
    told = [line for line in _all(found) if line]
    return told[:MOST] or [f"{LAST[found.date_range]} nothing was put down: no task, memory, activity or time."]


def _all(found: Insights) -> Iterator[str]:
    yield _counted(found)
    yield _tasks(found.tasks, "the day before" if found.first_day == found.last_day else "in the days before")
    yield _time(found)
    yield _feelings(found)
    yield _topics(found)
    yield _days(found)


def _counted(found: Insights) -> str:
    if not found.total:
        return ""
    parts = [f"{number} {kind if number == 1 else PLURALS[kind]}" for kind, number in found.counts.items()]
    return f"{LAST[found.date_range]} you added {_listed(parts)}."


def _tasks(tasks: TaskFigures, before: str) -> str:
    if not (tasks.completed or tasks.overdue or tasks.completion_rate is not None):
        return ""
    rate = "" if tasks.completion_rate is None else f", {tasks.completion_rate:g}% of those at hand"
    late = (
        f"; {tasks.overdue} that fell due {'is' if tasks.overdue == 1 else 'are'} still open" if tasks.overdue else ""
    )
    return f"You completed {_number(tasks.completed, 'task')}{rate}{_compared(tasks, before)}{late}."


def _compared(tasks: TaskFigures, before: str) -> str:
    now, then = tasks.completion_rate, tasks.completion_rate_before
    if now is None or then is None:
        return ""
    if now == then:
        return f", the same as {before}"
    return f", {'up' if now > then else 'down'} from {then:g}% {before}"


def _time(found: Insights) -> str:
    if not found.tracked_minutes:
        return ""
    most = next(iter(found.minutes_by_category.items()))
    day, hour = found.busiest_day, found.busiest_hour
    share = f", the most under {most[0]} ({_minutes(most[1])})" if len(found.minutes_by_category) > 1 else ""
    busiest = f"; the busiest day was {_day(day.date)}" if day is not None and found.first_day != found.last_day else ""
    clock = f"{' and' if busiest else '; the busiest was'} the hour from {hour.hour:02}:00" if hour is not None else ""
    return f"You tracked {_minutes(found.tracked_minutes)}{share}{busiest}{clock}."


def _feelings(found: Insights) -> str:
    changes = {"mood": found.average_mood_change, "energy": found.average_energy_change}
    parts = [f"your {name} {_moved(change)}" for name, change in changes.items() if change is not None]
    said = [f"after activities {_listed(parts)} on average"] if parts else []
    if found.average_valence is not None:
        said.append(f"the tone of your memories was {found.tone} ({found.average_valence:+g} on a scale of -5 to 5)")
    line = "; ".join(said)
    return f"{line[0].upper()}{line[1:]}." if line else ""


def _moved(change: float) -> str:
    if change == 0:
        return "stayed as it was"
    return f"{'rose' if change > 0 else 'fell'} by {abs(change):g}"


def _topics(found: Insights) -> str:
    parts = [f"{what} {_ranked(names)}" for what, names in _named(found) if names]
    return f"You most often used {' and '.join(parts)}." if parts else ""


def _named(found: Insights) -> Sequence[tuple[str, Mapping[str, int]]]:
    return [
        ("the tag" if len(found.tags) == 1 else "the tags", found.tags),
        ("the place" if len(found.places) == 1 else "the places", found.places),
    ]


def _days(found: Insights) -> str:
    if not found.active_days:
        return ""
    if found.first_day == found.last_day:
        return f"The day before you completed {_number(found.tasks.completed_before, 'task')}."
    days = (found.last_day - found.first_day).days + 1
    row = f"; the longest streak was {found.longest_streak} in a row" if found.longest_streak > 1 else ""
    return f"There is something on {found.active_days} of {days} days{row}."


def _ranked(names: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in list(names.items())[:3])


def _listed(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def _number(number: int, what: str) -> str:
    return f"{number or 'no'} {what if number == 1 else PLURALS[what]}"


def _minutes(minutes: int) -> str:
    hours, rest = divmod(minutes, HOUR)
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else ""]
    return " ".join(part for part in parts if part)


def _day(day: date) -> str:
    return f"{day:%A}, {day.isoformat()}"
