"""Implements `frontdesk memory`: add, search, list and delete a person's memories, and manage categories."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import anyio
from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.errors import Unavailable
from frontdesk.interfaces.cli.memory_data import erase, export_records, import_records, insights, people, zone
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    Flag,
    JsonFlag,
    Repeated,
    Text,

    dump_json,
    format_table,
    number_up_to,
    print_figures,
    printable_line,
    printable_text,
)
from frontdesk.interfaces.cli.person import (
    DEFAULT_USER,
    PersonContext, UserOption,
    change_for_person,
    run_for_person,
    validate_input,
)
from frontdesk.journal.service import CallRecord
from frontdesk.memory.memories_rules import MemoryFilter, MemorySort
from frontdesk.memory.model import (
    MAX_SEARCH_LIMIT,
    Category,
    ItemHit,
    ItemSearch,
    ItemType,
    Memory,
    MemoryStatus,
    MemoryType,
    SearchMode,
)
from frontdesk.memory.operations.base import format_time
from frontdesk.memory.operations.timeline_requests import AddMemory, CreateCategory
from frontdesk.memory.operations.timeline_text import format_memory, format_memory_line
from frontdesk.memory.validation import RecordPage

STANDARD_INPUT = "-"
MEMORY_FIELDS = {
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
    """The options of a memory.

    Parameters
    ----------
    title
        A title. Without it, the first line of the text.
    kind
        The kind of memory. Without it, a note.
    tag
        A tag; repeated for several.
    category
        A category's name or id.
    place
        Where it was.
    salience
        How much it matters, from 0 to 1.
    highlight
        Mark it as a highlight.
    supersedes
        The id of a memory that this one replaces. The old one stays stored, but is no longer found.
    expires
        The day or time when it expires. It stays stored, but is no longer found.
    captured
        The day or time when it was noted. Without it, now.
    zone
        The time zone of these times, as an IANA name. Without it, the person's own.
    """

    title: str | None = None
    kind: Annotated[MemoryType | None, Parameter(name="--type")] = None
    tag: Repeated = ()
    category: str | None = None
    place: str | None = None
    salience: float | None = None
    highlight: Flag = False
    supersedes: str | None = None
    expires: str | None = None
    captured: str | None = None
    zone: str | None = None

    async def to_fields(self, acting: PersonContext, note: str) -> dict[str, Any]:
        """The given options as fields of a memory, with full ids."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "zone"}
        found = {
            MEMORY_FIELDS.get(name, name): value for name, value in given.items() if value not in (None, (), False)
        }
        if self.supersedes is not None:
            found["supersedes"] = await acting.names.memory(acting.scope, self.supersedes)
        return dict(validate_input(AddMemory, {**found, "note": note}).provided())


NO_OPTIONS = MemoryOptions()


def add(
    text: Text, /, *, options: MemoryOptions = NO_OPTIONS, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False
) -> None:
    """Store a memory and print its id.

    frontdesk memory add 'Ann is allergic to walnuts' --tag health --salience 0.9

    Parameters
    ----------
    text
        The text; - reads it from standard input.
    user
        The person whose memory it is.
    as_json
        Print one JSON object.
    """
    note = sys.stdin.read() if text == STANDARD_INPUT else text

    async def make(acting: PersonContext, record: CallRecord) -> tuple[Memory, ZoneInfo]:
        fields = await options.to_fields(acting, note)
        memory = await acting.memory.memories.create(acting.scope, fields, options.zone)
        record.action += f" {memory.id}"
        return memory, await acting.zone()

    memory, zone = change_for_person(user, "memory add", make)
    print(dump_json(asdict(memory)) if as_json else memory.id)
    print(printable_line(format_memory_line(memory, zone).splitlines()[0].removeprefix("- ")), file=sys.stderr)


def delete(memory_id: str, /, *, user: UserOption = DEFAULT_USER) -> None:
    """Delete a memory, so that it is no longer found. To leave no trace, erase everything: frontdesk memory erase.

    Parameters
    ----------
    memory_id
        Its id, or at least the first 8 characters.
    user
        The person whose memory it is.
    """

    async def remove(acting: PersonContext, record: CallRecord) -> str:
        found = await acting.names.memory(acting.scope, memory_id)
        record.action += f" {found}"
        await acting.memory.memories.delete(acting.scope, found)
        return found

    print(f"Deleted: {change_for_person(user, 'memory delete', remove)}")


SHOWN_LENGTH, REASON_LENGTH = 70, 60
# At most this many memories that were stored without a server are embedded before a search. The rest is found by words.
READ_SECONDS = 10
ONLY_MEMORIES = frozenset({ItemType.MEMORY})
NO_RESULTS = "Nothing fits."


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSelection:
    """The scope of a search.

    Parameters
    ----------
    everything
        Search tasks, activities and other items as well.
    kind
        Only memories of this kind.
    tag
        Only those with this tag. Repeated for several, any of which matches.
    category
        Only those in this category, by name or id.
    highlight
        Only highlights.
    since
        Only those of this day, of this time, or later.
    until
        Only those of this day, of this time, or earlier.
    all_ever
        Also those that were superseded or have expired.
    zone
        The time zone of days. Without it, the person's own.
    by
        By words and meaning together (hybrid), only by words (full-text), or only by meaning (semantic).
    """

    everything: Flag = False
    kind: Annotated[MemoryType | None, Parameter(name="--type")] = None
    tag: Repeated = ()
    category: str | None = None
    highlight: Flag = False
    since: str | None = None
    until: str | None = None
    all_ever: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False
    zone: str | None = None
    by: SearchMode = SearchMode.HYBRID

    def query(self, text: str, limit: int) -> ItemSearch:
        return ItemSearch(
            text=text,
            types=None if self.everything else ONLY_MEMORIES,
            limit=limit,
            mode=self.by,
            date_from=self.since,
            date_to=self.until,
            zone=self.zone,
            category=self.category,
            tags=self.tag,
            include_superseded=self.all_ever,
            include_expired=self.all_ever,
            memory_type=self.kind,
            is_highlight=self.highlight or None,
        )


ALL_MEMORIES = SearchSelection()


def search(
    words: Text,
    /,
    *,
    among: SearchSelection = ALL_MEMORIES,
    limit: Annotated[int, number_up_to(MAX_SEARCH_LIMIT)] = 10,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """Search memories by words and by meaning, best first.

    frontdesk memory search 'which food should we avoid?'

    Parameters
    ----------
    words
        The query, in plain words.
    limit
        Show at most this many.
    user
        The person whose memories they are.
    as_json
        Print one JSON object a line.
    """

    async def look(acting: PersonContext) -> tuple[Sequence[ItemHit], ZoneInfo]:
        with suppress(Unavailable), anyio.move_on_after(READ_SECONDS):
            await acting.app.memory_indexer.index_all()
        return await acting.memory.search.search(acting.scope, among.query(words, limit)), await acting.zone()

    hits, zone = run_for_person(user, look)
    if as_json:
        for hit in hits:
            print(dump_json(_hit_fields(hit)))
        return
    rows = [_hit_row(hit, zone) for hit in hits]
    print(format_table(("score", "id", "what", "when", "why"), rows) if rows else NO_RESULTS)


def _hit_row(hit: ItemHit, zone: ZoneInfo) -> tuple[str, ...]:
    item = hit.item
    return (
        f"{hit.score:.2f}",
        item.id,
        printable_line(hit.text, SHOWN_LENGTH),
        format_time(item.start_time or item.created_at, zone),
        printable_line(hit.why, REASON_LENGTH),
    )


def _hit_fields(hit: ItemHit) -> Mapping[str, Any]:
    item = hit.item
    return {
        "id": item.id,
        "type": item.type,
        "title": item.title,
        "text": hit.text,
        "at": item.start_time or item.created_at,
        "tags": item.tags,
        "score": hit.score,
        "why": hit.why,
        "words": hit.words,
        "meaning": hit.meaning,
    }


TITLE_LENGTH = 60
ListLimit = Annotated[int, number_up_to(1000)]
NO_MEMORIES = "No memories. Add one: frontdesk memory add TEXT"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySelection:
    """The filter of a list of memories.

    Parameters
    ----------
    kind
        Only those of this kind.
    status
        Only those with this status: active, archived or deleted.
    tag
        Only those with this tag. Repeated for several, any of which matches.
    category
        Only those in this category, by name or id.
    place
        Only those of this place.
    highlight
        Only highlights.
    since
        Only those noted on this day, at this time, or later.
    until
        Only those noted on this day, at this time, or earlier.
    all_ever
        Also those that were superseded or have expired.
    zone
        The time zone of days. Without it, the person's own.
    """

    kind: Annotated[MemoryType | None, Parameter(name="--type")] = None
    status: MemoryStatus = MemoryStatus.ACTIVE
    tag: Repeated = ()
    category: str | None = None
    place: str | None = None
    highlight: Flag = False
    since: str | None = None
    until: str | None = None
    all_ever: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False
    zone: str | None = None

    def to_filter(self, sort: MemorySort, limit: int, offset: int) -> MemoryFilter:
        return MemoryFilter(
            memory_type=self.kind,
            status=self.status,
            is_highlight=self.highlight or None,
            tags=self.tag,
            place_name=self.place,
            captured_from=self.since,
            captured_to=self.until,
            category_id=self.category,
            include_superseded=self.all_ever,
            include_expired=self.all_ever,
            sort_by=sort,
            limit=limit,
            offset=offset,
            timezone=self.zone,
        )


ACTIVE_MEMORIES = MemorySelection()


def list_memories(
    *,
    which: MemorySelection = ACTIVE_MEMORIES,
    sort: MemorySort = MemorySort.CAPTURED_AT,
    limit: ListLimit = 100,
    offset: Annotated[int, number_up_to(10_000_000, least=0)] = 0,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """List memories, latest first.

    Parameters
    ----------
    sort
        The field to sort by.
    limit
        Show at most this many.
    offset
        Skip this many first.
    user
        The person whose memories they are.
    as_json
        Print one JSON object a line.
    """
    wanted = which.to_filter(sort, limit, offset)

    async def look(acting: PersonContext) -> tuple[RecordPage[Memory], ZoneInfo]:
        return await acting.memory.memories.list(acting.scope, wanted), await acting.zone()

    page, zone = run_for_person(user, look)
    if as_json:
        for memory in page.items:
            print(dump_json(asdict(memory)))
    elif page.items:
        print(
            format_table(
                ("id", "memory", "type", "noted", "salience"), [_memory_row(memory, zone) for memory in page.items]
            )
        )
    else:
        print(NO_MEMORIES if not page.total and which == ACTIVE_MEMORIES else "No such memories.")
    if page.has_more:
        print(f"There are more: --offset {offset + len(page.items)}", file=sys.stderr)


def show(memory_id: str, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Show a memory with all its fields, even if it was superseded or has expired.

    Parameters
    ----------
    memory_id
        Its id, or at least the first 8 characters.
    user
        The person whose memory it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: PersonContext) -> tuple[Memory, ZoneInfo]:
        found = await acting.names.memory(acting.scope, memory_id)
        return await acting.memory.memories.get(acting.scope, found), await acting.zone()

    memory, zone = run_for_person(user, look)
    print(dump_json(asdict(memory)) if as_json else printable_text(format_memory(memory, zone)))


def stats(*, zone: str | None = None, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Show statistics of the memories.

    Parameters
    ----------
    zone
        The time zone of this week. Without it, the person's own.
    user
        The person whose memories they are.
    as_json
        Print one JSON object.
    """
    found = run_for_person(user, lambda acting: acting.memory.memories.stats(acting.scope, zone))
    print_figures(asdict(found), as_json=as_json)


def _memory_row(memory: Memory, zone: ZoneInfo) -> tuple[str, ...]:
    return (
        memory.id,
        printable_line(memory.title, TITLE_LENGTH),
        memory.memory_type,
        format_time(memory.captured_at, zone),
        EMPTY_CELL if memory.salience_score is None else f"{memory.salience_score:g}",
    )


DESCRIPTION_LENGTH = 60
NO_CATEGORIES = "No categories. Make one: frontdesk memory categories add NAME"

categories_command = Command(
    name="categories",
    help="The categories that tasks, memories and activities are put under. Without a command, they are listed.",
)


@categories_command.default
def list_categories(*, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """List the categories.

    Parameters
    ----------
    user
        The person whose categories they are.
    as_json
        Print one JSON object a line.
    """
    found = run_for_person(user, lambda acting: acting.memory.categories.list_all(acting.scope))
    if as_json:
        for one in found:
            print(dump_json(asdict(one)))
        return
    rows = [
        (one.id, one.name, one.color, printable_line(one.description, DESCRIPTION_LENGTH) or EMPTY_CELL)
        for one in found
    ]
    print(format_table(("id", "name", "color", "description"), rows) if rows else NO_CATEGORIES)


@categories_command.command(name="add")
def add_category(
    name: str,
    /,
    *,
    description: str | None = None,
    color: str | None = None,
    icon: str | None = None,
    user: UserOption = DEFAULT_USER,
) -> None:
    """Create a category and print its id.

    Parameters
    ----------
    name
        The name. It must be unique, ignoring case.
    description
        A description of the category.
    color
        The color, as #RRGGBB.
    icon
        An icon.
    user
        The person whose category it is.
    """
    arguments: dict[str, Any] = {"name": name, "description": description, "color": color, "icon": icon}

    async def make(acting: PersonContext, record: CallRecord) -> Category:
        category = await acting.memory.categories.create(
            acting.scope, validate_input(CreateCategory, arguments).provided()
        )
        record.action += f" {category.id}"
        return category

    print(change_for_person(user, "memory categories add", make).id)


@categories_command.command(name="delete")
def delete_category(name: str, /, *, user: UserOption = DEFAULT_USER) -> None:
    """Delete a category. Its items stay, without a category.

    Parameters
    ----------
    name
        Its name or id.
    user
        The person whose category it is.
    """

    async def remove(acting: PersonContext, record: CallRecord) -> Category:
        category = await acting.memory.categories.get(acting.scope, name)
        record.action += f" {category.id}"
        await acting.memory.categories.delete(acting.scope, category.id)
        return category

    print(f"Deleted: {printable_line(change_for_person(user, 'memory categories delete', remove).name)}")


command = Command(name="memory")
command.command(add)
command.command(search)
command.command(list_memories, name="list")
command.command(show)
command.command(delete)
command.command(categories_command)
command.command(stats)
command.command(insights)
command.command(zone, usage="Usage: frontdesk memory zone [OPTIONS] [NAME]")
command.command(export_records, name="export", usage="Usage: frontdesk memory export [OPTIONS] [FILE]")
command.command(import_records, name="import")
command.command(erase)
command.command(people)
