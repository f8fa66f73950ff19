"""`frontdesk memory list`, `show` and `stats`."""

import sys
from dataclasses import asdict, dataclass
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from frontdesk.memory.given import Page
from frontdesk.memory.memories.wanted import MemorySort, MemoryWanted
from frontdesk.memory.model import Memory, MemoryStatus, MemoryType
from frontdesk.memory.tooling.telling.memories import memory_told
from frontdesk.memory.tooling.telling.words import when
from frontdesk.surfaces.cli.options import Flag, Json, Many, up_to
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, looking
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.remembered import tell_figures
from frontdesk.surfaces.cli.words import ABSENT, dumped, table

TITLE = 60
Limit = Annotated[int, up_to(1000)]
NONE = "No memories. Add one: frontdesk memory add TEXT"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which memories.

    Parameters
    ----------
    kind
        Only those of this kind.
    status
        Those that stand so: active, archived or deleted.
    tag
        Only those with this tag; repeated for several, of which they must have one.
    category
        Only those of this category, by its name or id.
    place
        Only those of this place.
    highlight
        Only the best.
    since
        Only those noted on this day, at this time, or later.
    until
        Only those noted on this day, at this time, or earlier.
    all_ever
        Also those that were superseded or have expired.
    zone
        The time zone in which days are meant; the person's own when left out.
    """

    kind: Annotated[MemoryType | None, Parameter(name="--type")] = None
    status: MemoryStatus = MemoryStatus.ACTIVE
    tag: Many = ()
    category: str | None = None
    place: str | None = None
    highlight: Flag = False
    since: str | None = None
    until: str | None = None
    all_ever: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False
    zone: str | None = None

    def wanted(self, sort: MemorySort, limit: int, offset: int) -> MemoryWanted:
        return MemoryWanted(
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


NO_LIMITS = Which()


def show_all(
    *,
    which: Which = NO_LIMITS,
    sort: MemorySort = MemorySort.CAPTURED_AT,
    limit: Limit = 100,
    offset: Annotated[int, up_to(10_000_000, least=0)] = 0,
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """List memories, the last noted first.

    Parameters
    ----------
    sort
        By what they are put in order.
    limit
        Show at most this many.
    offset
        Leave out so many first.
    user
        The person whose memories they are.
    as_json
        Print one JSON object a line.
    """
    wanted = which.wanted(sort, limit, offset)

    async def look(acting: Acting) -> tuple[Page[Memory], ZoneInfo]:
        return await acting.room.memories.list(acting.scope, wanted), await acting.zone()

    page, zone = looking(user, look)
    if as_json:
        for memory in page.items:
            print(dumped(asdict(memory)))
    elif page.items:
        print(table(("id", "memory", "type", "noted", "salience"), [_row(memory, zone) for memory in page.items]))
    else:
        print(NONE if not page.total and which == NO_LIMITS else "No such memories.")
    if page.has_more:
        print(f"There are more: --offset {offset + len(page.items)}", file=sys.stderr)


def show(memory_id: str, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Show a memory with all that is known of it, also one that was superseded or has expired.

    Parameters
    ----------
    memory_id
        Its id, or the first 8 characters of it or more.
    user
        The person whose memory it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: Acting) -> tuple[Memory, ZoneInfo]:
        found = await acting.names.memory(acting.scope, memory_id)
        return await acting.room.memories.get(acting.scope, found), await acting.zone()

    memory, zone = looking(user, look)
    print(dumped(asdict(memory)) if as_json else plain(memory_told(memory, zone)))


def stats(*, zone: str | None = None, user: User = LOCAL, as_json: Json = False) -> None:
    """Show how many memories there are, of what, and from where.

    Parameters
    ----------
    zone
        The time zone in which this week is meant; the person's own when left out.
    user
        The person whose memories they are.
    as_json
        Print one JSON object.
    """
    found = looking(user, lambda acting: acting.room.memories.stats(acting.scope, zone))
    tell_figures(asdict(found), as_json=as_json)


def _row(memory: Memory, zone: ZoneInfo) -> tuple[str, ...]:
    return (
        memory.id,
        line(memory.title, TITLE),
        memory.memory_type,
        when(memory.captured_at, zone),
        ABSENT if memory.salience_score is None else f"{memory.salience_score:g}",
    )
