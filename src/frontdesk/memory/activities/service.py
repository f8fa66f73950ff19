"""Activities as the doors use them."""

from functools import partial

from frontdesk.identity import rights
from frontdesk.memory.activities import making, store
from frontdesk.memory.activities.figures import store as figures
from frontdesk.memory.activities.wanted import ActivityStats, ActivityWanted
from frontdesk.memory.given import Fields, Page
from frontdesk.memory.model import Activity
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Records


class Activities:
    """What a person did, and how it felt."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def create(self, scope: Scope, fields: Fields, zone: str | None = None) -> Activity:
        """`fields` are those of an `Activity`; of start, end and length, what is missing is worked out."""
        scope.require(rights.ACTIVITIES_WRITE)
        return await self._records.change(scope, partial(making.create, fields=fields, zone=zone))

    async def get(self, scope: Scope, activity_id: str) -> Activity:
        scope.require(rights.ACTIVITIES_READ)
        return await self._records.read(scope, partial(making.get, activity_id=activity_id))

    async def list(self, scope: Scope, wanted: ActivityWanted) -> Page[Activity]:
        scope.require(rights.ACTIVITIES_READ)
        return await self._records.read(scope, partial(store.find, wanted=wanted))

    async def update(self, scope: Scope, activity_id: str, fields: Fields, zone: str | None = None) -> Activity:
        scope.require(rights.ACTIVITIES_WRITE)
        work = partial(making.update, activity_id=activity_id, fields=fields, zone=zone)
        return await self._records.change(scope, work)

    async def delete(self, scope: Scope, activity_id: str) -> None:
        """For good, with the time that was spent on it."""
        scope.require(rights.ACTIVITIES_WRITE)
        await self._records.change(scope, partial(making.delete, activity_id=activity_id))

    async def stats(self, scope: Scope, zone: str | None = None) -> ActivityStats:
        scope.require(rights.ACTIVITIES_READ)
        return await self._records.read(scope, partial(figures.stats, zone=zone))
