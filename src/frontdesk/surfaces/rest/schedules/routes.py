"""Schedules over HTTP, under /api/v1/schedules."""

from typing import Annotated

from fastapi import APIRouter, FastAPI, Query

from frontdesk.app import App
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import LISTED, MOST_LISTED, MOST_TIMES, TIMES, PastWanted, Wanted
from frontdesk.schedule.model import Standing, State
from frontdesk.surfaces.rest.callers import identify
from frontdesk.surfaces.rest.calls import Who, recorded
from frontdesk.surfaces.rest.schedules.asked import ChangeAsked, NewAsked, PreviewAsked
from frontdesk.surfaces.rest.schedules.told import RunList, ScheduleList, Started
from frontdesk.surfaces.rest.shapes import REFUSED
from frontdesk.surfaces.scheduled import ExecutorShape, Previewed, Run, Scheduled, ways_to_say

PATH = "/v1/schedules"
WAYS = "one of when, time, cron and every"
# The bounds are told here, and kept by the scheduler.
Count = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": MOST_LISTED})]
Times = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": MOST_TIMES})]
Before = Annotated[
    str | None, Query(max_length=100, description="Only runs that were due before this time, or `next` of a page.")
]


def add_schedule_routes(api: FastAPI, app: App, prefix: str) -> None:
    """Its callers are agents too, so they are named as at the MCP door; `prefix` is where the API is mounted."""
    router = APIRouter(prefix=PATH, route_class=recorded(app, prefix, identify), responses=REFUSED)
    _add_making(router, app)
    _add_runs(router, app)
    _add_schedules(router, app)
    _add_changing(router, app)
    api.include_router(router)


def _add_making(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.get("/", include_in_schema=False)
    @router.get("", summary="The schedules that the caller may see, by their numbers")
    async def list_schedules(
        caller: Who,
        agent_id: str | None = None,
        state: State | None = None,
        *,
        include_cancelled: Annotated[bool, Query(description="Also those that are cancelled or over.")] = False,
        after: Annotated[int, Query(description="`next` of the page before.")] = 0,
        limit: Count = LISTED,
    ) -> ScheduleList:
        wanted = Wanted(agent_id, include_cancelled, state, after, limit)
        listed = await schedules.looking.list(caller, wanted)
        return ScheduleList(schedules=[Scheduled.of(one) for one in listed.schedules], next=listed.next)

    @router.post("/", status_code=201, include_in_schema=False)
    @router.post("", status_code=201, summary="Make a schedule")
    async def add_schedule(asked: NewAsked, caller: Who) -> Scheduled:
        with ways_to_say(WAYS):
            return Scheduled.of((await schedules.add(caller, asked.asked)).schedule)

    @router.post("/preview", summary="When a rule would fire; nothing is made")
    async def preview_rule(asked: PreviewAsked, caller: Who) -> Previewed:
        with ways_to_say(WAYS):
            return Previewed.of(await schedules.looking.preview_rule(caller, asked.said, asked.count))

    @router.get("/status", summary="How the scheduler of this process is doing, and what waits")
    async def scheduler_status(caller: Who) -> ExecutorShape:
        return ExecutorShape.of(await schedules.executing.executor(caller))


def _add_runs(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.get("/runs", summary="What became of runs, the newest first; dead letters are those with standing=dead")
    async def list_runs(
        caller: Who,
        agent_id: str | None = None,
        standing: Standing | None = None,
        before: Before = None,
        limit: Count = LISTED,
    ) -> RunList:
        return await _runs(caller, PastWanted(None, agent_id, standing, before, limit))

    @router.get("/{schedule_id}/history", summary="What became of a schedule's runs, the newest first")
    async def schedule_history(
        schedule_id: str, caller: Who, standing: Standing | None = None, before: Before = None, limit: Count = LISTED
    ) -> RunList:
        number = numbers.schedule_id(schedule_id)
        return await _runs(caller, PastWanted(number, None, standing, before, limit))

    @router.post("/runs/{delivery_id}/redrive", summary="Try a dead letter again, from its first attempt on")
    async def redrive_run(delivery_id: str, caller: Who) -> Run:
        return Run.of(await schedules.redrive(caller, delivery_id))

    async def _runs(caller: Who, wanted: PastWanted) -> RunList:
        listed = await schedules.looking.history(caller, wanted)
        return RunList(runs=[Run.of(past) for past in listed.runs], next=listed.next)


def _add_schedules(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.get("/{schedule_id}", summary="A schedule")
    async def show_schedule(schedule_id: str, caller: Who) -> Scheduled:
        return Scheduled.of(await schedules.looking.get(caller, schedule_id))

    @router.patch("/{schedule_id}", summary="Change a schedule in place")
    async def update_schedule(schedule_id: str, asked: ChangeAsked, caller: Who) -> Scheduled:
        return Scheduled.of((await schedules.update(caller, schedule_id, asked.change)).schedule)

    @router.delete("/{schedule_id}", summary="Cancel a schedule for good")
    async def cancel_schedule(schedule_id: str, caller: Who) -> Scheduled:
        return Scheduled.of(await schedules.cancel(caller, schedule_id))

    @router.get("/{schedule_id}/preview", summary="When a schedule fires next")
    async def preview_schedule(schedule_id: str, caller: Who, count: Times = TIMES) -> Previewed:
        return Previewed.of(await schedules.looking.preview(caller, schedule_id, count))


def _add_changing(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.post("/{schedule_id}/pause", summary="Stop a schedule for a while")
    async def pause_schedule(schedule_id: str, caller: Who) -> Scheduled:
        return Scheduled.of(await schedules.pause(caller, schedule_id))

    @router.post("/{schedule_id}/resume", summary="Go on with a schedule that was paused")
    async def resume_schedule(schedule_id: str, caller: Who) -> Scheduled:
        return Scheduled.of((await schedules.resume(caller, schedule_id)).schedule)

    @router.post("/{schedule_id}/run", summary="Run a schedule once now, besides its rule")
    async def run_schedule(schedule_id: str, caller: Who) -> Started:
        delivery_id = await schedules.run_now(caller, schedule_id)
        return Started(schedule_id=numbers.schedule_id(schedule_id), delivery_id=delivery_id)
