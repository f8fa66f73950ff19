"""Serves schedules and runs under /api/v1/schedules."""

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from frontdesk.app import App
from frontdesk.interfaces.responses import (
    PreviewResponse,
    RunResponse,
    ScheduleResponse,
    ScheduleResponseModel,
    SchedulerStatusResponse,
    explain_missing_rule,
)
from frontdesk.interfaces.rest.errors import ERROR_RESPONSES
from frontdesk.interfaces.rest.routing import CurrentCaller, identify_caller, recorded_route
from frontdesk.schedules.model import Misfire, Overlap, RunStatus, ScheduleState
from frontdesk.schedules.requests import (
    DEFAULT_LIMIT,
    DEFAULT_PREVIEW,
    MAX_LIMIT,
    MAX_PREVIEW,
    ListRuns,
    ListSchedules,
    NewSchedule,
    RuleRequest,
    ScheduleChange,
    parse_schedule_id,
)

Interval = Annotated[str | int | None, Field(description="30s, 5m, 1h, 2d, or a number of seconds.")]
PositiveNumber = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 1})]
OptionalText = Annotated[str | None, Field(max_length=2000)]
TIMELINE_HELP = "For later: there is no timeline yet, and true is refused."
WHEN_HELP = "Any of the three, or plain words: in two minutes, every weekday at 9 Berlin time."


class RuleRequestBody(BaseModel):
    """A rule. Unknown fields are refused, so that no option is lost by a typing error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_id: Annotated[
        Any,
        WithJsonSchema({"type": "string"}),
        Field(description="The agent; not needed where the x-agent-id header or the credential names it."),
    ] = None
    when: Annotated[OptionalText, Field(description=WHEN_HELP, examples=["every weekday at 9 Berlin time"])] = None
    time: Annotated[OptionalText, Field(description="Once, at this time: ISO 8601 with Z or an offset.")] = None
    cron: Annotated[OptionalText, Field(description="Five fields, or @daily and the like.")] = None
    every: Interval = None
    zone: Annotated[OptionalText, Field(description="An IANA name, e.g. Europe/Berlin; UTC unless said.")] = None
    start_at: OptionalText = None
    end_at: OptionalText = None


class PreviewRuleRequest(RuleRequestBody):
    """A rule to try."""

    count: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_PREVIEW})] = DEFAULT_PREVIEW

    @property
    def rule(self) -> RuleRequest:
        return RuleRequest(**self.model_dump(exclude={"count", "agent_id"}))


class ScheduleOptionsBody(RuleRequestBody):
    """A rule, and the options for late, missed and failed runs."""

    jitter: Annotated[Interval, Field(description="Each fire comes up to this much later.")] = None
    max_repetitions: PositiveNumber = None
    overlap: Annotated[OptionalText, Field(description=", ".join(Overlap))] = None
    misfire: Annotated[OptionalText, Field(description=", ".join(Misfire))] = None
    max_late: Annotated[Interval, Field(description="A fire later than this is left out.")] = None
    attempts: PositiveNumber = None
    webhook: OptionalText = None
    timeline: Annotated[bool | None, Field(description=TIMELINE_HELP)] = None
    conversation_id: OptionalText = None


class NewScheduleRequest(ScheduleOptionsBody):
    """A new schedule."""

    prompt: Annotated[str, Field(examples=["Write the daily report"])]
    skip_validation: Annotated[bool, Field(description="Do not check that the agent exists.")] = False

    @property
    def new_schedule(self) -> NewSchedule:
        # The agent was taken from this field when the caller was identified.
        return NewSchedule(**self.model_dump(exclude={"agent_id"}))


class ChangeScheduleRequest(ScheduleOptionsBody):
    """The changes of a schedule; null clears a field, and fields that are left out stay."""

    prompt: str | None = None

    @property
    def change(self) -> ScheduleChange:
        given = self.model_dump(exclude_unset=True, exclude={"agent_id"})
        cleared = frozenset(name for name, value in given.items() if value is None)
        return ScheduleChange(**{name: value for name, value in given.items() if value is not None}, clear=cleared)


class ScheduleListResponse(ScheduleResponseModel):
    """Schedules by their numbers; pass `next` as `after`."""

    schedules: list[ScheduleResponse]
    next: int | None = None


class RunListResponse(ScheduleResponseModel):
    """Runs, the newest first; pass `next` as `before`."""

    runs: list[RunResponse]
    next: str | None = None


class RunStartedResponse(ScheduleResponseModel):
    """A run that was started by hand; the history has it under this id."""

    schedule_id: int
    delivery_id: str


SCHEDULES_PATH = "/v1/schedules"
RULE_FIELDS = "one of when, time, cron and every"
# The bounds are shown here, and checked by the scheduler.
Count = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": MAX_LIMIT})]
PreviewCount = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": MAX_PREVIEW})]
Before = Annotated[
    str | None, Query(max_length=100, description="Only runs that were due before this time, or `next` of a page.")
]


def add_schedule_routes(api: FastAPI, app: App, prefix: str) -> None:
    """Add the routes; `prefix` is where the API is mounted. Agents call them too, and are identified as over MCP."""
    router = APIRouter(
        prefix=SCHEDULES_PATH, route_class=recorded_route(app, prefix, identify_caller), responses=ERROR_RESPONSES
    )
    _add_list_and_create(router, app)
    _add_runs(router, app)
    _add_schedules(router, app)
    _add_state_changes(router, app)
    api.include_router(router)


def _add_list_and_create(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.get("/", include_in_schema=False)
    @router.get("", summary="The schedules that the caller may see, by their numbers")
    async def list_schedules(
        caller: CurrentCaller,
        agent_id: str | None = None,
        state: ScheduleState | None = None,
        *,
        include_cancelled: Annotated[bool, Query(description="Also those that are cancelled or over.")] = False,
        after: Annotated[int, Query(description="`next` of the page before.")] = 0,
        limit: Count = DEFAULT_LIMIT,
    ) -> ScheduleListResponse:
        wanted = ListSchedules(agent_id, include_cancelled, state, after, limit)
        listed = await schedules.queries.list(caller, wanted)
        return ScheduleListResponse(schedules=[ScheduleResponse.of(one) for one in listed.schedules], next=listed.next)

    @router.post("/", status_code=201, include_in_schema=False)
    @router.post("", status_code=201, summary="Make a schedule")
    async def add_schedule(request: NewScheduleRequest, caller: CurrentCaller) -> ScheduleResponse:
        with explain_missing_rule(RULE_FIELDS):
            return ScheduleResponse.of((await schedules.add(caller, request.new_schedule)).schedule)

    @router.post("/preview", summary="When a rule would fire; nothing is made")
    async def preview_rule(request: PreviewRuleRequest, caller: CurrentCaller) -> PreviewResponse:
        with explain_missing_rule(RULE_FIELDS):
            return PreviewResponse.of(await schedules.queries.preview_rule(caller, request.rule, request.count))

    @router.get("/status", summary="How the scheduler of this process is doing, and what waits")
    async def scheduler_status(caller: CurrentCaller) -> SchedulerStatusResponse:
        return SchedulerStatusResponse.of(await schedules.executor.state(caller))


def _add_runs(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.get("/runs", summary="What became of runs, the newest first; dead letters are those with standing=dead")
    async def list_runs(
        caller: CurrentCaller,
        agent_id: str | None = None,
        standing: RunStatus | None = None,
        before: Before = None,
        limit: Count = DEFAULT_LIMIT,
    ) -> RunListResponse:
        return await _runs(caller, ListRuns(None, agent_id, standing, before, limit))

    @router.get("/{schedule_id}/history", summary="What became of a schedule's runs, the newest first")
    async def schedule_history(
        schedule_id: str,
        caller: CurrentCaller,
        standing: RunStatus | None = None,
        before: Before = None,
        limit: Count = DEFAULT_LIMIT,
    ) -> RunListResponse:
        number = parse_schedule_id(schedule_id)
        return await _runs(caller, ListRuns(number, None, standing, before, limit))

    @router.post("/runs/{delivery_id}/redrive", summary="Try a dead letter again, from its first attempt on")
    async def redrive_run(delivery_id: str, caller: CurrentCaller) -> RunResponse:
        return RunResponse.of(await schedules.redrive(caller, delivery_id))

    async def _runs(caller: CurrentCaller, wanted: ListRuns) -> RunListResponse:
        listed = await schedules.queries.history(caller, wanted)
        return RunListResponse(runs=[RunResponse.of(past) for past in listed.runs], next=listed.next)


def _add_schedules(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.get("/{schedule_id}", summary="A schedule")
    async def show_schedule(schedule_id: str, caller: CurrentCaller) -> ScheduleResponse:
        return ScheduleResponse.of(await schedules.queries.get(caller, schedule_id))

    @router.patch("/{schedule_id}", summary="Change a schedule in place")
    async def update_schedule(
        schedule_id: str, request: ChangeScheduleRequest, caller: CurrentCaller
    ) -> ScheduleResponse:
        return ScheduleResponse.of((await schedules.update(caller, schedule_id, request.change)).schedule)

    @router.delete("/{schedule_id}", summary="Cancel a schedule for good")
    async def cancel_schedule(schedule_id: str, caller: CurrentCaller) -> ScheduleResponse:
        return ScheduleResponse.of(await schedules.cancel(caller, schedule_id))

    @router.get("/{schedule_id}/preview", summary="When a schedule fires next")
    async def preview_schedule(
        schedule_id: str, caller: CurrentCaller, count: PreviewCount = DEFAULT_PREVIEW
    ) -> PreviewResponse:
        return PreviewResponse.of(await schedules.queries.preview(caller, schedule_id, count))


def _add_state_changes(router: APIRouter, app: App) -> None:
    schedules = app.schedules

    @router.post("/{schedule_id}/pause", summary="Stop a schedule for a while")
    async def pause_schedule(schedule_id: str, caller: CurrentCaller) -> ScheduleResponse:
        return ScheduleResponse.of(await schedules.pause(caller, schedule_id))

    @router.post("/{schedule_id}/resume", summary="Go on with a schedule that was paused")
    async def resume_schedule(schedule_id: str, caller: CurrentCaller) -> ScheduleResponse:
        return ScheduleResponse.of((await schedules.resume(caller, schedule_id)).schedule)

    @router.post("/{schedule_id}/run", summary="Run a schedule once now, besides its rule")
    async def run_schedule(schedule_id: str, caller: CurrentCaller) -> RunStartedResponse:
        delivery_id = await schedules.run_now(caller, schedule_id)
        return RunStartedResponse(schedule_id=parse_schedule_id(schedule_id), delivery_id=delivery_id)
