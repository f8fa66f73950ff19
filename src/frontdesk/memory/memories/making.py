"""Memories made, changed, superseded and deleted: functions over one person's records."""

from dataclasses import replace
from typing import Any

from frontdesk.errors import Conflict, Invalid
from frontdesk.memory import checks
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import known, new_id
from frontdesk.memory.memories import rules, store
from frontdesk.memory.model import Memory, MemoryStatus, MemoryType
from frontdesk.memory.moments import Edge
from frontdesk.memory.store import Mine

WHAT = "Memory"
EDGES = {
    "captured_at": Edge.START,
    "happened_start": Edge.START,
    "happened_end": Edge.END,
    "expires_at": Edge.END,
}
KINDS = {"memory_type": MemoryType, "status": MemoryStatus}
GIVEN = (
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


def create(mine: Mine, fields: Fields, zone: str | None = None) -> Memory:
    """A new one; what it supersedes is kept, and found no longer."""
    mine.hold()
    values: dict[str, Any] = {"title": "", "note": "", "captured_at": mine.now}
    values |= checks.chosen(checks.said(_taken(mine, fields, zone)), KINDS)
    older = values.pop("supersedes", None)
    stamp: dict[str, Any] = {"id": new_id(mine.now), "created_at": mine.now, "updated_at": mine.now}
    memory = rules.checked(rules.titled(Memory(**values, **stamp, agent_id=mine.agent_id)))
    if memory.expires_at is not None and memory.expires_at <= mine.now:
        raise Invalid("expires_at lies in the past, so that this would never be found; give a later one, or none")
    store.add(mine, memory)
    return _supersede(mine, memory, older)


def get(mine: Mine, memory_id: str) -> Memory:
    """One by its id, also if it was superseded or has expired, unless it was deleted."""
    return _found(mine, memory_id)


def update(mine: Mine, memory_id: str, fields: Fields, zone: str | None = None) -> Memory:
    """The memory as it is to be. One that was deleted comes back by a status."""
    mine.hold()
    old = _found(mine, memory_id, deleted=fields.get("status") is not None)
    given = _taken(mine, fields, zone)
    # A title or a note that is taken away is an empty one.
    given |= {name: "" for name in ("title", "note") if name in given and given[name] is None}
    values = checks.chosen(checks.emptied(Memory, given), KINDS)
    older = values.pop("supersedes", old.supersedes)
    if old.title == rules.title_of(old.note):
        values.setdefault("title", "")
    new = _placed(mine, rules.checked(rules.titled(replace(old, **values, updated_at=mine.now))), older)
    store.write(mine, new)
    return new


def delete(mine: Mine, memory_id: str) -> None:
    """Kept, and shown to nobody who does not ask for what was deleted; what it superseded is found again."""
    mine.hold()
    memory = replace(_found(mine, memory_id), status=MemoryStatus.DELETED, updated_at=mine.now)
    store.write(mine, _apart(mine, memory))


def _taken(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    values = taken(mine, fields, zone, EDGES)
    if "description" in values:
        values.setdefault("note", values["description"])
        del values["description"]
    checks.known(values, GIVEN)
    return values


def _found(mine: Mine, memory_id: str, *, deleted: bool = False) -> Memory:
    return there(store.get(mine, known(memory_id, WHAT), deleted=deleted), WHAT)


def _placed(mine: Mine, memory: Memory, older_id: str | None) -> Memory:
    """Where it belongs: behind the one it is to supersede, or nowhere once it is deleted."""
    if memory.status is MemoryStatus.DELETED:
        return _apart(mine, memory)
    return memory if older_id == memory.supersedes else _supersede(mine, _apart(mine, _last(memory)), older_id)


def _supersede(mine: Mine, memory: Memory, older_id: str | None) -> Memory:
    """Put in the place of an older one, if one is named, which must be the last of its line."""
    if older_id is None:
        return memory
    older = _last(get(mine, older_id))
    if older.id == memory.id:
        raise Invalid("A memory cannot supersede itself")
    store.link(mine, older.id, memory.id)
    return replace(memory, supersedes=older.id)


def _last(memory: Memory) -> Memory:
    if memory.superseded_by is not None:
        raise Conflict(f"Memory {memory.id} was superseded already; supersede {memory.superseded_by} instead")
    return memory


def _apart(mine: Mine, memory: Memory) -> Memory:
    """Taken out of its line: what came before it and what came after it are neighbours now."""
    store.unlink(mine, memory)
    return replace(memory, supersedes=None, superseded_by=None)
