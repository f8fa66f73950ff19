"""One person as their pages show them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from frontdesk import zones
from frontdesk.memory.roster.model import Person
from frontdesk.memory.roster.service import Roster
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.telling.words import length, when
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.model import Asked, Shown
from frontdesk.surfaces.web.pages.people.acting import scope_of
from frontdesk.surfaces.web.pages.people.address import address, checked

TITLE = 60
NOWHERE = "UTC"


@dataclass(frozen=True, slots=True)
class Whose:
    """Somebody whose page is looked at; `person` is None where nothing is kept of them."""

    asked: Asked
    user: str
    scope: Scope
    person: Person | None
    last: datetime | None

    @property
    def room(self) -> MemoryRoom:
        return self.asked.app.memory

    def said(self, name: str) -> str:
        """What the address says, without the blanks around it."""
        return self.asked.query.get(name, "").strip()

    def shown(self, template: str, tab: str, context: Mapping[str, Any]) -> Shown:
        zone = zones.there(self.person.zone if self.person is not None else NOWHERE)
        own = {
            "user": self.user,
            "quoted": shlex.quote(self.user),
            "person": self.person,
            "last": self.last,
            "tab": tab,
            "at": partial(address, self.user),
            "local": partial(when, zone=zone),
            "length": length,
        }
        return Shown(f"people/{template}.html", f"{short(self.user, TITLE)} · People", {**own, **context})


async def whose(asked: Asked) -> Whose:
    user = checked(asked.at["user_id"] or asked.query.get("id", ""))
    scope = scope_of(asked.caller, user)
    found = await Roster(asked.app.database).person(asked.caller, user)
    return Whose(asked, user, scope, found, await asked.app.memory.people.last_change(scope))
