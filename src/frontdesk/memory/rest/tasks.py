"""Answers the HTTP API about tasks and the time spent on them, in the shapes of its contract."""

from frontdesk.memory.model import ItemType, PersonScope
from frontdesk.memory.operations.base import ZoneQuery
from frontdesk.memory.rest.requests import (
    AddEntryRequest,
    ChangedBetween,
    ChangeEntryRequest,
    ChangeTaskRequest,
    CreatedBetween,
    CreateSubtaskRequest,
    EntryIdRequest,
    ItemEntriesRequest,
    ListEntriesRequest,
    ListRelationsRequest,
    ListSubtasksRequest,
    NewRelationRequest,
    NewTaskRequest,
    RelationIdRequest,
    ReorderSubtasksRequest,
    SetStatusOfTaskRequest,
    StartTimerRequest,
    StopTimerRequest,
    TaskIdRequest,
    TaskQuery,
    TaskTreeRequest,
)
from frontdesk.memory.rest.responses import (
    DeletedResponse,
    EntryListResponse,
    EntryResponse,
    OptionalEntryResponse,
    RelationListResponse,
    RelationResponse,
    TaskResponse,
    TaskTreeResponse,
    TimerProblem,
    UpdatedTasksResponse,
    counted_answer,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import TaskFilter, TaskStats
from frontdesk.operations import EmptyQuery, ResponseDocs, RestAnswer, RestInput

TIMER_RESPONSES: ResponseDocs = {
    409: {"model": TimerProblem, "description": "Another timer runs: `running` says which."},
    200: {"model": EntryResponse, "description": "It runs already."},
}


async def list_tasks(services: RecordServices, scope: PersonScope, request: RestInput[TaskQuery, None]) -> RestAnswer:
    page = await services.tasks.list(scope, TaskFilter(**request.query.provided()))
    return counted_answer([TaskResponse.of(task) for task in page.items], page.total)


async def create_task(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, NewTaskRequest]
) -> TaskResponse:
    return TaskResponse.of(await services.tasks.create(scope, request.body.fields(), request.query.timezone))


async def show_task(services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, None]) -> TaskResponse:
    return TaskResponse.of(await services.tasks.get(scope, request.path["task_id"]))


async def update_task(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, ChangeTaskRequest]
) -> TaskResponse:
    fields, zone = request.body.fields(), request.query.timezone
    return TaskResponse.of(await services.tasks.update(scope, request.path["task_id"], fields, zone))


async def task_stats(
    services: RecordServices, scope: PersonScope, request: RestInput[CreatedBetween, None]
) -> TaskStats:
    query = request.query
    return await services.tasks.stats(scope, query.from_date, query.to_date, query.timezone)


async def updated_tasks(
    services: RecordServices, scope: PersonScope, request: RestInput[ChangedBetween, None]
) -> UpdatedTasksResponse:
    query = request.query
    return UpdatedTasksResponse.of(
        await services.tasks.updated(scope, query.start_date, query.end_date, query.timezone)
    )


async def task_tree(services: RecordServices, scope: PersonScope, request: TaskTreeRequest) -> TaskTreeResponse:
    tasks = await services.tasks.tree(
        scope, request.task_id, request.max_depth, include_completed=request.include_completed
    )
    return TaskTreeResponse.of(tasks, request.format)


async def set_task_status(
    services: RecordServices, scope: PersonScope, request: SetStatusOfTaskRequest
) -> TaskResponse:
    return TaskResponse.of(
        await services.tasks.set_status(scope, request.task_id, request.status, request.notes, request.progress)
    )


async def delete_task(services: RecordServices, scope: PersonScope, request: TaskIdRequest) -> DeletedResponse:
    task = await services.tasks.delete(scope, request.task_id)
    return DeletedResponse(message="Task deleted", id=task.id)


async def list_subtasks(
    services: RecordServices, scope: PersonScope, request: ListSubtasksRequest
) -> list[TaskResponse]:
    return [TaskResponse.of(task) for task in await services.tasks.subtasks(scope, request.parent_task_id)]


async def create_subtask(services: RecordServices, scope: PersonScope, request: CreateSubtaskRequest) -> TaskResponse:
    return TaskResponse.of(await services.tasks.create(scope, request.fields(), request.timezone))


async def reorder_subtasks(
    services: RecordServices, scope: PersonScope, request: ReorderSubtasksRequest
) -> list[TaskResponse]:
    tasks = await services.tasks.reorder(scope, request.parent_task_id, request.task_ids)
    return [TaskResponse.of(task) for task in tasks]


async def list_relations(
    services: RecordServices, scope: PersonScope, request: ListRelationsRequest
) -> RelationListResponse:
    return RelationListResponse(relations=await services.tasks.links(scope, request.task_id))


async def create_relation(
    services: RecordServices, scope: PersonScope, request: NewRelationRequest
) -> RelationResponse:
    relation = await services.tasks.link(scope, request.task_id, request.related_task_id, request.relation)
    return RelationResponse(relation=relation)


async def delete_relation(services: RecordServices, scope: PersonScope, request: RelationIdRequest) -> DeletedResponse:
    relation = await services.tasks.unlink(scope, request.relation_id)
    return DeletedResponse(message="Relation deleted", id=relation.id)


async def start_timer(
    services: RecordServices, scope: PersonScope, request: RestInput[EmptyQuery, StartTimerRequest | None]
) -> RestAnswer:
    body = request.body or StartTimerRequest()
    started = await services.time_tracking.start(
        scope, request.path["task_id"], body.description, body.autoSwitch, kind=ItemType.TASK
    )
    return RestAnswer(EntryResponse(entry=started.entry), 201 if started.created else 200)


async def stop_timer(
    services: RecordServices, scope: PersonScope, request: RestInput[ZoneQuery, StopTimerRequest | None]
) -> OptionalEntryResponse:
    end_at = request.body.overrideEndAt if request.body else None
    entry = await services.time_tracking.stop(
        scope, request.path["task_id"], end_at, request.query.timezone, kind=ItemType.TASK
    )
    return OptionalEntryResponse(entry=entry)


async def running_timer(
    services: RecordServices, scope: PersonScope, _request: RestInput[EmptyQuery, None]
) -> OptionalEntryResponse:
    return OptionalEntryResponse(entry=await services.time_tracking.running(scope))


async def task_entries(
    services: RecordServices, scope: PersonScope, request: RestInput[ChangedBetween, None]
) -> EntryListResponse:
    query = ItemEntriesRequest(item_id=request.path["item_id"], **request.query.provided())
    return await item_entries(services, scope, query, kind=ItemType.TASK)


async def item_entries(
    services: RecordServices, scope: PersonScope, request: ItemEntriesRequest, kind: ItemType | None = None
) -> EntryListResponse:
    """The time entries of one item, of this kind or of any."""
    dates = (request.start_date, request.end_date, request.timezone)
    entries = await services.time_tracking.entries_of_item(scope, request.item_id, *dates, kind=kind)
    return EntryListResponse(entries=entries)


async def add_item_entry(
    services: RecordServices, scope: PersonScope, request: AddEntryRequest, kind: ItemType | None = None
) -> EntryResponse:
    fields = request.provided("item_id", "timezone")
    entry = await services.time_tracking.add(scope, request.item_id, fields, request.timezone, kind=kind)
    return EntryResponse(entry=entry)


async def entries_between(
    services: RecordServices, scope: PersonScope, request: ListEntriesRequest
) -> EntryListResponse:
    entries = await services.time_tracking.entries_between(scope, request.from_, request.to, request.timezone)
    return EntryListResponse(entries=entries)


async def update_entry(services: RecordServices, scope: PersonScope, request: ChangeEntryRequest) -> EntryResponse:
    fields = request.changes("entry_id", "timezone")
    return EntryResponse(entry=await services.time_tracking.change(scope, request.entry_id, fields, request.timezone))


async def delete_entry(services: RecordServices, scope: PersonScope, request: EntryIdRequest) -> DeletedResponse:
    entry = await services.time_tracking.remove(scope, request.entry_id)
    return DeletedResponse(message="Time entry deleted", id=entry.id)
