"""Declares what can be asked about tasks, their subtasks and their relations."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from frontdesk.identity.rights import TASKS_READ, TASKS_WRITE
from frontdesk.memory.model import PersonScope, Task
from frontdesk.memory.operations.base import (
    EmptyRequest,
    RecordIdRequest,
    ToolAnswer,
    ZoneQuery,
    for_person,
    format_page,
    join_lines,
    memory_agent_tool,
    memory_route,
    memory_tool,
    person_zone,
)
from frontdesk.memory.operations.task_requests import (
    CreateTask,
    DateRequest,
    SearchTasks,
    TodayRequest,
    UpdateTask,
)
from frontdesk.memory.operations.task_text import (
    format_task,
    format_task_line,
    format_task_stats,
    format_updated_tasks,
)
from frontdesk.memory.rest import tasks as rest
from frontdesk.memory.rest.requests import (
    ChangedBetween,
    ChangeTaskRequest,
    CreatedBetween,
    CreateSubtaskRequest,
    ListRelationsRequest,
    ListSubtasksRequest,
    NewRelationRequest,
    NewSubtaskRequest,
    NewTaskRequest,
    RelationIdRequest,
    ReorderSubtasksRequest,
    SetStatusOfTaskRequest,
    SetTaskStatusRequest,
    TaskIdRequest,
    TaskQuery,
    TaskTreeRequest,
)
from frontdesk.memory.rest.responses import (
    CHANGED_TASK,
    EXAMPLE_RELATION,
    EXAMPLE_TASK,
    NEW_SUBTASK,
    NEW_TASK,
    TASK_ID,
    DeletedResponse,
    RelationListResponse,
    RelationResponse,
    TaskResponse,
    TaskTreeResponse,
    UpdatedTasksResponse,
    example_response,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import TaskFilter, TaskStats, UpdatedTaskList
from frontdesk.operations import Answer, Effect, Operation, Requires

CREATE_TASK = (
    "Put a task on the person's list: something that is to be done. Only a title is needed. A due date is a day, which "
    "means its end, or a time; without an offset it is on the person's own clock. Example: "
    '{"title": "Book the train", "due_date": "2026-11-20", "priority": "high", "category": "travel"}. The answer has '
    "the task's id. Search first where it may be there already."
)
SEARCH_TASKS = (
    "Find tasks: by words in them, status, priority, category, tags, assignee, and when they are due or were made. All "
    'that is given must hold; nothing given lists all. Example: {"status": "pending", "due_before": "2026-11-20", '
    '"sort_by": "due_date", "sort_order": "asc"}; {"overdue": true} finds what is late.'
)
GET_TASK = "One task by its id, with all that is known of it: description, notes, progress, tracked time, subtasks."
UPDATE_TASK = (
    "Change a task. What you leave out stays as it is. Completing it is a change of status. "
    'Example: {"id": "0199…", "status": "completed"}, or {"id": "0199…", "due_date": "2026-11-21", "progress": 60}.'
)
GET_TASK_STATS = (
    "The person's tasks in figures: how many, by status, priority and category, what is due today, this week, overdue."
)
GET_UPDATES_FOR_TODAY = (
    "The tasks that were made or changed today, the latest first: what got done, what moved. For a daily review."
)
GET_UPDATES_FOR_DATE = (
    'The tasks whose last change was on a certain day, the latest first. Example: {"date": "2026-11-20"}.'
)
NO_TASKS = "No task is like that. Leave out some of what you asked for, or make one with create_task."


class TaskAnswer(ToolAnswer):
    """One task."""

    task: Task


class TasksAnswer(ToolAnswer):
    """A page of tasks."""

    tasks: Sequence[Task]
    total: int
    offset: int
    has_more: bool


class TaskStatsAnswer(ToolAnswer):
    """Statistics of tasks."""

    stats: TaskStats


class TimeRange(ToolAnswer):
    """A range of time."""

    start: datetime
    end: datetime


class TasksUpdatedAnswer(ToolAnswer):
    """The tasks that changed in a range of time."""

    tasks: Sequence[Task]
    total: int
    date_range: TimeRange


async def create_task(services: RecordServices, scope: PersonScope, request: CreateTask) -> Answer:
    task = await services.tasks.create(scope, request.provided("timezone"), request.timezone)
    return await _task_answer(services, scope, task, "Created.", request.timezone)


async def search_tasks(services: RecordServices, scope: PersonScope, request: SearchTasks) -> Answer:
    filters = request.provided("keyword", "limit", "offset")
    query = TaskFilter(**filters, search=request.keyword, every_tag=True, limit=request.limit, offset=request.offset)
    page = await services.tasks.list(scope, query)
    zone = await person_zone(services, scope, request.timezone)
    text = format_page(page, partial(format_task_line, zone=zone), "task", none=NO_TASKS)
    return Answer(text, TasksAnswer(tasks=page.items, total=page.total, offset=page.offset, has_more=page.has_more))


async def get_task(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> Answer:
    return await _task_answer(services, scope, await services.tasks.get(scope, request.id))


async def update_task(services: RecordServices, scope: PersonScope, request: UpdateTask) -> Answer:
    task = await services.tasks.update(scope, request.id, request.provided("id", "timezone"), request.timezone)
    return await _task_answer(services, scope, task, "Changed.", request.timezone)


async def get_task_stats(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> Answer:
    stats = await services.tasks.stats(scope)
    return Answer(format_task_stats(stats), TaskStatsAnswer(stats=stats))


async def updates_today(services: RecordServices, scope: PersonScope, request: TodayRequest) -> Answer:
    tasks = await services.tasks.updated(scope, zone=request.timezone)
    return await _updated_tasks_answer(services, scope, tasks, request.timezone)


async def updates_on_date(services: RecordServices, scope: PersonScope, request: DateRequest) -> Answer:
    tasks = await services.tasks.updated(scope, request.date, request.date, request.timezone)
    return await _updated_tasks_answer(services, scope, tasks, request.timezone)


async def _task_answer(
    services: RecordServices, scope: PersonScope, task: Task, first: str = "", zone: str | None = None
) -> Answer:
    text = join_lines(first, format_task(task, await person_zone(services, scope, zone)))
    return Answer(text, TaskAnswer(task=task))


async def _updated_tasks_answer(
    services: RecordServices, scope: PersonScope, results: UpdatedTaskList, zone: str | None
) -> Answer:
    text = format_updated_tasks(results, await person_zone(services, scope, zone))
    period = TimeRange(start=results.span.start, end=results.span.end)
    return Answer(text, TasksUpdatedAnswer(tasks=results.tasks, total=results.total, date_range=period))


TASK_PATH = "/tasks/{task_id}"
TASK_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="create_task",
        summary="Make a task",
        request=CreateTask,
        run=for_person(create_task),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Create a task", CREATE_TASK, TaskAnswer),
        rest=memory_route(
            "POST",
            "/tasks",
            run=rest.create_task,
            query=ZoneQuery,
            body=NewTaskRequest,
            body_example=NEW_TASK,
            response=TaskResponse,
            status=201,
            example=EXAMPLE_TASK,
        ),
        agents=memory_agent_tool("create_task", CREATE_TASK),
    ),
    Operation(
        name="search_tasks",
        summary="Tasks",
        request=SearchTasks,
        run=for_person(search_tasks),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Find tasks", SEARCH_TASKS, TasksAnswer),
        rest=memory_route(
            "GET",
            "/tasks",
            name="list_tasks",
            run=rest.list_tasks,
            query=TaskQuery,
            response=list[TaskResponse],
            responses=example_response([EXAMPLE_TASK], counted=True),
        ),
        agents=memory_agent_tool("search_tasks", SEARCH_TASKS),
    ),
    Operation(
        name="get_task",
        summary="A task",
        request=RecordIdRequest,
        run=for_person(get_task),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Look at a task", GET_TASK, TaskAnswer),
        rest=memory_route(
            "GET", TASK_PATH, name="show_task", run=rest.show_task, response=TaskResponse, example=EXAMPLE_TASK
        ),
        agents=memory_agent_tool("get_task", GET_TASK),
    ),
    Operation(
        name="update_task",
        summary="Change a task",
        request=UpdateTask,
        run=for_person(update_task),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        mcp=memory_tool("Change a task", UPDATE_TASK, TaskAnswer),
        rest=memory_route(
            "PUT",
            TASK_PATH,
            run=rest.update_task,
            query=ZoneQuery,
            body=ChangeTaskRequest,
            body_example=CHANGED_TASK,
            response=TaskResponse,
            example=EXAMPLE_TASK,
        ),
        agents=memory_agent_tool("update_task", UPDATE_TASK),
    ),
    Operation(
        name="get_task_stats",
        summary="How the tasks stand, in numbers",
        request=EmptyRequest,
        run=for_person(get_task_stats),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Tasks in figures", GET_TASK_STATS, TaskStatsAnswer),
        rest=memory_route(
            "GET", "/tasks/stats", name="task_stats", run=rest.task_stats, query=CreatedBetween, response=TaskStats
        ),
        agents=memory_agent_tool("get_task_stats", GET_TASK_STATS),
    ),
    Operation(
        name="get_task_updates_for_today",
        summary="Tasks that were changed today, or between two dates",
        request=TodayRequest,
        run=for_person(updates_today),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Tasks changed today", GET_UPDATES_FOR_TODAY, TasksUpdatedAnswer),
        rest=memory_route(
            "GET",
            "/tasks/updated-today",
            name="updated_tasks",
            run=rest.updated_tasks,
            query=ChangedBetween,
            response=UpdatedTasksResponse,
        ),
        agents=memory_agent_tool("get_task_updates_for_today", GET_UPDATES_FOR_TODAY),
    ),
    Operation(
        name="get_task_updates_for_date",
        summary="Tasks that were changed on a day",
        request=DateRequest,
        run=for_person(updates_on_date),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Tasks changed on a day", GET_UPDATES_FOR_DATE, TasksUpdatedAnswer),
        agents=memory_agent_tool("get_task_updates_for_date", GET_UPDATES_FOR_DATE),
    ),
    Operation(
        name="task_tree",
        summary="A task and what is under it",
        request=TaskTreeRequest,
        run=for_person(rest.task_tree),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", f"{TASK_PATH}/tree", response=TaskTreeResponse),
    ),
    Operation(
        name="set_task_status",
        summary="Say how a task stands",
        request=SetStatusOfTaskRequest,
        run=for_person(rest.set_task_status),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "PUT", f"{TASK_PATH}/status", body=SetTaskStatusRequest, response=TaskResponse, example=EXAMPLE_TASK
        ),
    ),
    Operation(
        name="delete_task",
        summary="Delete a task, with its subtasks and the time spent on them",
        request=TaskIdRequest,
        run=for_person(rest.delete_task),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route(
            "DELETE", TASK_PATH, response=DeletedResponse, example={"message": "Task deleted", "id": TASK_ID}
        ),
    ),
    Operation(
        name="list_subtasks",
        summary="The subtasks of a task, in their order",
        request=ListSubtasksRequest,
        run=for_person(rest.list_subtasks),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", "/subtasks", response=list[TaskResponse], example=[EXAMPLE_TASK]),
    ),
    Operation(
        name="create_subtask",
        summary="Make a subtask",
        request=CreateSubtaskRequest,
        run=for_person(rest.create_subtask),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        rest=memory_route(
            "POST",
            "/subtasks",
            query=ZoneQuery,
            body=NewSubtaskRequest,
            body_example=NEW_SUBTASK,
            response=TaskResponse,
            status=201,
            example=EXAMPLE_TASK,
        ),
    ),
    Operation(
        name="reorder_subtasks",
        summary="Put subtasks in another order",
        request=ReorderSubtasksRequest,
        run=for_person(rest.reorder_subtasks),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("PUT", "/subtasks/reorder", response=list[TaskResponse], example=[EXAMPLE_TASK]),
    ),
    Operation(
        name="list_relations",
        summary="What tasks are to each other: all, or those in which one has a part",
        request=ListRelationsRequest,
        run=for_person(rest.list_relations),
        scopes=(TASKS_READ,),
        requires=Requires.PERSON,
        rest=memory_route(
            "GET", "/task-relations", response=RelationListResponse, example={"relations": [EXAMPLE_RELATION]}
        ),
    ),
    Operation(
        name="create_relation",
        summary="Say what a task is to another",
        request=NewRelationRequest,
        run=for_person(rest.create_relation),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        rest=memory_route(
            "POST", "/task-relations", response=RelationResponse, status=201, example={"relation": EXAMPLE_RELATION}
        ),
    ),
    Operation(
        name="delete_relation",
        summary="Take a relation away",
        request=RelationIdRequest,
        run=for_person(rest.delete_relation),
        scopes=(TASKS_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", "/task-relations/{relation_id}", response=DeletedResponse),
    ),
)
