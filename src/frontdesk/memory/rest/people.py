"""Declares the routes for a person's settings, export, erasure and statistics, and answers them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal

from pydantic import Field

from frontdesk.identity.rights import (
    ACTIVITIES_READ,
    AI_TASKS_READ,
    MEMORIES_READ,
    MEMORY_ADMIN,
    TASKS_READ,
    TASKS_TIME,
)
from frontdesk.memory.activities_rules import ActivityStats
from frontdesk.memory.memories_rules import MemoryStats
from frontdesk.memory.model import PersonScope, TimeEntry
from frontdesk.memory.operations.base import EmptyRequest, MemoryRequest, ZoneName, ZoneQuery, for_person, memory_route
from frontdesk.memory.rest.responses import EXAMPLE_TIME, DoneResponse, MemoryApiModel
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import TaskStats
from frontdesk.memory.times import find_zone, today_in
from frontdesk.memory.work_queue_rules import AiTaskStats
from frontdesk.operations import Effect, EmptyQuery, Operation, Requires, RestAnswer, RestInput

ACCEPTED = HTTPStatus.ACCEPTED.value
NOT_EVERYTHING = "Not everything could be erased; `left` says what, and what to do"
SETTINGS_PATH = "/user/settings"
SETTINGS_EXAMPLE = {"timezone": "Europe/Berlin"}
EXPORT_EXAMPLE: Mapping[str, Any] = {
    "format": "frontdesk-memory",
    "version": 1,
    "exported_at": EXAMPLE_TIME,
    "user_id": "ada",
    "zone": "Europe/Berlin",
    "records": {"tasks": []},
    "elsewhere": {},
}


class PersonSettingsRequest(MemoryRequest):
    """The person's settings."""

    timezone: ZoneName = Field(min_length=1, examples=["Europe/Berlin"])


class EraseRequest(MemoryRequest):
    """The confirmation of the erasure."""

    confirm: Literal["erase"]


class PersonSettingsResponse(MemoryApiModel):
    """The person's time zone by its IANA name. It decides what a day or a time without a zone means."""

    timezone: str


class ExportResponse(MemoryApiModel):
    """Everything that is stored of a person, by table; and what other parts store of them."""

    format: Literal["frontdesk-memory"]
    version: int
    exported_at: str
    user_id: str
    zone: str
    records: Mapping[str, Any]
    elsewhere: Mapping[str, Any]


class EraseResponse(DoneResponse):
    """How many records of each kind were deleted; `left` says what was not."""

    erased: Mapping[str, int]
    total: int
    left: Sequence[str] = ()


class TimeTrackingStats(MemoryApiModel):
    """The tracked time of today, and the running timer."""

    minutes_today: int
    entries_today: int
    running: TimeEntry | None


class PersonStatsResponse(MemoryApiModel):
    """Statistics of all records."""

    tasks: TaskStats
    memories: MemoryStats
    activities: ActivityStats
    time: TimeTrackingStats
    ai_tasks: AiTaskStats


async def show_settings(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> PersonSettingsResponse:
    return PersonSettingsResponse(timezone=await services.people.zone(scope))


async def update_settings(
    services: RecordServices, scope: PersonScope, request: PersonSettingsRequest
) -> PersonSettingsResponse:
    return PersonSettingsResponse(timezone=await services.people.set_zone(scope, request.timezone))


async def export_data(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> ExportResponse:
    return ExportResponse(**await services.people.export(scope))


async def erase_data(
    services: RecordServices, scope: PersonScope, _request: RestInput[EmptyQuery, EraseRequest]
) -> RestAnswer:
    erased = await services.people.erase(scope)
    message = NOT_EVERYTHING if erased.left else "Everything is erased"
    response = EraseResponse(message=message, erased=erased.counts, total=erased.total, left=erased.left)
    return RestAnswer(response, status=ACCEPTED if erased.left else None)


async def show_stats(services: RecordServices, scope: PersonScope, request: ZoneQuery) -> PersonStatsResponse:
    zone = request.timezone
    return PersonStatsResponse(
        tasks=await services.tasks.stats(scope, zone=zone),
        memories=await services.memories.stats(scope, zone),
        activities=await services.activities.stats(scope, zone),
        time=await _time_stats(services, scope, zone),
        ai_tasks=await services.work_queue.stats(scope, zone),
    )


async def _time_stats(services: RecordServices, scope: PersonScope, timezone: str | None) -> TimeTrackingStats:
    zone = find_zone(timezone, await services.people.zone(scope))
    spent = await services.time_tracking.day(scope, today_in(datetime.now(UTC), zone).isoformat(), zone.key)
    running = await services.time_tracking.running(scope)
    return TimeTrackingStats(minutes_today=spent.total_minutes, entries_today=len(spent.entries), running=running)


PERSON_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="show_settings",
        summary="In which time zone one lives",
        request=EmptyRequest,
        run=for_person(show_settings),
        requires=Requires.PERSON,
        rest=memory_route("GET", SETTINGS_PATH, response=PersonSettingsResponse, example=SETTINGS_EXAMPLE),
    ),
    Operation(
        name="update_settings",
        summary="Say in which time zone one lives",
        request=PersonSettingsRequest,
        run=for_person(update_settings),
        scopes=(MEMORY_ADMIN,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("PUT", SETTINGS_PATH, response=PersonSettingsResponse, example=SETTINGS_EXAMPLE),
    ),
    Operation(
        name="export_data",
        summary="Everything that is kept of oneself",
        request=EmptyRequest,
        run=for_person(export_data),
        scopes=(MEMORY_ADMIN,),
        requires=Requires.PERSON,
        rest=memory_route("GET", "/user/export", response=ExportResponse, example=EXPORT_EXAMPLE),
    ),
    Operation(
        name="erase_data",
        summary="Erase everything that is kept of oneself; there is no way back",
        request=EraseRequest,
        run=for_person(erase_data),
        scopes=(MEMORY_ADMIN,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "DELETE",
            "/user/data",
            body=EraseRequest,
            run=erase_data,
            response=EraseResponse,
            responses={ACCEPTED: {"model": EraseResponse, "description": "Not everything could be erased"}},
        ),
    ),
    Operation(
        name="show_stats",
        summary="How everything stands, in numbers",
        request=ZoneQuery,
        run=for_person(show_stats),
        # The statistics are about these records.
        scopes=(TASKS_READ, MEMORIES_READ, ACTIVITIES_READ, TASKS_TIME, AI_TASKS_READ),
        requires=Requires.PERSON,
        rest=memory_route("GET", "/stats", response=PersonStatsResponse),
    ),
)
