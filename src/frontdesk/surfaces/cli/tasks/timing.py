"""`frontdesk tasks start`, `stop`, `running` and `day`."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from frontdesk.journal.record import Record
from frontdesk.memory.model import ItemType, TimeEntry
from frontdesk.memory.timing.model import DaySpending, Started
from frontdesk.memory.tooling.telling.timing import day_told, entry_told
from frontdesk.surfaces.cli.options import Flag, Json, Text
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, changing, looking
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.words import dumped

NONE = "No timer runs. Start one: frontdesk tasks start TASK_ID"


def start(
    task_id: str, /, *, note: Text | None = None, switch: Flag = False, user: User = LOCAL, as_json: Json = False
) -> None:
    """Start a task's timer; a person has one at a time.

    Parameters
    ----------
    task_id
        Its id, or the first 8 characters of it or more.
    note
        What is being done.
    switch
        Stop the timer that runs, if another does.
    user
        The person whose time it is.
    as_json
        Print one JSON object.
    """

    async def begin(acting: Acting, record: Record) -> tuple[Started, ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        record.action += f" {found}"
        started = await acting.room.timing.start(acting.scope, found, note, auto_switch=switch, kind=ItemType.TASK)
        return started, await acting.zone()

    started, zone = changing(user, "tasks start", begin)
    if started.stopped is not None:
        print(f"Stopped: {_told(started.stopped, zone)}", file=sys.stderr)
    _tell(started.entry, zone, as_json=as_json)


def stop(task_id: str | None = None, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Stop the timer; exit 1 where none runs.

    Parameters
    ----------
    task_id
        Only if it is this task's: its id, or the first 8 characters of it or more.
    user
        The person whose time it is.
    as_json
        Print one JSON object.
    """

    async def end(acting: Acting, record: Record) -> tuple[TimeEntry | None, ZoneInfo]:
        zone = await acting.zone()
        found = await _timed(acting) if task_id is None else await acting.names.task(acting.scope, task_id)
        if found is None:
            return None, zone
        record.action += f" {found}"
        return await acting.room.timing.stop(acting.scope, found), zone

    entry, zone = changing(user, "tasks stop", end)
    if entry is None:
        print(NONE, file=sys.stderr)
        sys.exit(1)
    _tell(entry, zone, as_json=as_json)


def running(*, user: User = LOCAL, as_json: Json = False) -> None:
    """Show the timer that runs.

    Parameters
    ----------
    user
        The person whose time it is.
    as_json
        Print one JSON object, or nothing where none runs.
    """

    async def look(acting: Acting) -> tuple[TimeEntry | None, ZoneInfo]:
        return await acting.room.timing.running(acting.scope), await acting.zone()

    entry, zone = looking(user, look)
    if entry is not None:
        _tell(entry, zone, as_json=as_json)
    elif not as_json:
        print(NONE)


def day(date: str | None = None, /, *, zone: str | None = None, user: User = LOCAL, as_json: Json = False) -> None:
    """Show where a day went.

    Parameters
    ----------
    date
        The day, as YYYY-MM-DD; today when left out.
    zone
        The time zone in which the day is meant; the person's own when left out.
    user
        The person whose time it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: Acting) -> DaySpending:
        where = await acting.zone(zone)
        wanted = date or datetime.now(UTC).astimezone(where).date().isoformat()
        return await acting.room.timing.day(acting.scope, wanted, where.key)

    spent = looking(user, look)
    print(dumped(asdict(spent)) if as_json else plain(day_told(spent)))


async def _timed(acting: Acting) -> str | None:
    entry = await acting.room.timing.running(acting.scope)
    return None if entry is None else entry.timeline_item_id


def _tell(entry: TimeEntry, zone: ZoneInfo, *, as_json: bool) -> None:
    print(dumped(asdict(entry)) if as_json else _told(entry, zone))


def _told(entry: TimeEntry, zone: ZoneInfo) -> str:
    return line(entry_told(entry, zone))
