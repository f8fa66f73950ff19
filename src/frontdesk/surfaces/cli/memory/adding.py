"""`frontdesk memory add` and `delete`."""

import sys
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from frontdesk.journal.record import Record
from frontdesk.memory.asked.memories import AddMemory
from frontdesk.memory.model import Memory, MemoryType
from frontdesk.memory.tooling.telling.memories import memory_line
from frontdesk.surfaces.cli.options import Flag, Json, Many, Text
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, asked, changing
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.words import dumped

FROM_INPUT = "-"
FIELDS = {
    "kind": "memory_type",
    "tag": "tags",
    "place": "place_name",
    "salience": "salience_score",
    "highlight": "is_highlight",
    "category": "category_id",
    "expires": "expires_at",
    "captured": "captured_at",
}


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """What can be said of a memory.

    Parameters
    ----------
    title
        A title; the first line of the text when left out.
    kind
        What kind of memory it is; a note when left out.
    tag
        A tag; repeated for several.
    category
        A category's name or id.
    place
        Where it was.
    salience
        How much it matters, from 0 to 1.
    highlight
        It is one of the best.
    supersedes
        The id of a memory that this one replaces; that one is kept, and no longer found.
    expires
        From when on it is no longer true, as a day or a time; it is kept, and no longer found.
    captured
        When it was noted, as a day or a time; now when left out.
    zone
        The time zone in which these are meant, as an IANA name; the person's own when left out.
    """

    title: str | None = None
    kind: Annotated[MemoryType | None, Parameter(name="--type")] = None
    tag: Many = ()
    category: str | None = None
    place: str | None = None
    salience: float | None = None
    highlight: Flag = False
    supersedes: str | None = None
    expires: str | None = None
    captured: str | None = None
    zone: str | None = None

    async def said(self, acting: Acting, note: str) -> dict[str, Any]:
        """What was given, by the names that a memory has for it, and ids in full."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "zone"}
        found = {FIELDS.get(name, name): value for name, value in given.items() if value not in (None, (), False)}
        if self.supersedes is not None:
            found["supersedes"] = await acting.names.memory(acting.scope, self.supersedes)
        return dict(asked(AddMemory, {**found, "note": note}).said())


NO_OPTIONS = MemoryOptions()


def add(text: Text, /, *, options: MemoryOptions = NO_OPTIONS, user: User = LOCAL, as_json: Json = False) -> None:
    """Remember something and print its id.

    frontdesk memory add 'Ann is allergic to walnuts' --tag health --salience 0.9

    Parameters
    ----------
    text
        What is to be remembered; - reads it from standard input.
    user
        The person whose memory it is.
    as_json
        Print one JSON object.
    """
    note = sys.stdin.read() if text == FROM_INPUT else text

    async def make(acting: Acting, record: Record) -> tuple[Memory, ZoneInfo]:
        fields = await options.said(acting, note)
        memory = await acting.room.memories.create(acting.scope, fields, options.zone)
        record.action += f" {memory.id}"
        return memory, await acting.zone()

    memory, zone = changing(user, "memory add", make)
    print(dumped(asdict(memory)) if as_json else memory.id)
    print(line(memory_line(memory, zone).splitlines()[0].removeprefix("- ")), file=sys.stderr)


def delete(memory_id: str, /, *, user: User = LOCAL) -> None:
    """Delete a memory: it is found no more. To have nothing of it left, erase all: frontdesk memory erase.

    Parameters
    ----------
    memory_id
        Its id, or the first 8 characters of it or more.
    user
        The person whose memory it is.
    """

    async def remove(acting: Acting, record: Record) -> str:
        found = await acting.names.memory(acting.scope, memory_id)
        record.action += f" {found}"
        await acting.room.memories.delete(acting.scope, found)
        return found

    print(f"Deleted: {changing(user, 'memory delete', remove)}")
