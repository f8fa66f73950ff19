"""`frontdesk memory search`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import anyio
from cyclopts import Parameter

from frontdesk.errors import Unavailable
from frontdesk.memory.model import ItemType, MemoryType
from frontdesk.memory.recall.model import MOST, Hit, Query, Way
from frontdesk.memory.tooling.telling.words import when
from frontdesk.surfaces.cli.options import Flag, Json, Many, Text, up_to
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, looking
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.words import dumped, table

SHOWN, REASON = 70, 60
# What was kept while no server ran is read for its meaning first, as far as this goes; the rest is found by its words.
READ_SECONDS = 10
MEMORIES = frozenset({ItemType.MEMORY})
NONE = "Nothing fits."


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """Where to look.

    Parameters
    ----------
    everything
        Look among tasks, activities and other items as well.
    kind
        Only memories of this kind.
    tag
        Only those with this tag; repeated for several, of which they must have one.
    category
        Only those of this category, by its name or id.
    highlight
        Only the best.
    since
        Only those of this day, of this time, or later.
    until
        Only those of this day, of this time, or earlier.
    all_ever
        Also those that were superseded or have expired.
    zone
        The time zone in which days are meant; the person's own when left out.
    by
        By words and meaning together (hybrid), by words alone (full-text), or by meaning alone (semantic).
    """

    everything: Flag = False
    kind: Annotated[MemoryType | None, Parameter(name="--type")] = None
    tag: Many = ()
    category: str | None = None
    highlight: Flag = False
    since: str | None = None
    until: str | None = None
    all_ever: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False
    zone: str | None = None
    by: Way = Way.HYBRID

    def query(self, text: str, limit: int) -> Query:
        return Query(
            text=text,
            types=None if self.everything else MEMORIES,
            limit=limit,
            how=self.by,
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


ALL_MEMORIES = Among()


def search(
    words: Text,
    /,
    *,
    among: Among = ALL_MEMORIES,
    limit: Annotated[int, up_to(MOST)] = 10,
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """Find what was remembered, by words and by meaning, the best first.

    frontdesk memory search 'which food should we avoid?'

    Parameters
    ----------
    words
        What it is about, in plain words.
    limit
        Show at most this many.
    user
        The person whose memories they are.
    as_json
        Print one JSON object a line.
    """

    async def look(acting: Acting) -> tuple[Sequence[Hit], ZoneInfo]:
        with suppress(Unavailable), anyio.move_on_after(READ_SECONDS):
            await acting.app.reader.read_all()
        return await acting.room.recall.search(acting.scope, among.query(words, limit)), await acting.zone()

    hits, zone = looking(user, look)
    if as_json:
        for hit in hits:
            print(dumped(_told(hit)))
        return
    rows = [_row(hit, zone) for hit in hits]
    print(table(("score", "id", "what", "when", "why"), rows) if rows else NONE)


def _row(hit: Hit, zone: ZoneInfo) -> tuple[str, ...]:
    item = hit.item
    return (
        f"{hit.score:.2f}",
        item.id,
        line(hit.text, SHOWN),
        when(item.start_time or item.created_at, zone),
        line(hit.why, REASON),
    )


def _told(hit: Hit) -> Mapping[str, Any]:
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
