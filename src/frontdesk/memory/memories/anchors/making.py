"""Memories tied to items and untied again: functions over one person's records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from frontdesk.errors import Invalid, NotFound
from frontdesk.memory import checks
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import known
from frontdesk.memory.items import store as items
from frontdesk.memory.memories import making
from frontdesk.memory.memories.anchors import store
from frontdesk.memory.memories.wanted import Anchored
from frontdesk.memory.model import Anchor, AnchorRelation, Item, ItemType
from frontdesk.memory.moments import Edge
from frontdesk.memory.store import Mine

EDGES = {"local_start": Edge.START, "local_end": Edge.END}
GIVEN = ("anchor_item_id", "relation", "local_start", "local_end", "weight", "notes")
HEAVIEST = 10
ITEM = "Timeline item"


def put(mine: Mine, memory_id: str, fields: Fields, zone: str | None = None) -> Anchor:
    """Tie a memory to an item, which it is about unless another relation is given; once more is a change."""
    mine.hold()
    values = checks.said(taken(mine, fields, zone, EDGES))
    checks.known(values, GIVEN)
    memory, item = making.get(mine, memory_id), _item(mine, values.pop("anchor_item_id", ""))
    if item.type is ItemType.MEMORY:
        raise Invalid("A memory is anchored to a task, an activity or another item, not to a memory; use supersedes")
    relation = checks.choice(AnchorRelation, "relation", values.pop("relation", AnchorRelation.ABOUT))
    was = store.get(mine, memory.id, item.id, relation)
    new = was or Anchor(memory_id=memory.id, anchor_item_id=item.id, relation=relation, created_at=mine.now)
    anchor = _checked(replace(new, **values))
    store.put(mine, anchor)
    return anchor


def of_memory(mine: Mine, memory_id: str) -> Sequence[Anchor]:
    return store.of_memory(mine, making.get(mine, memory_id).id)


def to_item(mine: Mine, item_id: str) -> Sequence[Anchored]:
    return store.to_item(mine, _item(mine, item_id).id)


def remove(mine: Mine, memory_id: str, item_id: str, relation: str | None = None) -> None:
    """All anchors of this memory to that item, or the one of this relation."""
    which = None if relation is None else checks.choice(AnchorRelation, "relation", relation)
    if not store.remove(mine, making.get(mine, memory_id).id, known(item_id, "Anchor"), which):
        raise NotFound("Anchor not found")


def _item(mine: Mine, item_id: str) -> Item:
    return there(items.get(mine, known(item_id, ITEM)), ITEM)


def _checked(anchor: Anchor) -> Anchor:
    checks.within(anchor, "weight", 0, HEAVIEST)
    ends: tuple[Any, Any] = (anchor.local_start, anchor.local_end)
    if None not in ends and ends[1] <= ends[0]:
        raise Invalid("local_end must be after local_start")
    return anchor
