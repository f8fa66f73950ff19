"""Who there is, as whoever runs the house may know it."""

from collections.abc import Sequence

from frontdesk.db.engine import Database
from frontdesk.errors import Denied
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import is_operator
from frontdesk.memory.roster import store
from frontdesk.memory.roster.model import Person


class Roster:
    """For the operator at this machine alone: nobody else learns who keeps something here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def everybody(self, caller: Caller, limit: int, offset: int = 0) -> Sequence[Person]:
        if not is_operator(caller):
            raise Denied("Who keeps something here is for the operator at this machine")
        return await store.everybody(self._database, limit, offset)
