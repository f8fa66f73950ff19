"""Who somebody is to the memory room: where they live, and all of theirs, handed out, taken in or erased."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from frontdesk import zones
from frontdesk.identity import rights
from frontdesk.memory.people import document, store
from frontdesk.memory.people.finding.store import put_all
from frontdesk.memory.people.shape import plain
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many records are gone, and in words what is left, where something had to be."""

    count: int
    left: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What another room keeps of a person, by their id: how it is told in an export, and how it is forgotten.

    `forget` returns how many records went, as `Forgotten` where some may be left.
    """

    name: str
    tell: Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]] | None = None
    forget: Callable[[str], Awaitable[int | Forgotten]] | None = None


@dataclass(frozen=True, slots=True)
class Erased:
    """How many records of what are gone; `left` says in words what is not, and what to do about it."""

    counts: Mapping[str, int]
    left: Sequence[str] = ()

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class People:
    """Needs the right to everything, but for a look at one's zone."""

    def __init__(self, records: Records, elsewhere: Sequence[Elsewhere] = ()) -> None:
        self._records = records
        self._elsewhere = elsewhere

    async def zone(self, scope: Scope) -> str:
        """The IANA name of the zone in which days and times are read."""
        return await self._records.read(scope, lambda mine: mine.zone_name)

    async def set_zone(self, scope: Scope, name: str) -> str:
        """The name as IANA spells it."""
        scope.require(rights.MEMORY_ADMIN)
        known = zones.zone_name(name)
        await self._records.change(scope, partial(store.set_zone, name=known))
        return known

    async def last_change(self, scope: Scope) -> datetime | None:
        """When something of theirs was last made or changed, or time began to be tracked."""
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, store.last_change)

    async def counts(self, scope: Scope) -> Mapping[str, int]:
        """How many records of what there are."""
        scope.require(rights.MEMORY_ADMIN)
        return await self._records.read(scope, store.counts)

    async def export(self, scope: Scope) -> Mapping[str, Any]:
        """Everything, as JSON has it; `import_` takes the records of it."""
        scope.require(rights.MEMORY_ADMIN)
        zone, records = await self._records.read(scope, _everything)
        told = {one.name: await one.tell(scope.user_id) for one in self._elsewhere if one.tell is not None}
        return {
            "format": document.FORMAT,
            "version": document.VERSION,
            "exported_at": datetime.now(UTC).isoformat(),
            "user_id": scope.user_id,
            "zone": zone,
            "records": plain(records),
            "elsewhere": plain(told),
        }

    async def import_(self, scope: Scope, exported: Mapping[str, Any]) -> Mapping[str, int]:
        """Take the records of an export into an account that has none, under their own ids; how many of what."""
        scope.require(rights.MEMORY_ADMIN)
        zone, rows = document.zone_of(exported), document.rows_of(exported, store.SHAPES)
        return await self._records.change(scope, partial(_take_in, zone=zone, rows=rows), small=False)

    async def erase(self, scope: Scope) -> Erased:
        """Everything, here and elsewhere; done again after a failure, it goes on where it stopped."""
        scope.require(rights.MEMORY_ADMIN)
        gone = await self._records.change(scope, store.erase, small=False)
        left: list[str] = []
        for one in self._elsewhere:
            if one.forget is not None:
                done = await one.forget(scope.user_id)
                forgotten = Forgotten(done) if isinstance(done, int) else done
                gone[one.name] = forgotten.count
                left += forgotten.left
        return Erased(gone, left)


def _everything(mine: Mine) -> tuple[str, Mapping[str, Any]]:
    return mine.zone_name, store.everything(mine)


def _take_in(mine: Mine, zone: str, rows: document.Rows) -> Mapping[str, int]:
    taken = store.take_in(mine, zone, rows)
    put_all(mine)
    return taken
