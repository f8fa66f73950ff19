"""The one way to records: a transaction in which there is one person alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from frontdesk import zones
from frontdesk.db import walls
from frontdesk.db.clock import CLOCK
from frontdesk.db.engine import Database
from frontdesk.db.schema import people
from frontdesk.db.upsert import per_dialect
from frontdesk.errors import Conflict
from frontdesk.memory.scope import Scope

T = TypeVar("T")
UTC_NAME = "UTC"
PERSON = select(people.c.number, people.c.zone)
# A new person's first two changes may come at once.
ENROL = per_dialect(lambda insert: insert(people).on_conflict_do_nothing())


@dataclass(frozen=True, slots=True)
class Mine:
    """One person's records within a transaction: what every store works on."""

    connection: Connection
    user_id: str
    agent_id: str | None
    now: datetime
    # The person's number and zone; 0 for one of whom nothing is kept yet.
    number: int = 0
    zone_name: str = UTC_NAME

    @property
    def zone(self) -> ZoneInfo:
        return zones.there(self.zone_name)

    def hold(self) -> None:
        """Let nobody else who does so change what is this person's before the end; SQLite has one writer at a time."""
        self.connection.execute(PERSON.where(people.c.user_id == self.user_id).with_for_update())

    def clock(self) -> datetime:
        """What time it is for leases, which replicas go by together."""
        if self.connection.dialect.name != "postgresql":
            return self.now
        return self.connection.execute(CLOCK).scalar_one()


class Records:
    """Everybody's records, of which a scope opens one person's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_role: bool | None = None
        self._heard: Callable[[], None] | None = None

    def listen(self, heard: Callable[[], None]) -> None:
        """Have this called after every change, once it can be seen."""
        self._heard = heard

    async def read(self, scope: Scope, look: Callable[[Mine], T]) -> T:
        """What `look` finds among the person's records."""
        return await self._database.look(partial(self._within, scope, look))

    async def change(self, scope: Scope, work: Callable[[Mine], T], *, small: bool = True) -> T:
        """What `work` returns, with all that it changed kept, or nothing of it."""
        done = await self._database.whole(partial(self._within, scope, partial(_enrolled, work)), small=small)
        if self._heard is not None:
            self._heard()
        return done

    def _within(self, scope: Scope, use: Callable[[Mine], T], connection: Connection) -> T:
        if connection.dialect.name == "postgresql":
            if self._has_role is None:
                self._has_role = walls.can_step_in(connection)
            walls.step_in(connection, scope.user_id, role=self._has_role)
        found = connection.execute(PERSON.where(people.c.user_id == scope.user_id)).one_or_none()
        number, zone = (0, UTC_NAME) if found is None else (found.number, found.zone)
        return use(Mine(connection, scope.user_id, scope.agent_id, datetime.now(UTC), number, zone))


def _enrolled(work: Callable[[Mine], T], mine: Mine) -> T:
    """With a number for the person, who may be new; a race that the database settles is told as one."""
    try:
        if not mine.number:
            mine = _enrol(mine)
        return work(mine)
    except IntegrityError as error:
        raise Conflict("Somebody changed the same at this moment; look again, then try once more") from error


def _enrol(mine: Mine) -> Mine:
    row = {"user_id": mine.user_id, "zone": UTC_NAME, "created_at": mine.now, "found": 0, "unread": 0}
    mine.connection.execute(ENROL[mine.connection.dialect.name], row)
    found = mine.connection.execute(PERSON.where(people.c.user_id == mine.user_id)).one()
    return replace(mine, number=found.number, zone_name=found.zone)
