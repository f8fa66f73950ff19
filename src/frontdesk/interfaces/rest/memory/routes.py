"""Mounts the routes of a person's records, and serves their settings, export, erasure and statistics."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Response

from frontdesk.app import App
from frontdesk.interfaces.rest.errors import MEMORY_ERROR_RESPONSES
from frontdesk.interfaces.rest.memory.requests import (
    AnyPerson,
    EraseRequest,
    ManagesRecords,
    PersonSettingsRequest,
    ReadsStats,
    ZoneParameter,
)
from frontdesk.interfaces.rest.memory.responses import EXAMPLE_TIME, DoneResponse, MemoryApiModel, example_response
from frontdesk.interfaces.rest.memory.tasks import (
    add_entry_routes,
    add_item_entry_routes,
    add_relation_routes,
    add_subtask_routes,
    add_task_routes,
    add_timer_routes,
    add_work_routes,
)
from frontdesk.interfaces.rest.memory.timeline import (
    add_activity_routes,
    add_category_routes,
    add_memory_item_routes,
    add_memory_search_route,
    add_timeline_routes,
    add_timeline_search_route,
)
from frontdesk.interfaces.rest.routing import identify_by_header, recorded_route
from frontdesk.memory.activities_rules import ActivityStats
from frontdesk.memory.memories_rules import MemoryStats
from frontdesk.memory.model import ItemType, PersonScope, TimeEntry
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import TaskStats
from frontdesk.memory.times import find_zone, today_in
from frontdesk.memory.work_queue_rules import AiTaskStats

ACCEPTED = HTTPStatus.ACCEPTED.value
NOT_EVERYTHING = "Not everything could be erased; `left` says what, and what to do"
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


def add_person_routes(router: APIRouter, services: RecordServices) -> None:
    @router.get("/user/settings", responses=example_response(SETTINGS_EXAMPLE), summary="In which time zone one lives")
    async def show_settings(scope: AnyPerson) -> PersonSettingsResponse:
        return PersonSettingsResponse(timezone=await services.people.zone(scope))

    @router.put(
        "/user/settings", responses=example_response(SETTINGS_EXAMPLE), summary="Say in which time zone one lives"
    )
    async def update_settings(scope: ManagesRecords, request: PersonSettingsRequest) -> PersonSettingsResponse:
        return PersonSettingsResponse(timezone=await services.people.set_zone(scope, request.timezone))

    @router.get(
        "/user/export", responses=example_response(EXPORT_EXAMPLE), summary="Everything that is kept of oneself"
    )
    async def export_data(scope: ManagesRecords) -> ExportResponse:
        return ExportResponse(**await services.people.export(scope))

    @router.delete(
        "/user/data",
        responses={ACCEPTED: {"model": EraseResponse, "description": "Not everything could be erased"}},
        summary="Erase everything that is kept of oneself; there is no way back",
    )
    async def erase_data(scope: ManagesRecords, _sure: EraseRequest, answer: Response) -> EraseResponse:
        erased = await services.people.erase(scope)
        if erased.left:
            answer.status_code = ACCEPTED
        message = NOT_EVERYTHING if erased.left else "Everything is erased"
        return EraseResponse(message=message, erased=erased.counts, total=erased.total, left=erased.left)


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


def add_stats_route(router: APIRouter, services: RecordServices) -> None:
    @router.get("/stats", summary="How everything stands, in numbers")
    async def show_stats(scope: ReadsStats, timezone: ZoneParameter = None) -> PersonStatsResponse:
        return PersonStatsResponse(
            tasks=await services.tasks.stats(scope, zone=timezone),
            memories=await services.memories.stats(scope, timezone),
            activities=await services.activities.stats(scope, timezone),
            time=await _time_stats(services, scope, timezone),
            ai_tasks=await services.work_queue.stats(scope, timezone),
        )


async def _time_stats(services: RecordServices, scope: PersonScope, timezone: str | None) -> TimeTrackingStats:
    where = find_zone(timezone, await services.people.zone(scope))
    spent = await services.time_tracking.day(scope, today_in(datetime.now(UTC), where).isoformat(), where.key)
    running = await services.time_tracking.running(scope)
    return TimeTrackingStats(minutes_today=spent.total_minutes, entries_today=len(spent.entries), running=running)


def add_memory_routes(api: FastAPI, app: App, prefix: str) -> None:
    """Add the routes; `prefix` is where the API is mounted."""
    services, router = (
        app.memory,
        APIRouter(route_class=recorded_route(app, prefix, identify_by_header), responses=MEMORY_ERROR_RESPONSES),
    )
    add_task_routes(router, services)
    add_subtask_routes(router, services)
    add_relation_routes(router, services)
    add_timer_routes(router, services)
    add_entry_routes(router, services)
    # Before the routes with an id: the first route that matches is taken.
    add_memory_search_route(router, services)
    add_timeline_search_route(router, services)
    add_memory_item_routes(router, services)
    add_activity_routes(router, services)
    add_timeline_routes(router, services)
    for path, kind in (("/tasks", ItemType.TASK), ("/activities", ItemType.ACTIVITY), ("/timeline-items", None)):
        add_item_entry_routes(router, services, path, kind)
    add_work_routes(router, services)
    add_category_routes(router, services)
    add_person_routes(router, services)
    add_stats_route(router, services)
    api.include_router(router)
