"""The timeline as the doors use it: everything of a person's, of every type, in one line."""

from collections.abc import Sequence
from functools import partial

from frontdesk.identity import rights
from frontdesk.memory import checks
from frontdesk.memory.given import Fields, Page
from frontdesk.memory.model import Item, ItemType, Task
from frontdesk.memory.moments import today, zone_of
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records
from frontdesk.memory.tasks.service import Tasks
from frontdesk.memory.timeline import making, store
from frontdesk.memory.timeline.facts.store import facts
from frontdesk.memory.timeline.insights import insights, stretch
from frontdesk.memory.timeline.kinds import KINDS
from frontdesk.memory.timeline.making import Kinds
from frontdesk.memory.timeline.model import DateRange, Insights
from frontdesk.memory.timeline.wanted import Place, TimelineSort, TimelineWanted


class Timeline:
    """`tasks` is told of changes to tasks, which others may wait for; `kinds` says what stands behind which items.

    What was deleted is never shown, and a memory that was superseded or has expired is only got by its id.
    """

    def __init__(self, records: Records, tasks: Tasks, kinds: Kinds = KINDS) -> None:
        self._records = records
        self._tasks = tasks
        self._kinds = kinds

    async def list(self, scope: Scope, wanted: TimelineWanted) -> Page[Item]:
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(store.find, wanted=wanted))

    async def newest(
        self, scope: Scope, limit: int = 50, before: Place | None = None, kind: ItemType | None = None
    ) -> Sequence[Item]:
        """The last made first: all of them, or those that were made before one. However many there are, it is quick."""
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(store.newest, limit=limit, before=before, kind=kind))

    async def get(self, scope: Scope, item_id: str) -> Item:
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(making.get, item_id=item_id))

    async def create(self, scope: Scope, fields: Fields, zone: str | None = None) -> Item:
        """`fields` are those of an `Item`; with a task, memory or activity, the item is made as one."""
        scope.require(rights.TIMELINE_WRITE)
        return await self._records.change(scope, partial(making.create, kinds=self._kinds, fields=fields, zone=zone))

    async def update(self, scope: Scope, item_id: str, fields: Fields, zone: str | None = None) -> Item:
        """Also needs the right to change what stands behind the item."""
        scope.require(rights.TIMELINE_WRITE)
        what = {"kinds": self._kinds, "item_id": item_id, "fields": fields, "zone": zone, "require": scope.require}
        done = await self._records.change(scope, partial(making.update, **what))
        if isinstance(done.before, Task) and isinstance(done.after, Task):
            await self._tasks.followed(scope, done.before, done.after)
        return done.item

    async def delete(self, scope: Scope, item_id: str) -> Item:
        """Also needs the right to delete what stands behind the item, which is told as it was."""
        scope.require(rights.TIMELINE_WRITE)
        work = partial(making.delete, kinds=self._kinds, item_id=item_id, require=scope.require)
        done = await self._records.change(scope, work, small=False)
        await self._tasks.left(scope, done.gone)
        return done.item

    async def highlights(self, scope: Scope, limit: int = 20, offset: int = 0) -> Page[Item]:
        """Memories that stand out, the last captured first."""
        scope.require(rights.TIMELINE_READ)
        wanted = TimelineWanted(is_highlight=True, sort_by=TimelineSort.CAPTURED_AT, limit=limit, offset=offset)
        return await self._records.read(scope, partial(store.find, wanted=wanted))

    async def insights(self, scope: Scope, date_range: str = DateRange.WEEK, zone: str | None = None) -> Insights:
        """Of the days up to today, where the person is."""
        scope.require(rights.TIMELINE_READ)
        wanted = checks.choice(DateRange, "date_range", date_range)
        return await self._records.read(scope, partial(_insights, date_range=wanted, zone=zone))


def _insights(mine: Mine, date_range: DateRange, zone: str | None) -> Insights:
    where = zone_of(zone, mine.zone_name)
    return insights(date_range, facts(mine, stretch(date_range, today(mine.now, where), where)))
