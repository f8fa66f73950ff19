"""A person's time as every door uses it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from frontdesk.errors import Invalid
from frontdesk.identity import rights
from frontdesk.memory.categories import store as categories
from frontdesk.memory.given import Fields
from frontdesk.memory.model import ItemType, TimeEntry
from frontdesk.memory.moments import EARLIEST, LATEST, Span, moment, span_of, today, until, zone_of
from frontdesk.memory.moments import day as read_day
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records
from frontdesk.memory.timing import keeping, rules, store
from frontdesk.memory.timing.model import DaySpending, Started

WEEK, MOST_DAYS = 7, 31


class Timing:
    """Every method takes whose time it is first; another's is `NotFound`, in the words for what is not there.

    `kind` is what the item must be, where the door has a word for it: a task's door finds no activities.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    async def start(
        self,
        scope: Scope,
        item_id: str,
        note: str | None = None,
        auto_switch: bool = False,
        *,
        kind: ItemType | None = None,
    ) -> Started:
        """Start an item's timer. Where another runs that is `TimerRunning`, or with `auto_switch` stops it."""
        scope.require(rights.TASKS_TIME)
        work = partial(keeping.start, item_id=item_id, note=note, auto_switch=auto_switch, kind=kind)
        return await self._records.change(scope, work)

    async def stop(
        self,
        scope: Scope,
        item_id: str,
        end_at: str | None = None,
        zone: str | None = None,
        *,
        kind: ItemType | None = None,
    ) -> TimeEntry | None:
        """Stop an item's timer now, or as of then; None where none runs."""
        scope.require(rights.TASKS_TIME)
        work = partial(keeping.stop, item_id=item_id, end_at=end_at, zone=zone, kind=kind)
        return await self._records.change(scope, work)

    async def running(self, scope: Scope) -> TimeEntry | None:
        scope.require(rights.TASKS_TIME)
        return await self._records.read(scope, store.running)

    async def of_item(
        self,
        scope: Scope,
        item_id: str,
        start_date: str | None = None,
        end_date: str | None = None,
        zone: str | None = None,
        *,
        kind: ItemType | None = None,
    ) -> Sequence[TimeEntry]:
        """What was spent on an item, all of it or between these dates, in the order of time."""
        scope.require(rights.TASKS_TIME)
        work = partial(_of_item, item_id=item_id, start=start_date, end=end_date, zone=zone, kind=kind)
        return await self._records.read(scope, work)

    async def add(
        self, scope: Scope, item_id: str, fields: Fields, zone: str | None = None, *, kind: ItemType | None = None
    ) -> TimeEntry:
        """Write down time by hand: `start_at`, `end_at` and perhaps a `note`."""
        scope.require(rights.TASKS_TIME)
        work = partial(keeping.add, item_id=item_id, fields=fields, zone=zone, kind=kind)
        return await self._records.change(scope, work)

    async def change(self, scope: Scope, entry_id: str, fields: Fields, zone: str | None = None) -> TimeEntry:
        scope.require(rights.TASKS_TIME)
        return await self._records.change(scope, partial(keeping.change, entry_id=entry_id, fields=fields, zone=zone))

    async def remove(self, scope: Scope, entry_id: str) -> TimeEntry:
        """Take an entry away; what it was."""
        scope.require(rights.TASKS_TIME)
        return await self._records.change(scope, partial(keeping.remove, entry_id=entry_id))

    async def between(self, scope: Scope, start: str, end: str, zone: str | None = None) -> Sequence[TimeEntry]:
        """All entries that have a part in that time."""
        scope.require(rights.TASKS_TIME)
        return await self._records.read(scope, partial(_between, start=start, end=end, zone=zone))

    async def day(self, scope: Scope, day: str, zone: str | None = None) -> DaySpending:
        """Where a day went, from midnight to midnight in the zone."""
        scope.require(rights.TASKS_TIME)
        return await self._records.read(scope, partial(_day, day=day, zone=zone))

    async def days(
        self, scope: Scope, last: str | None = None, count: int = WEEK, zone: str | None = None
    ) -> Sequence[DaySpending]:
        """Where so many days went, up to that one or today, the last first."""
        scope.require(rights.TASKS_TIME)
        if not 1 <= count <= MOST_DAYS:
            raise Invalid(f"count must be from 1 to {MOST_DAYS}")
        return await self._records.read(scope, partial(_days, last=last, count=count, zone=zone))


def _of_item(
    mine: Mine, item_id: str, start: str | None, end: str | None, zone: str | None, kind: ItemType | None
) -> Sequence[TimeEntry]:
    item, where = keeping.item_of(mine, item_id, kind), zone_of(zone, mine.zone_name)
    first = moment(start, where, "start_date") if start else EARLIEST
    last = until(end, where, "end_date") if end else LATEST
    return store.overlapping(mine, _forward(first, last, "start_date must lie before end_date"), item.id)


def _between(mine: Mine, start: str, end: str, zone: str | None) -> Sequence[TimeEntry]:
    where = zone_of(zone, mine.zone_name)
    first, last = moment(start, where, "from"), until(end, where, "to")
    return store.overlapping(mine, _forward(first, last, "from must lie before to"))


def _forward(first: datetime, last: datetime, otherwise: str) -> Span:
    if first >= last:
        raise Invalid(otherwise)
    return Span(first, last)


def _days(mine: Mine, last: str | None, count: int, zone: str | None) -> Sequence[DaySpending]:
    where = zone_of(zone, mine.zone_name)
    end = read_day(last, "date") if last else today(mine.now, where)
    count = min(count, end.toordinal() - EARLIEST.toordinal() + 1)
    first = end - timedelta(days=count - 1)
    entries = store.overlapping(mine, span_of(first, where, count))
    names = {one.id: one.name for one in categories.every(mine)}
    every = (end - timedelta(days=back) for back in range(count))
    return [rules.spent(entries, one, where.key, span_of(one, where), mine.now, names) for one in every]


def _day(mine: Mine, day: str, zone: str | None) -> DaySpending:
    where, of_day = zone_of(zone, mine.zone_name), read_day(day, "date")
    span = span_of(of_day, where)
    names = {one.id: one.name for one in categories.every(mine)}
    return rules.spent(store.overlapping(mine, span), of_day, where.key, span, mine.now, names)
