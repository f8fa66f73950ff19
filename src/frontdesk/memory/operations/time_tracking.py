"""Declares what can be asked about the time spent on tasks, activities and other items."""

from collections.abc import Sequence
from functools import partial

from frontdesk.errors import Denied
from frontdesk.identity.rights import TASKS_TIME
from frontdesk.memory.model import ItemType, PersonScope, TimeEntry
from frontdesk.memory.operations.base import (
    EmptyRequest,
    ToolAnswer,
    ZoneQuery,
    for_person,
    join_lines,
    memory_agent_tool,
    memory_route,
    memory_tool,
    person_zone,
)
from frontdesk.memory.operations.task_requests import (
    EntryContent,
    GetDaySpending,
    GetTaskTime,
    NewEntryContent,
    StartTaskTimer,
    StopTaskTimer,
)
from frontdesk.memory.operations.task_text import format_day, format_entries, format_entry
from frontdesk.memory.rest import tasks as rest
from frontdesk.memory.rest.requests import (
    AddEntryRequest,
    ChangedBetween,
    ChangeEntryRequest,
    EntryIdRequest,
    ItemEntriesRequest,
    ListEntriesRequest,
    StartTimerRequest,
    StopTimerRequest,
)
from frontdesk.memory.rest.responses import (
    EXAMPLE_ENTRY,
    NEW_ENTRY,
    DeletedResponse,
    EntryListResponse,
    EntryResponse,
    OptionalEntryResponse,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.time_tracking import DaySpending
from frontdesk.operations import Answer, Effect, Operation, Requires

GET_DAY_SPENDING = (
    "Where a day's time went, from midnight to midnight where the person is: in all, by what it was spent on, and by "
    'category. Example: {"date": "2026-11-20", "timezone": "Europe/Berlin"}.'
)
GET_TASK_ENTRIES = (
    "The time that was tracked on one task: each stretch, and their sum. Narrow it down to days with start_date and "
    'end_date. Example: {"task_id": "0199…", "start_date": "2026-11-01"}.'
)
START_TIMER = (
    "Start tracking time on a task, as of now. A person has one timer at a time: where another task's runs, the answer "
    'says which, and that one must be stopped first. Example: {"task_id": "0199…", "description": "First draft"}.'
)
STOP_TIMER = 'Stop the timer of a task; the answer says how long it ran. Example: {"task_id": "0199…"}.'
GET_RUNNING_TIMER = "The timer that runs right now, if one does: on what, since when, how long so far."


class TimerAnswer(ToolAnswer):
    """A time entry; none if no timer runs."""

    entry: TimeEntry | None


class TimeEntriesAnswer(ToolAnswer):
    """Time entries and their sum, without running ones."""

    entries: Sequence[TimeEntry]
    total_minutes: int


class DaySpendingAnswer(ToolAnswer):
    """The time of a day."""

    spending: DaySpending


async def day_spending(services: RecordServices, scope: PersonScope, request: GetDaySpending) -> Answer:
    if request.user_id and request.user_id != scope.user_id:
        raise Denied("Only your own time can be asked for; leave user_id out")
    spending = await services.time_tracking.day(scope, request.date, request.timezone)
    return Answer(format_day(spending), DaySpendingAnswer(spending=spending))


async def task_entries(services: RecordServices, scope: PersonScope, request: GetTaskTime) -> Answer:
    entries = await services.time_tracking.entries_of_item(
        scope, request.task_id, request.start_date, request.end_date, kind=ItemType.TASK
    )
    minutes = sum(entry.duration_minutes or 0 for entry in entries)
    text = format_entries(entries, minutes, await person_zone(services, scope))
    return Answer(text, TimeEntriesAnswer(entries=entries, total_minutes=minutes))


async def start_timer(services: RecordServices, scope: PersonScope, request: StartTaskTimer) -> Answer:
    started = await services.time_tracking.start(scope, request.task_id, request.description, kind=ItemType.TASK)
    first = "Started." if started.created else "It runs already."
    return await _timer_answer(services, scope, started.entry, first)


async def stop_timer(services: RecordServices, scope: PersonScope, request: StopTaskTimer) -> Answer:
    entry = await services.time_tracking.stop(scope, request.task_id, kind=ItemType.TASK)
    return await _timer_answer(services, scope, entry, "Stopped.")


async def running_timer(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> Answer:
    return await _timer_answer(services, scope, await services.time_tracking.running(scope), "Running.")


async def _timer_answer(services: RecordServices, scope: PersonScope, entry: TimeEntry | None, first: str) -> Answer:
    if entry is None:
        return Answer("No timer is running; start one with start_task_timer.", TimerAnswer(entry=None))
    text = join_lines(first, format_entry(entry, await person_zone(services, scope)))
    return Answer(text, TimerAnswer(entry=entry))


def _add_entry_operation(path: str, kind: ItemType | None) -> Operation:
    """The operation that writes down time on one item, of this kind or of any."""
    item = kind or "item"
    return Operation(
        name=f"add_{item}_entry",
        summary=f"Write down time that was spent on one {item}",
        request=AddEntryRequest,
        run=for_person(partial(rest.add_item_entry, kind=kind)),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        rest=memory_route(
            "POST",
            f"{path}/{{item_id}}/time-entries",
            query=ZoneQuery,
            body=NewEntryContent,
            body_example=NEW_ENTRY,
            response=EntryResponse,
            status=201,
            example=ENTRY_EXAMPLE,
        ),
    )


def _list_entries_operation(path: str, kind: ItemType | None) -> Operation:
    """The operation that lists the time on one item, of this kind or of any."""
    item = kind or "item"
    return Operation(
        name=f"{item}_entries",
        summary=f"The time that was spent on one {item}",
        request=ItemEntriesRequest,
        run=for_person(partial(rest.item_entries, kind=kind)),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        rest=memory_route(
            "GET",
            f"{path}/{{item_id}}/time-entries",
            response=EntryListResponse,
            example={"entries": [EXAMPLE_ENTRY]},
        ),
    )


ENTRY_PATH = "/time-entries/{entry_id}"
ENTRY_EXAMPLE = {"entry": EXAMPLE_ENTRY}
TIME_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="get_day_time_spending",
        summary="Where a day went",
        request=GetDaySpending,
        run=for_person(day_spending),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        mcp=memory_tool("Where a day went", GET_DAY_SPENDING, DaySpendingAnswer),
        agents=memory_agent_tool("get_day_time_spending", GET_DAY_SPENDING),
    ),
    Operation(
        name="get_task_time_entries",
        summary="The time that was spent on one task",
        request=GetTaskTime,
        run=for_person(task_entries),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        mcp=memory_tool("Time on a task", GET_TASK_ENTRIES, TimeEntriesAnswer),
        rest=memory_route(
            "GET",
            "/tasks/{item_id}/time-entries",
            name="task_entries",
            run=rest.task_entries,
            query=ChangedBetween,
            response=EntryListResponse,
            example={"entries": [EXAMPLE_ENTRY]},
        ),
        agents=memory_agent_tool("get_task_time_entries", GET_TASK_ENTRIES),
    ),
    Operation(
        name="start_task_timer",
        summary="Start a task's timer",
        request=StartTaskTimer,
        run=for_person(start_timer),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Start a timer", START_TIMER, TimerAnswer),
        rest=memory_route(
            "POST",
            "/tasks/{task_id}/timer/start",
            name="start_timer",
            run=rest.start_timer,
            body=StartTimerRequest,
            body_required=False,
            response=EntryResponse,
            status=201,
            example=ENTRY_EXAMPLE,
            responses=rest.TIMER_RESPONSES,
        ),
        agents=memory_agent_tool("start_task_timer", START_TIMER),
    ),
    Operation(
        name="stop_task_timer",
        summary="Stop a task's timer; no entry where none runs",
        request=StopTaskTimer,
        run=for_person(stop_timer),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Stop a timer", STOP_TIMER, TimerAnswer),
        rest=memory_route(
            "POST",
            "/tasks/{task_id}/timer/stop",
            name="stop_timer",
            run=rest.stop_timer,
            query=ZoneQuery,
            body=StopTimerRequest,
            body_required=False,
            response=OptionalEntryResponse,
            example=ENTRY_EXAMPLE,
        ),
        agents=memory_agent_tool("stop_task_timer", STOP_TIMER),
    ),
    Operation(
        name="get_running_timer",
        summary="The timer that runs, if one does",
        request=EmptyRequest,
        run=for_person(running_timer),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        mcp=memory_tool("The running timer", GET_RUNNING_TIMER, TimerAnswer),
        rest=memory_route(
            "GET",
            "/time-entries/running",
            name="running_timer",
            run=rest.running_timer,
            response=OptionalEntryResponse,
            example=ENTRY_EXAMPLE,
        ),
        agents=memory_agent_tool("get_running_timer", GET_RUNNING_TIMER),
    ),
    Operation(
        name="entries_between",
        summary="Where time went",
        request=ListEntriesRequest,
        run=for_person(rest.entries_between),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        rest=memory_route("GET", "/time-entries/day", response=EntryListResponse, example={"entries": [EXAMPLE_ENTRY]}),
    ),
    Operation(
        name="update_entry",
        summary="Change a time entry",
        request=ChangeEntryRequest,
        run=for_person(rest.update_entry),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "PUT", ENTRY_PATH, query=ZoneQuery, body=EntryContent, response=EntryResponse, example=ENTRY_EXAMPLE
        ),
    ),
    Operation(
        name="delete_entry",
        summary="Take a time entry away",
        request=EntryIdRequest,
        run=for_person(rest.delete_entry),
        scopes=(TASKS_TIME,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", ENTRY_PATH, response=DeletedResponse),
    ),
    _add_entry_operation("/tasks", ItemType.TASK),
    _list_entries_operation("/activities", ItemType.ACTIVITY),
    _add_entry_operation("/activities", ItemType.ACTIVITY),
    _list_entries_operation("/timeline-items", None),
    _add_entry_operation("/timeline-items", None),
)
