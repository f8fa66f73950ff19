"""The timeline in words."""

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from frontdesk.loop.text import one_line
from frontdesk.memory.model import Category, Item, Priority
from frontdesk.memory.recall.model import Hit, Near
from frontdesk.memory.tooling.telling.words import SHOWN, about, count, lines, more, placed, tagged, when


def item_line(item: Item, zone: ZoneInfo) -> str:
    """On one line, with the id that other tools ask for."""
    return f"- {item.title} ({item.type}, id {item.id}): {_standing(item, zone)}"


def item_told(item: Item, zone: ZoneInfo) -> str:
    return lines(
        item_line(item, zone).removeprefix("- "),
        more("Description", item.description),
        f"Category {item.category_id}" if item.category_id else "",
    )


def category_line(category: Category) -> str:
    said = about([f"id {category.id}", category.color, category.icon])
    return f"- {category.name} ({said}){f': {category.description}' if category.description else ''}"


def found_told(hits: Sequence[Hit], near: Mapping[str, Sequence[Near]], zone: ZoneInfo) -> str:
    """What was found, the best first, each with what lies around it."""
    head = f"Found {count(len(hits), 'item')}, the best first:"
    return lines(head, *(_hit_told(place, hit, near[hit.item.id], zone) for place, hit in enumerate(hits, 1)))


def _hit_told(place: int, hit: Hit, near: Sequence[Near], zone: ZoneInfo) -> str:
    begins = one_line(hit.text, SHOWN)
    around = ", ".join(f"{one.tie} {one.item.title} ({one.item.type}, id {one.item.id})" for one in near)
    return lines(
        f"{place}. {item_line(hit.item, zone).removeprefix('- ')}",
        f"   {begins}" if begins != hit.item.title else "",
        f"   fits {100 * hit.score:.0f} of 100: {hit.why}",
        f"   around it: {around}" if around else "",
    )


def _standing(item: Item, zone: ZoneInfo) -> str:
    return about(
        [
            item.status,
            "" if item.priority is Priority.MEDIUM else f"{item.priority} priority",
            _when(item, zone),
            tagged(item.tags),
        ]
    )


def _when(item: Item, zone: ZoneInfo) -> str:
    """When it was or is to be; where that was never said, when it was made."""
    if item.start_time is not None:
        return placed(item.start_time, item.end_time, zone)
    return f"by {when(item.end_time, zone)}" if item.end_time else f"made {when(item.created_at, zone)}"
