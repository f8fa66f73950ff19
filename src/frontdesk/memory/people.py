"""Offers a person's data as a whole: time zone, counts, export, import, erase; lists people for administrators."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from frontdesk import zones
from frontdesk.db.engine import Database
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import INSTALLATION_ADMIN, TIMELINE_READ, require_operator_or_granted, require_scope
from frontdesk.memory.model import PersonActivity, PersonScope, PersonSummary
from frontdesk.memory.people_export import (
    EXPORT_FORMAT,
    EXPORT_VERSION,
    ExportRows,
    read_export_rows,
    read_export_zone,
    to_json,
)
from frontdesk.memory.people_store import (
    TABLE_SCHEMAS,
    count_rows,
    erase_person,
    export_rows,
    fetch_person,
    import_rows,
    index_all_items,
    list_active_people,
    list_people,
    save_zone,
)
from frontdesk.memory.store import PersonDatabase, PersonTransaction


@dataclass(frozen=True, slots=True)
class DeletedRecords:
    """How many records were deleted, and descriptions of what could not be deleted."""

    count: int
    left: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class OtherPersonData:
    """Data of a person in another package: functions that export and delete it by the person's id.

    `delete` returns the number of deleted records, or `DeletedRecords` if some may remain.
    """

    name: str
    export: Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]] | None = None
    delete: Callable[[str], Awaitable[int | DeletedRecords]] | None = None


@dataclass(frozen=True, slots=True)
class ErasedRecords:
    """The number of deleted records of each kind. `left` describes what remains, and what to do about it."""

    counts: Mapping[str, int]
    left: Sequence[str] = ()

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class PersonDataService:
    """A person's data as a whole. Everything except reading the time zone needs the scope `admin`."""

    def __init__(self, records: PersonDatabase, elsewhere: Sequence[OtherPersonData] = ()) -> None:
        self._records = records
        self._other_data = elsewhere

    async def zone(self, scope: PersonScope) -> str:
        """The IANA name of the person's time zone."""
        return await self._records.read(scope, lambda transaction: transaction.zone_name)

    async def set_zone(self, scope: PersonScope, name: str) -> str:
        """Set the person's time zone. Returns its name in IANA's spelling."""
        scope.require(rights.MEMORY_ADMIN)
        known = zones.zone_name(name)
        await self._records.change(scope, partial(save_zone, name=known))
        return known

    async def counts(self, scope: PersonScope) -> Mapping[str, int]:
        """The number of records of each kind."""
        scope.require(rights.MEMORY_ADMIN)
        return await self._records.read(scope, count_rows)

    async def export(self, scope: PersonScope) -> Mapping[str, Any]:
        """Everything that is stored for the person, as JSON values. `import_` accepts the records in it."""
        scope.require(rights.MEMORY_ADMIN)
        zone, records = await self._records.read(scope, _read_everything)
        told = {one.name: await one.export(scope.user_id) for one in self._other_data if one.export is not None}
        return {
            "format": EXPORT_FORMAT,
            "version": EXPORT_VERSION,
            "exported_at": datetime.now(UTC).isoformat(),
            "user_id": scope.user_id,
            "zone": zone,
            "records": to_json(records),
            "elsewhere": to_json(told),
        }

    async def import_(self, scope: PersonScope, exported: Mapping[str, Any]) -> Mapping[str, int]:
        """Import the records of an export under their own ids, for a person without records. Returns the counts."""
        scope.require(rights.MEMORY_ADMIN)
        zone, rows = read_export_zone(exported), read_export_rows(exported, TABLE_SCHEMAS)
        return await self._records.change(scope, partial(_import_and_index, zone=zone, rows=rows), small=False)

    async def erase(self, scope: PersonScope) -> ErasedRecords:
        """Delete everything of the person, here and in other packages. It can be repeated after a failure."""
        scope.require(rights.MEMORY_ADMIN)
        gone = await self._records.change(scope, erase_person, small=False)
        left: list[str] = []
        for one in self._other_data:
            if one.delete is not None:
                done = await one.delete(scope.user_id)
                forgotten = DeletedRecords(done) if isinstance(done, int) else done
                gone[one.name] = forgotten.count
                left += forgotten.left
        return ErasedRecords(gone, left)


def _read_everything(transaction: PersonTransaction) -> tuple[str, Mapping[str, Any]]:
    return transaction.zone_name, export_rows(transaction)


def _import_and_index(transaction: PersonTransaction, zone: str, rows: ExportRows) -> Mapping[str, int]:
    taken = import_rows(transaction, zone, rows)
    index_all_items(transaction)
    return taken


class PeopleDirectory:
    """Lists people with records, for operators only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_people(self, caller: Caller, limit: int, offset: int = 0) -> Sequence[PersonSummary]:
        _require_installation_admin(caller)
        return await self._database.read(partial(list_people, limit=limit, offset=offset))

    async def list_active_people(
        self, caller: Caller, limit: int, after: str = "", beginning: str = ""
    ) -> Sequence[PersonActivity]:
        """People whose ids start with `beginning`, in the order of their ids, from the one that follows `after`."""
        _require_installation_admin(caller)
        require_scope(caller, TIMELINE_READ)
        return await self._database.read(partial(list_active_people, limit=limit, after=after, beginning=beginning))

    async def person(self, caller: Caller, user_id: str) -> PersonActivity | None:
        """One person; None if nothing is stored for this id."""
        _require_installation_admin(caller)
        require_scope(caller, TIMELINE_READ)
        return await self._database.read(partial(fetch_person, user_id=user_id))


def _require_installation_admin(caller: Caller) -> None:
    require_operator_or_granted(caller, INSTALLATION_ADMIN, "The list of people")
