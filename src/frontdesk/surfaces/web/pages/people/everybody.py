"""Who keeps something here, and how much."""

from dataclasses import dataclass
from datetime import datetime

from frontdesk.app import App
from frontdesk.identity.inbound import USER_ID_LENGTH
from frontdesk.identity.model import Caller
from frontdesk.memory.roster.model import Person
from frontdesk.memory.roster.service import Roster
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.people.acting import scope_of
from frontdesk.surfaces.web.pages.people.address import address

# When each was last active is looked up in a transaction of their own.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A person in the list."""

    person: Person
    address: str
    last: datetime | None


async def everybody(asked: Asked) -> Shown:
    beginning, after = (asked.query.get(name, "").strip()[:USER_ID_LENGTH] for name in ("find", "after"))
    found = await Roster(asked.app.database).following(asked.caller, SHOWN + 1, after, beginning)
    rows = [await _row(asked.app, asked.caller, one) for one in found[:SHOWN]]
    context = {
        "rows": rows,
        "find": beginning,
        "after": after,
        "goes_on": len(found) > SHOWN,
        "exactly": address(beginning) if beginning else "",
    }
    return Shown("people/found.html" if asked.part else "people/everybody.html", "People", context)


async def _row(app: App, caller: Caller, person: Person) -> Row:
    last = await app.memory.people.last_change(scope_of(caller, person.user_id))
    return Row(person, address(person.user_id), last)
