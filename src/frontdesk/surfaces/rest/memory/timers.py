"""Timers and time entries over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from frontdesk.memory.asked.timing import EntryContent, NewEntryContent
from frontdesk.memory.model import ItemType
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.bodies import StartTimer, StopTimer
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import ChangedWithin, DayQuery, Where
from frontdesk.surfaces.rest.memory.refused import TIMER_REFUSALS
from frontdesk.surfaces.rest.memory.told import EntryList, Gone, OneEntry, PerhapsEntry
from frontdesk.surfaces.rest.memory.who import TracksTime

ENTRY = {"entry": examples.entry}


def add_timers(router: APIRouter, room: MemoryRoom) -> None:
    @router.post(
        "/tasks/{task_id}/timer/start",
        status_code=201,
        responses=shown(ENTRY, 201) | TIMER_REFUSALS | {200: {"model": OneEntry, "description": "It runs already."}},
        summary="Start a task's timer",
    )
    async def start_timer(
        scope: TracksTime, task_id: str, answer: Response, asked: StartTimer | None = None
    ) -> OneEntry:
        how = asked or StartTimer()
        started = await room.timing.start(scope, task_id, how.description, how.autoSwitch, kind=ItemType.TASK)
        answer.status_code = 201 if started.created else 200
        return OneEntry(entry=started.entry)

    @router.post(
        "/tasks/{task_id}/timer/stop",
        responses=shown(ENTRY),
        summary="Stop a task's timer; no entry where none runs",
    )
    async def stop_timer(
        scope: TracksTime, task_id: str, asked: StopTimer | None = None, timezone: Where = None
    ) -> PerhapsEntry:
        end_at = asked.overrideEndAt if asked else None
        return PerhapsEntry(entry=await room.timing.stop(scope, task_id, end_at, timezone, kind=ItemType.TASK))


def add_entries(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/time-entries/day", responses=shown({"entries": [examples.entry]}), summary="Where time went")
    async def entries_between(scope: TracksTime, query: Annotated[DayQuery, Query()]) -> EntryList:
        return EntryList(entries=await room.timing.between(scope, query.from_, query.to, query.timezone))

    @router.get("/time-entries/running", responses=shown(ENTRY), summary="The timer that runs, if one does")
    async def running_timer(scope: TracksTime) -> PerhapsEntry:
        return PerhapsEntry(entry=await room.timing.running(scope))

    @router.put("/time-entries/{entry_id}", responses=shown(ENTRY), summary="Change a time entry")
    async def update_entry(scope: TracksTime, entry_id: str, asked: EntryContent, timezone: Where = None) -> OneEntry:
        return OneEntry(entry=await room.timing.change(scope, entry_id, asked.changes(), timezone))

    @router.delete("/time-entries/{entry_id}", summary="Take a time entry away")
    async def delete_entry(scope: TracksTime, entry_id: str) -> Gone:
        return Gone(message="Time entry deleted", id=(await room.timing.remove(scope, entry_id)).id)


def add_time_of(router: APIRouter, room: MemoryRoom, path: str, kind: ItemType | None) -> None:
    """The entries of one item of that kind, or of any."""
    name = "item" if kind is None else kind.value

    @router.get(
        f"{path}/{{item_id}}/time-entries",
        name=f"{name}_entries",
        responses=shown({"entries": [examples.entry]}),
        summary=f"The time that was spent on one {name}",
    )
    async def list_entries(scope: TracksTime, item_id: str, query: Annotated[ChangedWithin, Query()]) -> EntryList:
        dates = (query.start_date, query.end_date, query.timezone)
        return EntryList(entries=await room.timing.of_item(scope, item_id, *dates, kind=kind))

    @router.post(
        f"{path}/{{item_id}}/time-entries",
        name=f"add_{name}_entry",
        status_code=201,
        responses=shown(ENTRY, 201),
        summary=f"Write down time that was spent on one {name}",
    )
    async def add_entry(
        scope: TracksTime,
        item_id: str,
        asked: Annotated[NewEntryContent, Body(openapi_examples=sent(examples.NEW_ENTRY))],
        timezone: Where = None,
    ) -> OneEntry:
        return OneEntry(entry=await room.timing.add(scope, item_id, asked.said(), timezone, kind=kind))
