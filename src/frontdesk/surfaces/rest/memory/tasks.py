"""Tasks over HTTP, under /api/tasks."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tasks.stats import TaskStats
from frontdesk.memory.tasks.wanted import TaskWanted
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.bodies import ChangedTask, NewStatus, NewTask
from frontdesk.surfaces.rest.memory.counting import counted
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import ChangedWithin, MadeWithin, TaskQuery, TreeQuery, Where
from frontdesk.surfaces.rest.memory.told import Gone, TaskObject, TaskTree, UpdatedTasks
from frontdesk.surfaces.rest.memory.who import ReadsTasks, WritesTasks

ONE = "/tasks/{task_id}"


def add_tasks(router: APIRouter, room: MemoryRoom) -> None:
    _add_lists(router, room)
    _add_one(router, room)
    _add_changes(router, room)


def _add_lists(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/tasks", responses=shown([examples.task], counted=True), summary="Tasks")
    async def list_tasks(scope: ReadsTasks, query: Annotated[TaskQuery, Query()], answer: Response) -> list[TaskObject]:
        found = await room.tasks.list(scope, TaskWanted(**query.said()))
        return [TaskObject.of(task) for task in counted(found, answer)]

    @router.post("/tasks", status_code=201, responses=shown(examples.task, 201), summary="Make a task")
    async def create_task(
        scope: WritesTasks,
        asked: Annotated[NewTask, Body(openapi_examples=sent(examples.NEW_TASK))],
        timezone: Where = None,
    ) -> TaskObject:
        return TaskObject.of(await room.tasks.create(scope, asked.fields(), timezone))

    @router.get("/tasks/stats", summary="How the tasks stand, in numbers")
    async def task_stats(scope: ReadsTasks, query: Annotated[MadeWithin, Query()]) -> TaskStats:
        return await room.tasks.stats(scope, query.from_date, query.to_date, query.timezone)

    @router.get("/tasks/updated-today", summary="Tasks that were changed today, or between two dates")
    async def updated_tasks(scope: ReadsTasks, query: Annotated[ChangedWithin, Query()]) -> UpdatedTasks:
        return UpdatedTasks.of(await room.tasks.updated(scope, query.start_date, query.end_date, query.timezone))


def _add_one(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ONE, responses=shown(examples.task), summary="A task")
    async def show_task(scope: ReadsTasks, task_id: str) -> TaskObject:
        return TaskObject.of(await room.tasks.get(scope, task_id))

    @router.get(f"{ONE}/tree", summary="A task and what is under it")
    async def task_tree(scope: ReadsTasks, task_id: str, query: Annotated[TreeQuery, Query()]) -> TaskTree:
        found = await room.tasks.tree(scope, task_id, query.max_depth, include_completed=query.include_completed)
        return TaskTree.of(found, query.format)


def _add_changes(router: APIRouter, room: MemoryRoom) -> None:
    @router.put(ONE, responses=shown(examples.task), summary="Change a task")
    async def update_task(
        scope: WritesTasks,
        task_id: str,
        asked: Annotated[ChangedTask, Body(openapi_examples=sent(examples.CHANGED_TASK))],
        timezone: Where = None,
    ) -> TaskObject:
        return TaskObject.of(await room.tasks.update(scope, task_id, asked.fields(), timezone))

    @router.put(f"{ONE}/status", responses=shown(examples.task), summary="Say how a task stands")
    async def set_task_status(scope: WritesTasks, task_id: str, asked: NewStatus) -> TaskObject:
        return TaskObject.of(await room.tasks.set_status(scope, task_id, asked.status, asked.notes, asked.progress))

    @router.delete(
        ONE,
        responses=shown({"message": "Task deleted", "id": examples.TASK}),
        summary="Delete a task, with its subtasks and the time spent on them",
    )
    async def delete_task(scope: WritesTasks, task_id: str) -> Gone:
        return Gone(message="Task deleted", id=(await room.tasks.delete(scope, task_id)).id)
