"""`frontdesk memory insights`, `zone` and `people`."""

import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.journal.record import Record
from frontdesk.memory.roster.model import Person
from frontdesk.memory.roster.service import Roster
from frontdesk.memory.timeline.model import DateRange
from frontdesk.surfaces.cli.options import Json, Limit, up_to
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, changing, looking
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import operator, with_app
from frontdesk.surfaces.cli.words import dumped, moment, table

NOBODY = "Nobody keeps anything here yet. Begin: frontdesk memory add TEXT"


def insights(
    *,
    date_range: Annotated[DateRange, Parameter(name="--range")] = DateRange.WEEK,
    zone: str | None = None,
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """Say what the days up to today show: what was done and noted, when, and how it felt.

    Parameters
    ----------
    date_range
        How far back to look, today included.
    zone
        The time zone in which days are meant; the person's own when left out.
    user
        The person whose days they are.
    as_json
        Print one JSON object.
    """
    found = looking(user, lambda acting: acting.room.timeline.insights(acting.scope, date_range, zone))
    if as_json:
        print(dumped(asdict(found)))
        return
    print(f"{found.first_day} to {found.last_day} in {found.timezone}")
    for sentence in found.sentences:
        print(line(sentence))


def zone(name: str | None = None, /, *, user: User = LOCAL) -> None:
    """Show the time zone that a person lives in, or set it: days and times without an offset are meant there.

    Parameters
    ----------
    name
        An IANA name, e.g. Europe/Berlin.
    user
        The person.
    """
    if name is None:
        print(looking(user, lambda acting: acting.room.people.zone(acting.scope)))
        return

    async def move(acting: Acting, _record: Record) -> str:
        return await acting.room.people.set_zone(acting.scope, name)

    print(changing(user, "memory zone", move))


def people(
    *, limit: Limit = 1000, offset: Annotated[int, up_to(10_000_000, least=0)] = 0, as_json: Json = False
) -> None:
    """List the people who keep something here, and how much; not what.

    Parameters
    ----------
    limit
        Show at most this many.
    offset
        Leave out so many first.
    as_json
        Print one JSON object a line.
    """

    async def look(app: App) -> list[Person]:
        return list(await Roster(app.database).everybody(operator(), limit, offset))

    found = with_app(look)
    if as_json:
        for one in found:
            print(dumped(asdict(one)))
    else:
        rows = [(one.user_id, f"{one.items:,}", one.zone, moment(one.created_at)) for one in found]
        print(table(("user", "items", "zone", "since"), rows) if rows else NOBODY)
    if len(found) == limit:
        print(f"There may be more: --offset {offset + limit}", file=sys.stderr)
