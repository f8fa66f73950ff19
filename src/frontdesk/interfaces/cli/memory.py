"""Implements `frontdesk memory`: a person's memories and categories, and all of their records as a whole."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, cast

import anyio
from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.errors import Invalid, Unavailable
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AsJson,
    AsJsonLines,
    Flag,
    Limit,
    Offset,
    PageLimit,
    Repeated,
    Text,
    dump_json,
    number_up_to,
    print_figures,
    print_list,
    print_record,
    printable_line,
    printable_text,
)
from frontdesk.interfaces.cli.output import format_time as format_utc_time
from frontdesk.interfaces.cli.person import (
    DEFAULT_USER,
    PersonContext,
    RecordId,
    UserOption,
    add_record,
    change_for_person,
    change_record,
    print_page,
    read_for_person,
    read_record,
    require_user_id,
    run_for_person,
    validate_input,
)
from frontdesk.journal.service import CallRecord
from frontdesk.memory.insights import InsightRange
from frontdesk.memory.items_store import IdLookup
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
    PersonScope,
    PersonSummary,
    SearchMode,
)
from frontdesk.memory.operations.base import format_time
from frontdesk.memory.operations.timeline_requests import AddMemory, CreateCategory
from frontdesk.memory.operations.timeline_text import format_memory, format_memory_line
from frontdesk.memory.people import ErasedRecords, PeopleDirectory

PersonOption = Annotated[UserOption, Parameter(help="The person.")]
MemoryOwner = Annotated[UserOption, Parameter(help="The person whose memory it is.")]
MemoriesOwner = Annotated[UserOption, Parameter(help="The person whose memories they are.")]
CategoryOwner = Annotated[UserOption, Parameter(help="The person whose category it is.")]
CategoriesOwner = Annotated[UserOption, Parameter(help="The person whose categories they are.")]
DaysOwner = Annotated[UserOption, Parameter(help="The person whose days they are.")]
# Filters of a search and of a list.
AnyTag = Annotated[Repeated, Parameter(help="Only those with this tag. Repeated for several, any of which matches.")]
InCategory = Annotated[str | None, Parameter(help="Only those in this category, by name or id.")]
HighlightsOnly = Annotated[Flag, Parameter(help="Only highlights.")]
AllEver = Annotated[Flag, Parameter(name="--all", help="Also those that were superseded or have expired.")]
DaysZone = Annotated[str | None, Parameter(help="The time zone of days. Without it, the person's own.")]
# Stands for standard input, or for standard output.
STANDARD_STREAM = "-"
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
    """The options of a memory."""

    title: Annotated[str | None, Parameter(help="A title. Without it, the first line of the text.")] = None
    kind: Annotated[MemoryType | None, Parameter(name="--type", help="The kind of memory. Without it, a note.")] = None
    tag: Annotated[Repeated, Parameter(help="A tag; repeated for several.")] = ()
    category: Annotated[str | None, Parameter(help="A category's name or id.")] = None
    place: Annotated[str | None, Parameter(help="Where it was.")] = None
    salience: Annotated[float | None, Parameter(help="How much it matters, from 0 to 1.")] = None
    highlight: Annotated[Flag, Parameter(help="Mark it as a highlight.")] = False
    supersedes: Annotated[
        str | None,
        Parameter(help="The id of a memory that this one replaces. The old one stays stored, but is no longer found."),
    ] = None
    expires: Annotated[
        str | None, Parameter(help="The day or time when it expires. It stays stored, but is no longer found.")
    ] = None
    captured: Annotated[str | None, Parameter(help="The day or time when it was noted. Without it, now.")] = None
    zone: Annotated[
        str | None, Parameter(help="The time zone of these times, as an IANA name. Without it, the person's own.")
    ] = None

    async def to_fields(self, person: PersonContext, note: str) -> dict[str, Any]:
        """The given options as fields of a memory, with full ids."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "zone"}
        found = {
            MEMORY_FIELDS.get(name, name): value for name, value in given.items() if value not in (None, (), False)
        }
        if self.supersedes is not None:
            found["supersedes"] = await person.names.memory(person.scope, self.supersedes)
        return dict(validate_input(AddMemory, {**found, "note": note}).provided())


NO_OPTIONS = MemoryOptions()


def add(
    text: Text, /, *, options: MemoryOptions = NO_OPTIONS, user: MemoryOwner = DEFAULT_USER, as_json: AsJson = False
) -> None:
    """Store a memory and print its id.

    frontdesk memory add 'Ann is allergic to walnuts' --tag health --salience 0.9

    Parameters
    ----------
    text
        The text; - reads it from standard input.
    """
    note = sys.stdin.read() if text == STANDARD_STREAM else text

    async def make(person: PersonContext) -> Memory:
        fields = await options.to_fields(person, note)
        return await person.memory.memories.create(person.scope, fields, options.zone)

    memory, zone = add_record(user, "memory add", make)
    print_record(memory, memory.id, as_json=as_json)
    print(printable_line(format_memory_line(memory, zone).splitlines()[0].removeprefix("- ")), file=sys.stderr)


def delete(memory_id: RecordId, /, *, user: MemoryOwner = DEFAULT_USER) -> None:
    """Delete a memory, so that it is no longer found. To leave no trace, erase everything: frontdesk memory erase."""

    async def remove(person: PersonContext, found: str) -> str:
        await person.memory.memories.delete(person.scope, found)
        return found

    deleted, _ = change_record(user, "memory delete", IdLookup.memory, memory_id, remove)
    print(f"Deleted: {deleted}")


SHOWN_LENGTH, REASON_LENGTH = 70, 60
# At most this many memories that were stored without a server are embedded before a search. The rest is found by words.
READ_SECONDS = 10
ONLY_MEMORIES = frozenset({ItemType.MEMORY})


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSelection:
    """The scope of a search."""

    everything: Annotated[Flag, Parameter(help="Search tasks, activities and other items as well.")] = False
    kind: Annotated[MemoryType | None, Parameter(name="--type", help="Only memories of this kind.")] = None
    tag: AnyTag = ()
    category: InCategory = None
    highlight: HighlightsOnly = False
    since: Annotated[str | None, Parameter(help="Only those of this day, of this time, or later.")] = None
    until: Annotated[str | None, Parameter(help="Only those of this day, of this time, or earlier.")] = None
    all_ever: AllEver = False
    zone: DaysZone = None
    by: Annotated[
        SearchMode,
        Parameter(
            help="By words and meaning together (hybrid), only by words (full-text), or only by meaning (semantic)."
        ),
    ] = SearchMode.HYBRID

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
    words: Annotated[Text, Parameter(help="The query, in plain words.")],
    /,
    *,
    among: SearchSelection = ALL_MEMORIES,
    limit: Annotated[int, number_up_to(MAX_SEARCH_LIMIT), Parameter(help="Show at most this many.")] = 10,
    user: MemoriesOwner = DEFAULT_USER,
    as_json: AsJsonLines = False,
) -> None:
    """Search memories by words and by meaning, best first.

    frontdesk memory search 'which food should we avoid?'
    """

    async def look(person: PersonContext) -> Sequence[ItemHit]:
        with suppress(Unavailable), anyio.move_on_after(READ_SECONDS):
            await person.app.memory_indexer.index_all()
        return await person.memory.search.search(person.scope, among.query(words, limit))

    hits, zone = read_for_person(user, look)

    def row(hit: ItemHit) -> tuple[str, ...]:
        item = hit.item
        return (
            f"{hit.score:.2f}",
            item.id,
            printable_line(hit.text, SHOWN_LENGTH),
            format_time(item.start_time or item.created_at, zone),
            printable_line(hit.why, REASON_LENGTH),
        )

    head = ("score", "id", "what", "when", "why")
    print_list(hits, head, row, empty="Nothing fits.", as_json=as_json, to_json=_hit_json)


def _hit_json(hit: ItemHit) -> str:
    item = hit.item
    facts = {
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
    return dump_json(facts)


TITLE_LENGTH = 60
NO_MEMORIES = "No memories. Add one: frontdesk memory add TEXT"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySelection:
    """The filter of a list of memories."""

    kind: Annotated[MemoryType | None, Parameter(name="--type", help="Only those of this kind.")] = None
    status: Annotated[MemoryStatus, Parameter(help="Only those with this status: active, archived or deleted.")] = (
        MemoryStatus.ACTIVE
    )
    tag: AnyTag = ()
    category: InCategory = None
    place: Annotated[str | None, Parameter(help="Only those of this place.")] = None
    highlight: HighlightsOnly = False
    since: Annotated[str | None, Parameter(help="Only those noted on this day, at this time, or later.")] = None
    until: Annotated[str | None, Parameter(help="Only those noted on this day, at this time, or earlier.")] = None
    all_ever: AllEver = False
    zone: DaysZone = None

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
    sort: Annotated[MemorySort, Parameter(help="The field to sort by.")] = MemorySort.CAPTURED_AT,
    limit: PageLimit = 100,
    offset: Offset = 0,
    user: MemoriesOwner = DEFAULT_USER,
    as_json: AsJsonLines = False,
) -> None:
    """List memories, latest first."""
    wanted = which.to_filter(sort, limit, offset)
    page, zone = read_for_person(user, lambda person: person.memory.memories.list(person.scope, wanted))

    def row(memory: Memory) -> tuple[str, ...]:
        return (
            memory.id,
            printable_line(memory.title, TITLE_LENGTH),
            memory.memory_type,
            format_time(memory.captured_at, zone),
            EMPTY_CELL if memory.salience_score is None else f"{memory.salience_score:g}",
        )

    empty = NO_MEMORIES if not page.total and which == ACTIVE_MEMORIES else "No such memories."
    print_page(page, ("id", "memory", "type", "noted", "salience"), row, empty=empty, as_json=as_json)


def show(memory_id: RecordId, /, *, user: MemoryOwner = DEFAULT_USER, as_json: AsJson = False) -> None:
    """Show a memory with all its fields, even if it was superseded or has expired."""
    memory, zone = read_record(
        user, IdLookup.memory, memory_id, lambda person, found: person.memory.memories.get(person.scope, found)
    )
    print_record(memory, printable_text(format_memory(memory, zone)), as_json=as_json)


def stats(
    *,
    zone: Annotated[str | None, Parameter(help="The time zone of this week. Without it, the person's own.")] = None,
    user: MemoriesOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Show statistics of the memories."""
    found = run_for_person(user, lambda person: person.memory.memories.stats(person.scope, zone))
    print_figures(asdict(found), as_json=as_json)


DESCRIPTION_LENGTH = 60
NO_CATEGORIES = "No categories. Make one: frontdesk memory categories add NAME"

categories_command = Command(
    name="categories",
    help="The categories that tasks, memories and activities are put under. Without a command, they are listed.",
)


@categories_command.default
def list_categories(*, user: CategoriesOwner = DEFAULT_USER, as_json: AsJsonLines = False) -> None:
    """List the categories."""
    found = run_for_person(user, lambda person: person.memory.categories.list_all(person.scope))

    def row(one: Category) -> tuple[str, ...]:
        return one.id, one.name, one.color, printable_line(one.description, DESCRIPTION_LENGTH) or EMPTY_CELL

    print_list(found, ("id", "name", "color", "description"), row, empty=NO_CATEGORIES, as_json=as_json)


@categories_command.command(name="add")
def add_category(
    name: Annotated[str, Parameter(help="The name. It must be unique, ignoring case.")],
    /,
    *,
    description: Annotated[str | None, Parameter(help="A description of the category.")] = None,
    color: Annotated[str | None, Parameter(help="The color, as #RRGGBB.")] = None,
    icon: Annotated[str | None, Parameter(help="An icon.")] = None,
    user: CategoryOwner = DEFAULT_USER,
) -> None:
    """Create a category and print its id."""
    given = {"name": name, "description": description, "color": color, "icon": icon}

    async def make(person: PersonContext) -> Category:
        fields = validate_input(CreateCategory, given).provided()
        return await person.memory.categories.create(person.scope, fields)

    category, _ = add_record(user, "memory categories add", make)
    print(category.id)


@categories_command.command(name="delete")
def delete_category(
    name: Annotated[str, Parameter(help="Its name or id.")], /, *, user: CategoryOwner = DEFAULT_USER
) -> None:
    """Delete a category. Its items stay, without a category."""

    async def remove(person: PersonContext, record: CallRecord) -> Category:
        category = await person.memory.categories.get(person.scope, name)
        record.action += f" {category.id}"
        await person.memory.categories.delete(person.scope, category.id)
        return category

    print(f"Deleted: {printable_line(change_for_person(user, 'memory categories delete', remove).name)}")


NO_PEOPLE = "Nobody has stored anything yet. Start: frontdesk memory add TEXT"


def insights(
    *,
    date_range: Annotated[
        InsightRange, Parameter(name="--range", help="How far back to look, today included.")
    ] = InsightRange.WEEK,
    zone: Annotated[
        str | None, Parameter(help="The time zone in which days are meant; the person's own when left out.")
    ] = None,
    user: DaysOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Summarize the days up to today: what was done and noted, when, and how it felt."""
    found = run_for_person(user, lambda person: person.memory.timeline.insights(person.scope, date_range, zone))
    head = f"{found.first_day} to {found.last_day} in {found.timezone}"
    print_record(found, "\n".join((head, *map(printable_line, found.sentences))), as_json=as_json)


def zone(
    name: Annotated[str | None, Parameter(help="An IANA name, e.g. Europe/Berlin.")] = None,
    /,
    *,
    user: PersonOption = DEFAULT_USER,
) -> None:
    """Show or set a person's time zone, which applies to days and times without an offset."""
    if name is None:
        print(run_for_person(user, lambda person: person.memory.people.zone(person.scope)))
        return

    async def move(person: PersonContext, _record: CallRecord) -> str:
        return await person.memory.people.set_zone(person.scope, name)

    print(change_for_person(user, "memory zone", move))


def people(*, limit: Limit = 1000, offset: Offset = 0, as_json: AsJsonLines = False) -> None:
    """List the people who have records here, with the number of their items."""
    found = run_with_app(lambda app: PeopleDirectory(app.database).list_people(local_caller(), limit, offset))

    def row(one: PersonSummary) -> tuple[str, ...]:
        return one.user_id, f"{one.items:,}", one.zone, format_utc_time(one.created_at)

    print_list(found, ("user", "items", "zone", "since"), row, empty=NO_PEOPLE, as_json=as_json)
    if len(found) == limit:
        print(f"There may be more: --offset {offset + limit}", file=sys.stderr)


# An export contains all records of a person, so only the user may read the file.
PRIVATE_MODE = 0o600


def export_records(
    file: Annotated[str, Parameter(help="A new file; - for standard output.")] = STANDARD_STREAM,
    /,
    *,
    user: PersonOption = DEFAULT_USER,
) -> None:
    """Write all records of a person to a JSON file that `memory import` accepts."""
    if file != STANDARD_STREAM and Path(file).exists():
        raise Invalid(f"{file} is there already; name another file")

    async def export(person: PersonContext, _record: CallRecord) -> Mapping[str, Any]:
        return await person.memory.people.export(person.scope)

    text = json.dumps(change_for_person(user, "memory export", export), ensure_ascii=file == STANDARD_STREAM)
    if file == STANDARD_STREAM:
        print(text)
        return
    path = Path(file)
    path.touch(PRIVATE_MODE)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"Written: {printable_line(file)}")


def import_records(
    file: Annotated[str, Parameter(help="What `memory export` wrote; - for standard input.")],
    /,
    *,
    user: PersonOption = DEFAULT_USER,
) -> None:
    """Import an export, for a person without records."""
    document = _read_document(file)

    async def read(person: PersonContext, _record: CallRecord) -> Mapping[str, int]:
        return await person.memory.people.import_(person.scope, document)

    print(f"Taken in: {_describe_counts(change_for_person(user, 'memory import', read))}")


def erase(
    *,
    user: PersonOption = DEFAULT_USER,
    yes: Annotated[Flag, Parameter(help="Confirm: this cannot be undone.")] = False,
) -> None:
    """Erase all records of a person. This cannot be undone."""
    person = require_user_id(user)
    if not yes:
        raise Invalid(
            f"This erases all records of {person} and cannot be undone; keep a copy with frontdesk memory export FILE "
            f"--user {person}, then add --yes"
        )

    async def forget(app: App, _record: CallRecord) -> ErasedRecords:
        return await app.memory.people.erase(PersonScope.for_caller(local_caller(user=person)))

    # The journal entry of this command has no person, or the person's name would remain.
    erased = run_change("memory erase", forget)
    print(f"Erased: {_describe_counts(erased.counts)}")
    if erased.left:
        print("\n".join(f"Not erased: {printable_line(one)}" for one in erased.left), file=sys.stderr)
        sys.exit(1)


def _read_document(file: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(
            sys.stdin.read() if file == STANDARD_STREAM else Path(file).read_text(encoding="utf-8")
        )
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Invalid(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Invalid(f"{file} is no export: it must hold a JSON object")
    return cast("Mapping[str, Any]", found)


def _describe_counts(counts: Mapping[str, int]) -> str:
    said = [f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number]
    return ", ".join(said) or "nothing was there"


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
