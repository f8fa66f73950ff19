"""Opens transactions in which only one person's records are visible, and builds the list queries of all stores."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, func, or_, select
from sqlalchemy.exc import IntegrityError

from frontdesk import zones
from frontdesk.db.engine import Database
from frontdesk.db.row_security import can_set_role, set_person
from frontdesk.db.schema import people
from frontdesk.db.statements import SELECT_DATABASE_TIME, per_dialect
from frontdesk.errors import Conflict
from frontdesk.memory.model import PersonScope

T = TypeVar("T")
UTC_NAME = "UTC"
SELECT_PERSON = select(people.c.number, people.c.zone)
# A new person's first two changes may come at the same time.
INSERT_PERSON = per_dialect(lambda insert: insert(people).on_conflict_do_nothing())


@dataclass(frozen=True, slots=True)
class PersonTransaction:
    """A transaction in which only one person's records are visible. Every store works on it."""

    connection: Connection
    user_id: str
    agent_id: str | None
    now: datetime
    # The person's number and zone; the number is 0 if nothing is stored of them yet.
    number: int = 0
    zone_name: str = UTC_NAME

    @property
    def zone(self) -> ZoneInfo:
        return zones.zone_of_name(self.zone_name)

    def lock_person(self) -> None:
        """Make other changes to the person's records wait until the transaction ends. SQLite has one writer anyway."""
        self.connection.execute(SELECT_PERSON.where(people.c.user_id == self.user_id).with_for_update())

    def lease_time(self) -> datetime:
        """The time that leases use, the same for all replicas."""
        if self.connection.dialect.name != "postgresql":
            return self.now
        return self.connection.execute(SELECT_DATABASE_TIME).scalar_one()


class PersonDatabase:
    """The records of all people. A scope opens the records of one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_role: bool | None = None
        self._on_change: Callable[[], None] | None = None

    def on_change(self, heard: Callable[[], None]) -> None:
        """Call this function after every change, once the change is visible."""
        self._on_change = heard

    async def read(self, scope: PersonScope, look: Callable[[PersonTransaction], T]) -> T:
        """Run `look` in a read transaction on the person's records."""
        return await self._database.read(partial(self._run, scope, look))

    async def change(self, scope: PersonScope, work: Callable[[PersonTransaction], T], *, small: bool = True) -> T:
        """Run `work` in a write transaction on the person's records."""
        done = await self._database.write(partial(self._run, scope, partial(_with_person_row, work)), small=small)
        if self._on_change is not None:
            self._on_change()
        return done

    def _run(self, scope: PersonScope, use: Callable[[PersonTransaction], T], connection: Connection) -> T:
        if connection.dialect.name == "postgresql":
            if self._has_role is None:
                self._has_role = can_set_role(connection)
            set_person(connection, scope.user_id, role=self._has_role)
        found = connection.execute(SELECT_PERSON.where(people.c.user_id == scope.user_id)).one_or_none()
        number, zone = (0, UTC_NAME) if found is None else (found.number, found.zone)
        return use(PersonTransaction(connection, scope.user_id, scope.agent_id, datetime.now(UTC), number, zone))


def _with_person_row(work: Callable[[PersonTransaction], T], transaction: PersonTransaction) -> T:
    """Run `work` for a person who may be new. A lost race in the database becomes a `Conflict`."""
    try:
        if not transaction.number:
            transaction = _insert_person(transaction)
        return work(transaction)
    except IntegrityError as error:
        raise Conflict("Somebody changed the same at this moment; look again, then try once more") from error


def _insert_person(transaction: PersonTransaction) -> PersonTransaction:
    row = {"user_id": transaction.user_id, "zone": UTC_NAME, "created_at": transaction.now, "found": 0, "unread": 0}
    transaction.connection.execute(INSERT_PERSON[transaction.connection.dialect.name], row)
    found = transaction.connection.execute(SELECT_PERSON.where(people.c.user_id == transaction.user_id)).one()
    return replace(transaction, number=found.number, zone_name=found.zone)


ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def case_variants(text: str) -> tuple[str, ...]:
    """The forms of a text in a column that the database lowered: SQLite lowers only A to Z."""
    if text.isascii():
        return (text.lower(),)
    ways = (text.lower(), text.upper(), text.title(), text)
    return tuple(dict.fromkeys(way.translate(ASCII_LOWER) for way in ways))


SECOND, INSTANT = timedelta(seconds=1), timedelta(microseconds=1)


def contains_text(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """A condition: the column contains this text, in any case."""
    lowered = func.lower(column)
    return or_(*(lowered.contains(way, autoescape=True) for way in case_variants(text)))


def contains_words(columns: Sequence[ColumnElement[Any]], text: str) -> list[ColumnElement[bool]]:
    """Conditions: each word of the text is in at least one of the columns."""
    return [or_(*(contains_text(column, word) for column in columns)) for word in text.split()]


def not_after(column: ColumnElement[Any], bound: datetime) -> ColumnElement[bool]:
    """A condition: not after that moment. A moment without fractions of a second means the whole second."""
    return column < bound + (INSTANT if bound.microsecond else SECOND)


def order_rows(
    query: Select[Any], column: ColumnElement[Any], tie: ColumnElement[Any], order: str, *, nullable: bool = False
) -> Select[Any]:
    """Sort rows by a column, those without a value last, and equal ones by `tie`."""
    directed = [one.asc() if order == "asc" else one.desc() for one in (column, tie)]
    return query.order_by(directed[0].nulls_last() if nullable else directed[0], directed[1])


def fetch_page(
    transaction: PersonTransaction, query: Select[Any], limit: int, offset: int
) -> tuple[Sequence[RowMapping], int]:
    """Some of the rows, and how many there are. They are counted only if that is not known from the page."""
    rows = transaction.connection.execute(query.limit(limit).offset(offset)).mappings().all()
    if len(rows) < limit and (rows or not offset):
        return rows, offset + len(rows)
    counting = query.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
    return rows, transaction.connection.execute(counting).scalar_one()


def most_first(rows: Iterable[tuple[T, int]]) -> dict[T, int]:
    """Counts, the largest first."""
    return dict(sorted(rows, key=lambda pair: -pair[1]))
