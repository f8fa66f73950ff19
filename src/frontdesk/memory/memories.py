"""Offers memories: add, change, supersede, anchor, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.memory.items_store import fetch_item
from frontdesk.memory.memories_rules import (
    AnchoredMemory,
    MemoryFilter,
    MemoryStats,
    check_memory,
    title_from_note,
    with_title,
)
from frontdesk.memory.memories_store import (
    delete_anchors,
    fetch_anchor,
    fetch_memories,
    fetch_memory,
    insert_memory,
    link_superseded,
    list_anchored_memories,
    list_anchors,
    list_memories,
    memory_stats,
    save_anchor,
    save_memory,
    unlink_superseded,
)
from frontdesk.memory.model import (
    Anchor,
    AnchorRelation,
    ItemType,
    Memory,
    MemoryStatus,
    MemoryType,
    PersonScope,
    TimelineItem,
)
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.times import DayEdge
from frontdesk.memory.validation import (
    Fields,
    RecordPage,
    check_field_names,
    check_range,
    new_id,
    nulls_to_empty,
    parse_choice,
    parse_choices,
    parse_fields,
    parse_id,
    require_found,
    without_nulls,
)

MEMORY_NAME = "Memory"
MEMORY_TIMES = {
    "captured_at": DayEdge.START,
    "happened_start": DayEdge.START,
    "happened_end": DayEdge.END,
    "expires_at": DayEdge.END,
}
MEMORY_CHOICES = {"memory_type": MemoryType, "status": MemoryStatus}
MEMORY_SETTABLE = (
    "note",
    "title",
    "memory_type",
    "status",
    "emotion_valence",
    "emotion_arousal",
    "energy_delta",
    "place_name",
    "latitude",
    "longitude",
    "is_highlight",
    "salience_score",
    "category_id",
    "tags",
    "captured_at",
    "happened_start",
    "happened_end",
    "supersedes",
    "expires_at",
    "metadata",
)


def create_memory(transaction: PersonTransaction, fields: Fields, zone: str | None = None) -> Memory:
    """Create a memory. One that it supersedes is kept, but no longer found."""
    transaction.lock_person()
    values: dict[str, Any] = {"title": "", "note": "", "captured_at": transaction.now}
    values |= parse_choices(without_nulls(_parse_memory(transaction, fields, zone)), MEMORY_CHOICES)
    older = values.pop("supersedes", None)
    stamp: dict[str, Any] = {
        "id": new_id(transaction.now),
        "created_at": transaction.now,
        "updated_at": transaction.now,
    }
    memory = check_memory(with_title(Memory(**values, **stamp, agent_id=transaction.agent_id)))
    if memory.expires_at is not None and memory.expires_at <= transaction.now:
        raise Invalid("expires_at lies in the past, so that this would never be found; give a later one, or none")
    insert_memory(transaction, memory)
    return _supersede(transaction, memory, older)


def get_memory(transaction: PersonTransaction, memory_id: str) -> Memory:
    """A memory by its id, also if it was superseded or has expired, unless it was deleted."""
    return _find_memory(transaction, memory_id)


def update_memory(transaction: PersonTransaction, memory_id: str, fields: Fields, zone: str | None = None) -> Memory:
    """Change a memory. A status brings a deleted one back."""
    transaction.lock_person()
    old = _find_memory(transaction, memory_id, deleted=fields.get("status") is not None)
    given = _parse_memory(transaction, fields, zone)
    # Null empties a title or a note.
    given |= {name: "" for name in ("title", "note") if name in given and given[name] is None}
    values = parse_choices(nulls_to_empty(Memory, given), MEMORY_CHOICES)
    older = values.pop("supersedes", old.supersedes)
    if old.title == title_from_note(old.note):
        values.setdefault("title", "")
    new = _place_in_chain(
        transaction, check_memory(with_title(replace(old, **values, updated_at=transaction.now))), older
    )
    save_memory(transaction, new)
    return new


def delete_memory(transaction: PersonTransaction, memory_id: str) -> None:
    """Mark a memory as deleted, and show the one that it superseded again. Deleted ones are shown only on request."""
    transaction.lock_person()
    memory = replace(_find_memory(transaction, memory_id), status=MemoryStatus.DELETED, updated_at=transaction.now)
    save_memory(transaction, _remove_from_chain(transaction, memory))


def _parse_memory(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    values = parse_fields(transaction, fields, zone, MEMORY_TIMES)
    if "description" in values:
        values.setdefault("note", values["description"])
        del values["description"]
    check_field_names(values, MEMORY_SETTABLE)
    return values


def _find_memory(transaction: PersonTransaction, memory_id: str, *, deleted: bool = False) -> Memory:
    return require_found(fetch_memory(transaction, parse_id(memory_id, MEMORY_NAME), deleted=deleted), MEMORY_NAME)


def _place_in_chain(transaction: PersonTransaction, memory: Memory, older_id: str | None) -> Memory:
    """Put a memory behind the one that it supersedes; a deleted memory leaves its chain."""
    if memory.status is MemoryStatus.DELETED:
        return _remove_from_chain(transaction, memory)
    return (
        memory
        if older_id == memory.supersedes
        else _supersede(transaction, _remove_from_chain(transaction, _require_latest(memory)), older_id)
    )


def _supersede(transaction: PersonTransaction, memory: Memory, older_id: str | None) -> Memory:
    """Let a memory supersede an older one, if one is named. The older one must be the last of its chain."""
    if older_id is None:
        return memory
    older = _require_latest(get_memory(transaction, older_id))
    if older.id == memory.id:
        raise Invalid("A memory cannot supersede itself")
    link_superseded(transaction, older.id, memory.id)
    return replace(memory, supersedes=older.id)


def _require_latest(memory: Memory) -> Memory:
    if memory.superseded_by is not None:
        raise Conflict(f"Memory {memory.id} was superseded already; supersede {memory.superseded_by} instead")
    return memory


def _remove_from_chain(transaction: PersonTransaction, memory: Memory) -> Memory:
    """Take a memory out of its chain, and link the memories before and after it."""
    unlink_superseded(transaction, memory)
    return replace(memory, supersedes=None, superseded_by=None)


ANCHOR_TIMES = {"local_start": DayEdge.START, "local_end": DayEdge.END}
ANCHOR_SETTABLE = ("anchor_item_id", "relation", "local_start", "local_end", "weight", "notes")
MAX_WEIGHT = 10
ITEM_NAME = "Timeline item"


def anchor_memory(transaction: PersonTransaction, memory_id: str, fields: Fields, zone: str | None = None) -> Anchor:
    """Anchor a memory to an item, `about` it by default. The same relation again changes the anchor."""
    transaction.lock_person()
    values = without_nulls(parse_fields(transaction, fields, zone, ANCHOR_TIMES))
    check_field_names(values, ANCHOR_SETTABLE)
    memory, item = get_memory(transaction, memory_id), _get_item(transaction, values.pop("anchor_item_id", ""))
    if item.type is ItemType.MEMORY:
        raise Invalid("A memory is anchored to a task, an activity or another item, not to a memory; use supersedes")
    relation = parse_choice(AnchorRelation, "relation", values.pop("relation", AnchorRelation.ABOUT))
    was = fetch_anchor(transaction, memory.id, item.id, relation)
    new = was or Anchor(memory_id=memory.id, anchor_item_id=item.id, relation=relation, created_at=transaction.now)
    anchor = _check_anchor(replace(new, **values))
    save_anchor(transaction, anchor)
    return anchor


def anchors_of_memory(transaction: PersonTransaction, memory_id: str) -> Sequence[Anchor]:
    return list_anchors(transaction, get_memory(transaction, memory_id).id)


def memories_anchored_to(transaction: PersonTransaction, item_id: str) -> Sequence[AnchoredMemory]:
    return list_anchored_memories(transaction, _get_item(transaction, item_id).id)


def unanchor_memory(transaction: PersonTransaction, memory_id: str, item_id: str, relation: str | None = None) -> None:
    """Remove all anchors of a memory to an item, or the one of this relation."""
    which = None if relation is None else parse_choice(AnchorRelation, "relation", relation)
    if not delete_anchors(transaction, get_memory(transaction, memory_id).id, parse_id(item_id, "Anchor"), which):
        raise NotFound("Anchor not found")


def _get_item(transaction: PersonTransaction, item_id: str) -> TimelineItem:
    return require_found(fetch_item(transaction, parse_id(item_id, ITEM_NAME)), ITEM_NAME)


def _check_anchor(anchor: Anchor) -> Anchor:
    check_range(anchor, "weight", 0, MAX_WEIGHT)
    ends: tuple[Any, Any] = (anchor.local_start, anchor.local_end)
    if None not in ends and ends[1] <= ends[0]:
        raise Invalid("local_end must be after local_start")
    return anchor


class MemoryService:
    """The memories of a person. Nothing is lost unless the person says so."""

    def __init__(self, records: PersonDatabase) -> None:
        self._records = records

    async def create(self, scope: PersonScope, fields: Fields, zone: str | None = None) -> Memory:
        """`fields` are those of a `Memory`. A missing title is made from the note."""
        scope.require(rights.MEMORIES_WRITE)
        return await self._records.change(scope, partial(create_memory, fields=fields, zone=zone))

    async def get(self, scope: PersonScope, memory_id: str) -> Memory:
        """A memory, also if it was superseded or has expired."""
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(get_memory, memory_id=memory_id))

    async def get_many(self, scope: PersonScope, ids: Sequence[str]) -> Mapping[str, Memory]:
        """The memories with these ids that were not deleted, by their ids."""
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(fetch_memories, ids=ids))

    async def list(self, scope: PersonScope, filters: MemoryFilter) -> RecordPage[Memory]:
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(list_memories, filters=filters))

    async def update(self, scope: PersonScope, memory_id: str, fields: Fields, zone: str | None = None) -> Memory:
        """`fields` are the changes. A status brings a deleted memory back."""
        scope.require(rights.MEMORIES_WRITE)
        work = partial(update_memory, memory_id=memory_id, fields=fields, zone=zone)
        return await self._records.change(scope, work)

    async def delete(self, scope: PersonScope, memory_id: str) -> None:
        """The memory is kept, and listed only on request. The one that it superseded is found again."""
        scope.require(rights.MEMORIES_WRITE)
        await self._records.change(scope, partial(delete_memory, memory_id=memory_id))

    async def stats(self, scope: PersonScope, zone: str | None = None) -> MemoryStats:
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(memory_stats, zone=zone))

    async def anchor(self, scope: PersonScope, memory_id: str, fields: Fields, zone: str | None = None) -> Anchor:
        """`fields` are those of an `Anchor`: `anchor_item_id`, and others."""
        scope.require(rights.MEMORIES_WRITE)
        return await self._records.change(scope, partial(anchor_memory, memory_id=memory_id, fields=fields, zone=zone))

    async def anchors(self, scope: PersonScope, memory_id: str) -> Sequence[Anchor]:
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(anchors_of_memory, memory_id=memory_id))

    async def unanchor(self, scope: PersonScope, memory_id: str, item_id: str, relation: str | None = None) -> None:
        """Remove all anchors to an item, or the one of a relation."""
        scope.require(rights.MEMORIES_WRITE)
        work = partial(unanchor_memory, memory_id=memory_id, item_id=item_id, relation=relation)
        await self._records.change(scope, work)

    async def anchored_to(self, scope: PersonScope, item_id: str) -> Sequence[AnchoredMemory]:
        """The memories that are anchored to an item, with their anchors."""
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(memories_anchored_to, item_id=item_id))
