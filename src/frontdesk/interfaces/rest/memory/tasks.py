"""Serves tasks, subtasks, relations, timers, time entries and the agents' work queue."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from frontdesk.interfaces.rest.errors import TIMER_ERROR_RESPONSES
from frontdesk.interfaces.rest.memory.requests import (
    AcceptWorkRequest,
    AiTaskQuery,
    ChangedBetween,
    ChangeTaskRequest,
    ClaimWorkRequest,
    CompleteWorkRequest,
    CreatedBetween,
    DayQuery,
    FailWorkRequest,
    NewRelationRequest,
    NewSubtaskRequest,
    NewTaskRequest,
    ReadsTasks,
    ReadsWork,
    RenewLeaseRequest,
    ReorderSubtasksRequest,
    SetTaskStatusRequest,
    StartTimerRequest,
    StopTimerRequest,
    TaskQuery,
    TaskTreeQuery,
    TracksTime,
    WritesTasks,
    WritesWork,
    ZoneParameter,
)
from frontdesk.interfaces.rest.memory.responses import (
    CHANGED_TASK,
    EXAMPLE_AI_TASK,
    EXAMPLE_ENTRY,
    EXAMPLE_RELATION,
    EXAMPLE_TASK,
    NEW_AI_TASK,
    NEW_ENTRY,
    NEW_SUBTASK,
    NEW_TASK,
    TASK_ID,
    AiTaskListResponse,
    AiTaskResponse,
    AiTaskStatsResponse,
    DeletedResponse,
    EntryListResponse,
    EntryResponse,
    OptionalAiTaskResponse,
    OptionalEntryResponse,
    RelationListResponse,
    RelationResponse,
    TaskResponse,
    TaskTreeResponse,
    UpdatedTasksResponse,
    example_body,
    example_response,
    set_total_count,
)
from frontdesk.memory.model import ItemType
from frontdesk.memory.operations.base import IdText
from frontdesk.memory.operations.tasks import EntryContent, NewEntryContent
from frontdesk.memory.operations.work_queue import AiTaskContent, NewAiTaskContent
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import TaskFilter, TaskStats
from frontdesk.memory.work_queue_rules import AiTaskFilter

TASK_PATH = "/tasks/{task_id}"


def add_task_routes(router: APIRouter, services: RecordServices) -> None:
    _add_task_lists(router, services)
    _add_one_task(router, services)
    _add_task_changes(router, services)


def _add_task_lists(router: APIRouter, services: RecordServices) -> None:
    @router.get("/tasks", responses=example_response([EXAMPLE_TASK], counted=True), summary="Tasks")
    async def list_tasks(
        scope: ReadsTasks, query: Annotated[TaskQuery, Query()], answer: Response
    ) -> list[TaskResponse]:
        found = await services.tasks.list(scope, TaskFilter(**query.provided()))
        return [TaskResponse.of(task) for task in set_total_count(found, answer)]

    @router.post("/tasks", status_code=201, responses=example_response(EXAMPLE_TASK, 201), summary="Make a task")
    async def create_task(
        scope: WritesTasks,
        asked: Annotated[NewTaskRequest, Body(openapi_examples=example_body(NEW_TASK))],
        timezone: ZoneParameter = None,
    ) -> TaskResponse:
        return TaskResponse.of(await services.tasks.create(scope, asked.fields(), timezone))

    @router.get("/tasks/stats", summary="How the tasks stand, in numbers")
    async def task_stats(scope: ReadsTasks, query: Annotated[CreatedBetween, Query()]) -> TaskStats:
        return await services.tasks.stats(scope, query.from_date, query.to_date, query.timezone)

    @router.get("/tasks/updated-today", summary="Tasks that were changed today, or between two dates")
    async def updated_tasks(scope: ReadsTasks, query: Annotated[ChangedBetween, Query()]) -> UpdatedTasksResponse:
        return UpdatedTasksResponse.of(
            await services.tasks.updated(scope, query.start_date, query.end_date, query.timezone)
        )


def _add_one_task(router: APIRouter, services: RecordServices) -> None:
    @router.get(TASK_PATH, responses=example_response(EXAMPLE_TASK), summary="A task")
    async def show_task(scope: ReadsTasks, task_id: str) -> TaskResponse:
        return TaskResponse.of(await services.tasks.get(scope, task_id))

    @router.get(f"{TASK_PATH}/tree", summary="A task and what is under it")
    async def task_tree(scope: ReadsTasks, task_id: str, query: Annotated[TaskTreeQuery, Query()]) -> TaskTreeResponse:
        found = await services.tasks.tree(scope, task_id, query.max_depth, include_completed=query.include_completed)
        return TaskTreeResponse.of(found, query.format)


def _add_task_changes(router: APIRouter, services: RecordServices) -> None:
    @router.put(TASK_PATH, responses=example_response(EXAMPLE_TASK), summary="Change a task")
    async def update_task(
        scope: WritesTasks,
        task_id: str,
        request: Annotated[ChangeTaskRequest, Body(openapi_examples=example_body(CHANGED_TASK))],
        timezone: ZoneParameter = None,
    ) -> TaskResponse:
        return TaskResponse.of(await services.tasks.update(scope, task_id, request.fields(), timezone))

    @router.put(f"{TASK_PATH}/status", responses=example_response(EXAMPLE_TASK), summary="Say how a task stands")
    async def set_task_status(scope: WritesTasks, task_id: str, request: SetTaskStatusRequest) -> TaskResponse:
        return TaskResponse.of(
            await services.tasks.set_status(scope, task_id, request.status, request.notes, request.progress)
        )

    @router.delete(
        TASK_PATH,
        responses=example_response({"message": "Task deleted", "id": TASK_ID}),
        summary="Delete a task, with its subtasks and the time spent on them",
    )
    async def delete_task(scope: WritesTasks, task_id: str) -> DeletedResponse:
        return DeletedResponse(message="Task deleted", id=(await services.tasks.delete(scope, task_id)).id)


def add_subtask_routes(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        "/subtasks", responses=example_response([EXAMPLE_TASK]), summary="The subtasks of a task, in their order"
    )
    async def list_subtasks(scope: ReadsTasks, parent_task_id: Annotated[IdText, Query()]) -> list[TaskResponse]:
        return [TaskResponse.of(task) for task in await services.tasks.subtasks(scope, parent_task_id)]

    @router.post("/subtasks", status_code=201, responses=example_response(EXAMPLE_TASK, 201), summary="Make a subtask")
    async def create_subtask(
        scope: WritesTasks,
        request: Annotated[NewSubtaskRequest, Body(openapi_examples=example_body(NEW_SUBTASK))],
        timezone: ZoneParameter = None,
    ) -> TaskResponse:
        return TaskResponse.of(await services.tasks.create(scope, request.fields(), timezone))

    @router.put(
        "/subtasks/reorder", responses=example_response([EXAMPLE_TASK]), summary="Put subtasks in another order"
    )
    async def reorder_subtasks(scope: WritesTasks, request: ReorderSubtasksRequest) -> list[TaskResponse]:
        ordered = await services.tasks.reorder(scope, request.parent_task_id, request.task_ids)
        return [TaskResponse.of(task) for task in ordered]


def add_relation_routes(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        "/task-relations",
        responses=example_response({"relations": [EXAMPLE_RELATION]}),
        summary="What tasks are to each other: all, or those in which one has a part",
    )
    async def list_relations(
        scope: ReadsTasks, task_id: Annotated[IdText | None, Query()] = None
    ) -> RelationListResponse:
        return RelationListResponse(relations=await services.tasks.links(scope, task_id))

    @router.post(
        "/task-relations",
        status_code=201,
        responses=example_response({"relation": EXAMPLE_RELATION}, 201),
        summary="Say what a task is to another",
    )
    async def create_relation(scope: WritesTasks, request: NewRelationRequest) -> RelationResponse:
        made = await services.tasks.link(scope, request.task_id, request.related_task_id, request.relation)
        return RelationResponse(relation=made)

    @router.delete("/task-relations/{relation_id}", summary="Take a relation away")
    async def delete_relation(scope: WritesTasks, relation_id: str) -> DeletedResponse:
        return DeletedResponse(message="Relation deleted", id=(await services.tasks.unlink(scope, relation_id)).id)


ENTRY_EXAMPLE = {"entry": EXAMPLE_ENTRY}


def add_timer_routes(router: APIRouter, services: RecordServices) -> None:
    @router.post(
        "/tasks/{task_id}/timer/start",
        status_code=201,
        responses=example_response(ENTRY_EXAMPLE, 201)
        | TIMER_ERROR_RESPONSES
        | {200: {"model": EntryResponse, "description": "It runs already."}},
        summary="Start a task's timer",
    )
    async def start_timer(
        scope: TracksTime, task_id: str, answer: Response, asked: StartTimerRequest | None = None
    ) -> EntryResponse:
        how = asked or StartTimerRequest()
        started = await services.time_tracking.start(
            scope, task_id, how.description, how.autoSwitch, kind=ItemType.TASK
        )
        answer.status_code = 201 if started.created else 200
        return EntryResponse(entry=started.entry)

    @router.post(
        "/tasks/{task_id}/timer/stop",
        responses=example_response(ENTRY_EXAMPLE),
        summary="Stop a task's timer; no entry where none runs",
    )
    async def stop_timer(
        scope: TracksTime, task_id: str, asked: StopTimerRequest | None = None, timezone: ZoneParameter = None
    ) -> OptionalEntryResponse:
        end_at = asked.overrideEndAt if asked else None
        return OptionalEntryResponse(
            entry=await services.time_tracking.stop(scope, task_id, end_at, timezone, kind=ItemType.TASK)
        )


def add_entry_routes(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        "/time-entries/day", responses=example_response({"entries": [EXAMPLE_ENTRY]}), summary="Where time went"
    )
    async def entries_between(scope: TracksTime, query: Annotated[DayQuery, Query()]) -> EntryListResponse:
        return EntryListResponse(
            entries=await services.time_tracking.entries_between(scope, query.from_, query.to, query.timezone)
        )

    @router.get(
        "/time-entries/running", responses=example_response(ENTRY_EXAMPLE), summary="The timer that runs, if one does"
    )
    async def running_timer(scope: TracksTime) -> OptionalEntryResponse:
        return OptionalEntryResponse(entry=await services.time_tracking.running(scope))

    @router.put("/time-entries/{entry_id}", responses=example_response(ENTRY_EXAMPLE), summary="Change a time entry")
    async def update_entry(
        scope: TracksTime, entry_id: str, asked: EntryContent, timezone: ZoneParameter = None
    ) -> EntryResponse:
        return EntryResponse(entry=await services.time_tracking.change(scope, entry_id, asked.changes(), timezone))

    @router.delete("/time-entries/{entry_id}", summary="Take a time entry away")
    async def delete_entry(scope: TracksTime, entry_id: str) -> DeletedResponse:
        return DeletedResponse(
            message="Time entry deleted", id=(await services.time_tracking.remove(scope, entry_id)).id
        )


def add_item_entry_routes(router: APIRouter, services: RecordServices, path: str, kind: ItemType | None) -> None:
    """Add routes for the entries of one item, of this kind or of any."""
    name = "item" if kind is None else kind.value

    @router.get(
        f"{path}/{{item_id}}/time-entries",
        name=f"{name}_entries",
        responses=example_response({"entries": [EXAMPLE_ENTRY]}),
        summary=f"The time that was spent on one {name}",
    )
    async def list_entries(
        scope: TracksTime, item_id: str, query: Annotated[ChangedBetween, Query()]
    ) -> EntryListResponse:
        dates = (query.start_date, query.end_date, query.timezone)
        return EntryListResponse(
            entries=await services.time_tracking.entries_of_item(scope, item_id, *dates, kind=kind)
        )

    @router.post(
        f"{path}/{{item_id}}/time-entries",
        name=f"add_{name}_entry",
        status_code=201,
        responses=example_response(ENTRY_EXAMPLE, 201),
        summary=f"Write down time that was spent on one {name}",
    )
    async def add_entry(
        scope: TracksTime,
        item_id: str,
        asked: Annotated[NewEntryContent, Body(openapi_examples=example_body(NEW_ENTRY))],
        timezone: ZoneParameter = None,
    ) -> EntryResponse:
        return EntryResponse(
            entry=await services.time_tracking.add(scope, item_id, asked.provided(), timezone, kind=kind)
        )


WORK_PATH = "/ai-tasks"
WORK_ITEM_PATH = f"{WORK_PATH}/{{ai_task_id}}"
AI_TASK_EXAMPLE = {"ai_task": EXAMPLE_AI_TASK}


def add_work_routes(router: APIRouter, services: RecordServices) -> None:
    _add_work_lists(router, services)
    _add_one_work_item(router, services)
    _add_work_steps(router, services)
    _add_work_outcomes(router, services)


def _add_work_lists(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        WORK_PATH,
        responses=example_response({"ai_tasks": [EXAMPLE_AI_TASK], "count": 1}),
        summary="Work for agents, without history",
    )
    async def list_ai_tasks(scope: ReadsWork, query: Annotated[AiTaskQuery, Query()]) -> AiTaskListResponse:
        found = await services.work_queue.list(scope, AiTaskFilter(**query.model_dump()))
        return AiTaskListResponse(ai_tasks=found.items, count=found.total)

    @router.post(
        WORK_PATH, status_code=201, responses=example_response(AI_TASK_EXAMPLE, 201), summary="Put work into the queue"
    )
    async def create_ai_task(
        scope: WritesWork,
        asked: Annotated[NewAiTaskContent, Body(openapi_examples=example_body(NEW_AI_TASK))],
        timezone: ZoneParameter = None,
    ) -> AiTaskResponse:
        return AiTaskResponse(ai_task=await services.work_queue.create(scope, asked.provided(), timezone))

    @router.get(f"{WORK_PATH}/stats", summary="How the work goes, in numbers")
    async def ai_task_stats(scope: ReadsWork, timezone: ZoneParameter = None) -> AiTaskStatsResponse:
        return AiTaskStatsResponse(stats=await services.work_queue.stats(scope, timezone))

    @router.post(
        f"{WORK_PATH}/claim",
        responses=example_response(AI_TASK_EXAMPLE),
        summary="Take the next piece of work of an agent, if there is one",
    )
    async def claim_ai_task(scope: WritesWork, asked: ClaimWorkRequest | None = None) -> OptionalAiTaskResponse:
        how = asked or ClaimWorkRequest()
        taken = await services.work_queue.claim(scope, how.agent_name, lease=_lease_time(how.lease_seconds))
        return OptionalAiTaskResponse(ai_task=taken)


def _add_one_work_item(router: APIRouter, services: RecordServices) -> None:
    @router.get(
        WORK_ITEM_PATH, responses=example_response(AI_TASK_EXAMPLE), summary="A piece of work, with its history"
    )
    async def show_ai_task(scope: ReadsWork, ai_task_id: str) -> AiTaskResponse:
        return AiTaskResponse(ai_task=await services.work_queue.get(scope, ai_task_id))

    @router.put(
        WORK_ITEM_PATH,
        responses=example_response(AI_TASK_EXAMPLE),
        summary="Change a piece of work, or say how it stands",
    )
    async def update_ai_task(
        scope: WritesWork, ai_task_id: str, asked: AiTaskContent, timezone: ZoneParameter = None
    ) -> AiTaskResponse:
        return AiTaskResponse(ai_task=await services.work_queue.update(scope, ai_task_id, asked.changes(), timezone))

    @router.delete(WORK_ITEM_PATH, summary="Take work out of the queue for good")
    async def delete_ai_task(scope: WritesWork, ai_task_id: str) -> DeletedResponse:
        return DeletedResponse(message="AI task deleted", id=(await services.work_queue.delete(scope, ai_task_id)).id)


def _add_work_steps(router: APIRouter, services: RecordServices) -> None:
    @router.post(
        f"{WORK_ITEM_PATH}/approve",
        responses=example_response(AI_TASK_EXAMPLE),
        summary="Let work be executed; for the person alone",
    )
    async def approve_ai_task(scope: WritesWork, ai_task_id: str) -> AiTaskResponse:
        return AiTaskResponse(ai_task=await services.work_queue.approve(scope, ai_task_id))

    @router.post(
        f"{WORK_ITEM_PATH}/accept", responses=example_response(AI_TASK_EXAMPLE), summary="Take this piece of work"
    )
    async def accept_ai_task(
        scope: WritesWork, ai_task_id: str, request: AcceptWorkRequest | None = None
    ) -> AiTaskResponse:
        how = request or AcceptWorkRequest()
        taken = await services.work_queue.accept(
            scope,
            ai_task_id,
            how.estimated_cost_usd,
            how.estimated_duration_min,
            agent_name=how.agent_name,
            lease=_lease_time(how.lease_seconds),
        )
        return AiTaskResponse(ai_task=taken)

    @router.post(f"{WORK_ITEM_PATH}/renew", responses=example_response(AI_TASK_EXAMPLE), summary="Hold work for longer")
    async def renew_ai_task(scope: WritesWork, ai_task_id: str, request: RenewLeaseRequest) -> AiTaskResponse:
        held = await services.work_queue.renew(
            scope, ai_task_id, request.claims, lease=_lease_time(request.lease_seconds)
        )
        return AiTaskResponse(ai_task=held)


def _add_work_outcomes(router: APIRouter, services: RecordServices) -> None:
    @router.post(
        f"{WORK_ITEM_PATH}/complete",
        responses=example_response(AI_TASK_EXAMPLE),
        summary="Say that work is done, and what came of it",
    )
    async def complete_ai_task(
        scope: WritesWork, ai_task_id: str, request: CompleteWorkRequest | None = None
    ) -> AiTaskResponse:
        how = request or CompleteWorkRequest()
        done = await services.work_queue.complete(scope, ai_task_id, how.provided("claims"), claims=how.claims)
        return AiTaskResponse(ai_task=done)

    @router.post(
        f"{WORK_ITEM_PATH}/fail",
        responses=example_response(AI_TASK_EXAMPLE),
        summary="Say that work could not be done, and why",
    )
    async def fail_ai_task(scope: WritesWork, ai_task_id: str, request: FailWorkRequest) -> AiTaskResponse:
        return AiTaskResponse(
            ai_task=await services.work_queue.fail(scope, ai_task_id, request.error_message, claims=request.claims)
        )


def _lease_time(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
