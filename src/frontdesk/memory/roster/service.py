"""Who there is, as whoever runs the house may know it."""

from collections.abc import Sequence

from frontdesk.db.engine import Database
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import HOUSE_ADMIN, require_admin
from frontdesk.memory.roster import store
from frontdesk.memory.roster.model import Person


class Roster:
    """For whoever runs the house alone: nobody else learns who keeps something here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def everybody(self, caller: Caller, limit: int, offset: int = 0) -> Sequence[Person]:
        _require(caller)
        return await store.everybody(self._database, limit, offset)

    async def following(self, caller: Caller, limit: int, after: str = "", beginning: str = "") -> Sequence[Person]:
        """Those that come after an id, of those whose ids begin so."""
        _require(caller)
        return await store.following(self._database, limit, after, beginning)

    async def person(self, caller: Caller, user_id: str) -> Person | None:
        """None where nothing is kept of them."""
        _require(caller)
        return await store.person(self._database, user_id)


def _require(caller: Caller) -> None:
    require_admin(caller, HOUSE_ADMIN, "Who keeps something here")
