"""Items of the timeline made, changed and deleted, each as what it is: functions over one person's records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.memory import checks
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import known, new_id
from frontdesk.memory.items import store as items
from frontdesk.memory.model import Item, ItemStatus, ItemType, Priority, Task
from frontdesk.memory.moments import Edge
from frontdesk.memory.store import Mine
from frontdesk.memory.timeline import store
from frontdesk.memory.timeline.kinds import Kind, Record, parted

WHAT = "Timeline item"
TITLE = 500
EDGES = {"start_time": Edge.START, "end_time": Edge.END}
CHOICES = {"status": ItemStatus, "priority": Priority}
GIVEN = (
    "title",
    "description",
    "start_time",
    "end_time",
    "is_time_consuming",
    "render_on_timeline",
    "category_id",
    "tags",
    "status",
    "priority",
    "metadata",
)
Kinds = Mapping[ItemType, Kind]


@dataclass(frozen=True, slots=True)
class Changed:
    """An item, and what stands behind it, as that was and is; `gone` are the tasks that were deleted with it."""

    item: Item
    before: Record | None = None
    after: Record | None = None
    gone: Sequence[Task] = ()


def create(mine: Mine, kinds: Kinds, fields: Fields, zone: str | None = None) -> Item:
    """A routine or a habit is an item alone; behind the others stands a task, a memory or an activity."""
    mine.hold()
    said = checks.said(fields)
    of = checks.choice(ItemType, "type", said.pop("type", ""))
    kind = kinds.get(of)
    if kind is None:
        return _add(mine, of, said, zone)
    own, beside = parted(kind, of, said)
    made = kind.create(mine, {**kind.usual, **own}, zone)
    return _checked(_with_beside(mine, made.id, beside, zone))


def get(mine: Mine, item_id: str) -> Item:
    return there(store.get(mine, known(item_id, WHAT)), WHAT)


def update(
    mine: Mine, kinds: Kinds, item_id: str, fields: Fields, zone: str | None, require: Callable[[str], None]
) -> Changed:
    """`require` refuses whoever may not change such a thing, once it is known what it is."""
    mine.hold()
    old = get(mine, item_id)
    given = dict(fields)
    if given.pop("type", old.type) != old.type:
        raise Invalid(f"This is of the type {old.type}, and stays so; make another item")
    kind = kinds.get(old.type)
    if kind is None:
        return Changed(_change(mine, old, given, zone))
    require(kind.right)
    if given.get("status") == old.status:
        del given["status"]
    own, beside = parted(kind, old.type, given)
    before = kind.get(mine, old.id)
    after = kind.update(mine, old.id, own, zone) if own else before
    item = _with_beside(mine, old.id, beside, zone)
    return Changed(item if given.keys().isdisjoint(EDGES) else _checked(item), before, after)


def delete(mine: Mine, kinds: Kinds, item_id: str, require: Callable[[str], None]) -> Changed:
    """As what it is: a memory is kept, and shown no longer. The item as it was."""
    mine.hold()
    old = get(mine, item_id)
    kind = kinds.get(old.type)
    if kind is None:
        items.remove(mine, old.id)
        return Changed(old)
    require(kind.right)
    return Changed(old, gone=kind.delete(mine, old.id) or ())


def text_of(item: Item) -> str:
    """What an item that has nothing behind it is found by."""
    return "\n".join(part for part in (item.title, item.description, " ".join(item.tags)) if part)


def _add(mine: Mine, of: ItemType, said: Fields, zone: str | None) -> Item:
    values = {"title": "", **checks.chosen(_taken(mine, said, zone), CHOICES)}
    stamp: dict[str, Any] = {"id": new_id(mine.now), "created_at": mine.now, "updated_at": mine.now}
    item = _checked(Item(type=of, **values, **stamp))
    items.add(mine, item, text_of(item))
    return item


def _change(mine: Mine, old: Item, given: Fields, zone: str | None) -> Item:
    new = _checked(replace(old, **_emptied(_taken(mine, given, zone)), updated_at=mine.now))
    items.write(mine, new, text_of(new))
    return new


def _with_beside(mine: Mine, item_id: str, beside: Fields, zone: str | None) -> Item:
    """As it stands now, with what is said of the item alone."""
    if beside:
        store.put_beside(mine, item_id, _emptied(_taken(mine, beside, zone)))
    return get(mine, item_id)


def _taken(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    values = taken(mine, fields, zone, EDGES)
    checks.known(values, GIVEN)
    if values.get("status") == ItemStatus.DELETED:
        raise Invalid("An item is deleted by deleting it, not by its status")
    return values


def _emptied(values: dict[str, Any]) -> dict[str, Any]:
    return checks.chosen(checks.emptied(Item, values), CHOICES)


def _checked(item: Item) -> Item:
    if not item.title.strip():
        raise Invalid("An item needs a title")
    checks.short(item, "title", TITLE)
    if item.start_time is not None and item.end_time is not None and item.end_time <= item.start_time:
        raise Invalid("end_time must be after start_time")
    return item
