"""Activities in words."""

from zoneinfo import ZoneInfo

from frontdesk.memory.activities.wanted import ActivityStats
from frontdesk.memory.model import Activity, ActivityStatus
from frontdesk.memory.tooling.telling.words import about, count, length, lines, placed, span, tagged, tallied, whole


def activity_line(activity: Activity, zone: ZoneInfo) -> str:
    """On one line, with the id that other tools ask for."""
    return f"- {activity.title} (id {activity.id}): {_standing(activity, zone)}"


def activity_told(activity: Activity, zone: ZoneInfo) -> str:
    """With all that is known of it."""
    return lines(
        activity_line(activity, zone).removeprefix("- "),
        whole("Description", activity.description),
        _felt(activity),
        _where(activity),
        whole("Notes", activity.notes),
        whole("Insights", activity.insights),
        whole("Gratitude", activity.gratitude),
        f"Category {activity.category_id}" if activity.category_id else "",
    )


def stats_told(found: ActivityStats) -> str:
    averages = (
        ("satisfaction", found.average_satisfaction, "{:g} of 10"),
        ("mood", found.average_mood_change, "{:+g}"),
        ("energy", found.average_energy_change, "{:+g}"),
    )
    said = about(f"{name} {form.format(value)}" for name, value, form in averages if value is not None)
    return lines(
        f"{count(found.total, 'activity', 'activities')}, {length(found.total_minutes)} in all; "
        f"{found.this_week:,} this week, {found.this_month:,} this month",
        tallied("By type", found.by_type),
        tallied("Minutes by type", found.minutes_by_type),
        tallied("By status", found.by_status),
        f"On average: {said}" if said else "",
    )


def _standing(activity: Activity, zone: ZoneInfo) -> str:
    return about(
        [
            activity.activity_type,
            activity.status,
            _when(activity, zone),
            length(activity.duration_minutes) if activity.duration_minutes else "",
            f"{activity.intensity_level} intensity",
            f"satisfaction {activity.satisfaction_level} of 10" if activity.satisfaction_level else "",
            tagged(activity.tags),
        ]
    )


def _when(activity: Activity, zone: ZoneInfo) -> str:
    if activity.status is ActivityStatus.ACTIVE:
        return span(activity.started_at, activity.ended_at, zone)
    return placed(activity.started_at, activity.ended_at, zone)


def _felt(activity: Activity) -> str:
    said = about(
        [
            _change("mood", activity.mood_before, activity.mood_after),
            _change("energy", activity.energy_before, activity.energy_after),
        ]
    )
    return f"Felt: {said} (of 10)" if said else ""


def _change(what: str, before: int | None, after: int | None) -> str:
    if before is not None and after is not None:
        return f"{what} {before} before, {after} after"
    if before is None and after is None:
        return ""
    return f"{what} {before} before" if before is not None else f"{what} {after} after"


def _where(activity: Activity) -> str:
    said = about(
        [
            f"at {activity.location}" if activity.location else "",
            f"weather {activity.weather}" if activity.weather else "",
            f"with {', '.join(activity.companions)}" if activity.companions else "",
        ]
    )
    return said[:1].upper() + said[1:]
