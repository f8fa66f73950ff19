"""Memories in words."""

from zoneinfo import ZoneInfo

from frontdesk.loop.text import one_line
from frontdesk.memory.memories.wanted import MemoryStats
from frontdesk.memory.model import Memory, MemoryStatus
from frontdesk.memory.tooling.telling.words import SHOWN, about, count, lines, placed, tagged, tallied, when, whole


def memory_line(memory: Memory, zone: ZoneInfo) -> str:
    """On two lines: what it is, and how it begins."""
    begins = one_line(memory.note, SHOWN)
    return lines(
        f"- {memory.title} (id {memory.id}): {_standing(memory, zone)}",
        f"  {begins}" if begins and begins != memory.title else "",
    )


def memory_told(memory: Memory, zone: ZoneInfo) -> str:
    """With all that is known of it."""
    return lines(
        f"{memory.title} (id {memory.id}): {_standing(memory, zone)}",
        whole("Note", "" if memory.note == memory.title else memory.note),
        _feeling(memory),
        f"Category {memory.category_id}" if memory.category_id else "",
        f"It replaced {memory.supersedes}." if memory.supersedes else "",
        f"It was replaced by {memory.superseded_by}; use that one." if memory.superseded_by else "",
        f"True until {when(memory.expires_at, zone)}." if memory.expires_at else "",
    )


def stats_told(found: MemoryStats) -> str:
    averages = (("valence", found.average_valence, "of -5 to 5"), ("salience", found.average_salience, "of 0 to 1"))
    said = about(f"{name} {value:g} {scale}" for name, value, scale in averages if value is not None)
    return lines(
        f"{count(found.total, 'memory', 'memories')}, {count(found.highlights, 'highlight')}; "
        f"{found.this_week:,} this week, {found.this_month:,} this month",
        tallied("By type", found.by_type),
        tallied("By place", found.by_place),
        tallied("By tag", found.by_tag),
        f"On average: {said}" if said else "",
        f"Kept, and no longer found: {found.superseded:,} superseded, {found.expired:,} expired"
        if found.superseded or found.expired
        else "",
    )


def _standing(memory: Memory, zone: ZoneInfo) -> str:
    return about(
        [
            memory.memory_type,
            "" if memory.status is MemoryStatus.ACTIVE else memory.status,
            "highlight" if memory.is_highlight else "",
            f"captured {when(memory.captured_at, zone)}",
            f"happened {placed(memory.happened_start, memory.happened_end, zone)}" if memory.happened_start else "",
            f"at {memory.place_name}" if memory.place_name else "",
            f"salience {memory.salience_score:g}" if memory.salience_score is not None else "",
            tagged(memory.tags),
        ]
    )


def _feeling(memory: Memory) -> str:
    scales = (
        ("valence", memory.emotion_valence, "of -5 to 5"),
        ("arousal", memory.emotion_arousal, "of 0 to 5"),
        ("energy", memory.energy_delta, "of -5 to 5"),
    )
    said = about(f"{name} {value} {scale}" for name, value, scale in scales if value is not None)
    return f"Felt: {said}" if said else ""
