"""What a memory may be, what it is called, and how it stands on the timeline; pure."""

from dataclasses import replace
from datetime import datetime

from frontdesk.errors import Invalid
from frontdesk.loop.text import one_line
from frontdesk.memory import checks
from frontdesk.memory.model import Item, ItemStatus, ItemType, Memory, MemoryStatus

TITLE, TITLE_MADE, PLACE = 500, 80, 300
STATUSES = {
    MemoryStatus.ACTIVE: ItemStatus.ACTIVE,
    MemoryStatus.ARCHIVED: ItemStatus.ARCHIVED,
    MemoryStatus.DELETED: ItemStatus.DELETED,
}
BOUNDS = {
    "emotion_valence": (-5, 5),
    "emotion_arousal": (0, 5),
    "energy_delta": (-5, 5),
    "salience_score": (0, 1),
    "latitude": (-90, 90),
    "longitude": (-180, 180),
}


def title_of(note: str) -> str:
    """The first line that says something."""
    return next((one_line(line, TITLE_MADE) for line in note.splitlines() if line.strip()), "")


def titled(memory: Memory) -> Memory:
    """With a title made from its note where it has none."""
    return memory if memory.title.strip() else replace(memory, title=title_of(memory.note))


def checked(memory: Memory) -> Memory:
    """The memory, if there can be such a one."""
    if not memory.title.strip():
        raise Invalid("A memory needs a note that says something, or a title at least")
    checks.short(memory, "title", TITLE)
    checks.short(memory, "place_name", PLACE)
    for name, (least, most) in BOUNDS.items():
        checks.within(memory, name, least, most)
    if (memory.latitude is None) is not (memory.longitude is None):
        raise Invalid("latitude and longitude belong together: give both or neither")
    _check_happened(memory)
    return memory


def is_current(memory: Memory, now: datetime) -> bool:
    """Neither superseded nor expired."""
    return memory.superseded_by is None and (memory.expires_at is None or memory.expires_at > now)


def item_of(memory: Memory, was: Item | None = None) -> Item:
    """How it stands on the timeline; what others said of that item stays."""
    made = Item(
        id=memory.id,
        type=ItemType.MEMORY,
        title=memory.title,
        start_time=memory.happened_start or memory.captured_at,
        end_time=memory.happened_end,
        is_time_consuming=False,
        category_id=memory.category_id,
        tags=memory.tags,
        status=STATUSES[memory.status],
        metadata=memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )
    if was is None:
        return made
    return replace(made, priority=was.priority, render_on_timeline=was.render_on_timeline)


def text_of(memory: Memory) -> str:
    """What it is found by."""
    own = [] if memory.note.startswith(memory.title.rstrip("…")) else [memory.title]
    return "\n".join(part for part in (*own, memory.note, memory.place_name, " ".join(memory.tags)) if part)


def _check_happened(memory: Memory) -> None:
    start, end = memory.happened_start, memory.happened_end
    if end is not None and start is None:
        raise Invalid("What has an end has a start: give happened_range.start too")
    if start is not None and end is not None and end <= start:
        raise Invalid("happened_range.end must be after happened_range.start")
