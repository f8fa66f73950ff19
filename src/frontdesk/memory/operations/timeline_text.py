"""Describes memories, activities, timeline items and categories as text, for models and terminals."""

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from frontdesk.memory.activities_rules import ActivityStats
from frontdesk.memory.memories_rules import MemoryStats
from frontdesk.memory.model import (
    Activity,
    ActivityStatus,
    Category,
    ContextItem,
    ItemHit,
    Memory,
    MemoryStatus,
    Priority,
    TimelineItem,
)
from frontdesk.memory.operations.base import (
    MAX_LINE,
    format_count,
    format_counts,
    format_minutes,
    format_span,
    format_tags,
    format_time,
    format_when,
    join_lines,
    join_parts,
    labelled_line,
    labelled_text,
)
from frontdesk.text import one_line


def format_memory_line(memory: Memory, zone: ZoneInfo) -> str:
    """A memory on two lines: what it is, and how its note begins."""
    begins = one_line(memory.note, MAX_LINE)
    return join_lines(
        f"- {memory.title} (id {memory.id}): {_format_memory_status(memory, zone)}",
        f"  {begins}" if begins and begins != memory.title else "",
    )


def format_memory(memory: Memory, zone: ZoneInfo) -> str:
    """A memory with everything that is known of it."""
    return join_lines(
        f"{memory.title} (id {memory.id}): {_format_memory_status(memory, zone)}",
        labelled_text("Note", "" if memory.note == memory.title else memory.note),
        _format_memory_feeling(memory),
        f"Category {memory.category_id}" if memory.category_id else "",
        f"It replaced {memory.supersedes}." if memory.supersedes else "",
        f"It was replaced by {memory.superseded_by}; use that one." if memory.superseded_by else "",
        f"True until {format_time(memory.expires_at, zone)}." if memory.expires_at else "",
    )


def format_memory_stats(found: MemoryStats) -> str:
    averages = (("valence", found.average_valence, "of -5 to 5"), ("salience", found.average_salience, "of 0 to 1"))
    said = join_parts(f"{name} {value:g} {scale}" for name, value, scale in averages if value is not None)
    return join_lines(
        f"{format_count(found.total, 'memory', 'memories')}, {format_count(found.highlights, 'highlight')}; "
        f"{found.this_week:,} this week, {found.this_month:,} this month",
        format_counts("By type", found.by_type),
        format_counts("By place", found.by_place),
        format_counts("By tag", found.by_tag),
        f"On average: {said}" if said else "",
        f"Kept, and no longer found: {found.superseded:,} superseded, {found.expired:,} expired"
        if found.superseded or found.expired
        else "",
    )


def _format_memory_status(memory: Memory, zone: ZoneInfo) -> str:
    return join_parts(
        [
            memory.memory_type,
            "" if memory.status is MemoryStatus.ACTIVE else memory.status,
            "highlight" if memory.is_highlight else "",
            f"captured {format_time(memory.captured_at, zone)}",
            f"happened {format_when(memory.happened_start, memory.happened_end, zone)}"
            if memory.happened_start
            else "",
            f"at {memory.place_name}" if memory.place_name else "",
            f"salience {memory.salience_score:g}" if memory.salience_score is not None else "",
            format_tags(memory.tags),
        ]
    )


def _format_memory_feeling(memory: Memory) -> str:
    scales = (
        ("valence", memory.emotion_valence, "of -5 to 5"),
        ("arousal", memory.emotion_arousal, "of 0 to 5"),
        ("energy", memory.energy_delta, "of -5 to 5"),
    )
    said = join_parts(f"{name} {value} {scale}" for name, value, scale in scales if value is not None)
    return f"Felt: {said}" if said else ""


def format_activity_line(activity: Activity, zone: ZoneInfo) -> str:
    """An activity on one line, with the id that other tools ask for."""
    return f"- {activity.title} (id {activity.id}): {_format_activity_status(activity, zone)}"


def format_activity(activity: Activity, zone: ZoneInfo) -> str:
    """An activity with everything that is known of it."""
    return join_lines(
        format_activity_line(activity, zone).removeprefix("- "),
        labelled_text("Description", activity.description),
        _format_activity_feelings(activity),
        _format_setting(activity),
        labelled_text("Notes", activity.notes),
        labelled_text("Insights", activity.insights),
        labelled_text("Gratitude", activity.gratitude),
        f"Category {activity.category_id}" if activity.category_id else "",
    )


def format_activity_stats(found: ActivityStats) -> str:
    averages = (
        ("satisfaction", found.average_satisfaction, "{:g} of 10"),
        ("mood", found.average_mood_change, "{:+g}"),
        ("energy", found.average_energy_change, "{:+g}"),
    )
    said = join_parts(f"{name} {form.format(value)}" for name, value, form in averages if value is not None)
    return join_lines(
        f"{format_count(found.total, 'activity', 'activities')}, {format_minutes(found.total_minutes)} in all; "
        f"{found.this_week:,} this week, {found.this_month:,} this month",
        format_counts("By type", found.by_type),
        format_counts("Minutes by type", found.minutes_by_type),
        format_counts("By status", found.by_status),
        f"On average: {said}" if said else "",
    )


def _format_activity_status(activity: Activity, zone: ZoneInfo) -> str:
    return join_parts(
        [
            activity.activity_type,
            activity.status,
            _format_activity_time(activity, zone),
            format_minutes(activity.duration_minutes) if activity.duration_minutes else "",
            f"{activity.intensity_level} intensity",
            f"satisfaction {activity.satisfaction_level} of 10" if activity.satisfaction_level else "",
            format_tags(activity.tags),
        ]
    )


def _format_activity_time(activity: Activity, zone: ZoneInfo) -> str:
    if activity.status is ActivityStatus.ACTIVE:
        return format_span(activity.started_at, activity.ended_at, zone)
    return format_when(activity.started_at, activity.ended_at, zone)


def _format_activity_feelings(activity: Activity) -> str:
    said = join_parts(
        [
            _format_change("mood", activity.mood_before, activity.mood_after),
            _format_change("energy", activity.energy_before, activity.energy_after),
        ]
    )
    return f"Felt: {said} (of 10)" if said else ""


def _format_change(what: str, before: int | None, after: int | None) -> str:
    if before is not None and after is not None:
        return f"{what} {before} before, {after} after"
    if before is None and after is None:
        return ""
    return f"{what} {before} before" if before is not None else f"{what} {after} after"


def _format_setting(activity: Activity) -> str:
    said = join_parts(
        [
            f"at {activity.location}" if activity.location else "",
            f"weather {activity.weather}" if activity.weather else "",
            f"with {', '.join(activity.companions)}" if activity.companions else "",
        ]
    )
    return said[:1].upper() + said[1:]


def format_item_line(item: TimelineItem, zone: ZoneInfo) -> str:
    """An item on one line, with the id that other tools ask for."""
    return f"- {item.title} ({item.type}, id {item.id}): {_format_item_status(item, zone)}"


def format_item(item: TimelineItem, zone: ZoneInfo) -> str:
    return join_lines(
        format_item_line(item, zone).removeprefix("- "),
        labelled_line("Description", item.description),
        f"Category {item.category_id}" if item.category_id else "",
    )


def format_category_line(category: Category) -> str:
    said = join_parts([f"id {category.id}", category.color, category.icon])
    return f"- {category.name} ({said}){f': {category.description}' if category.description else ''}"


def format_hits(hits: Sequence[ItemHit], near: Mapping[str, Sequence[ContextItem]], zone: ZoneInfo) -> str:
    """The hits, the best first, each with what lies around it."""
    head = f"Found {format_count(len(hits), 'item')}, the best first:"
    return join_lines(head, *(_format_hit(place, hit, near[hit.item.id], zone) for place, hit in enumerate(hits, 1)))


def _format_hit(place: int, hit: ItemHit, near: Sequence[ContextItem], zone: ZoneInfo) -> str:
    begins = one_line(hit.text, MAX_LINE)
    around = ", ".join(f"{one.tie} {one.item.title} ({one.item.type}, id {one.item.id})" for one in near)
    return join_lines(
        f"{place}. {format_item_line(hit.item, zone).removeprefix('- ')}",
        f"   {begins}" if begins != hit.item.title else "",
        f"   fits {100 * hit.score:.0f} of 100: {hit.why}",
        f"   around it: {around}" if around else "",
    )


def _format_item_status(item: TimelineItem, zone: ZoneInfo) -> str:
    return join_parts(
        [
            item.status,
            "" if item.priority is Priority.MEDIUM else f"{item.priority} priority",
            _format_item_time(item, zone),
            format_tags(item.tags),
        ]
    )


def _format_item_time(item: TimelineItem, zone: ZoneInfo) -> str:
    """The time of an item, or when it was created if it has none."""
    if item.start_time is not None:
        return format_when(item.start_time, item.end_time, zone)
    return f"by {format_time(item.end_time, zone)}" if item.end_time else f"made {format_time(item.created_at, zone)}"
