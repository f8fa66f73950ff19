"""Subtasks, and what tasks are to each other, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Body, Query

from frontdesk.memory.asked.common import Id
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.bodies import NewOrder, NewRelation, NewSubtask
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import Where
from frontdesk.surfaces.rest.memory.told import Gone, OneRelation, RelationList, TaskObject
from frontdesk.surfaces.rest.memory.who import ReadsTasks, WritesTasks


def add_subtasks(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/subtasks", responses=shown([examples.task]), summary="The subtasks of a task, in their order")
    async def list_subtasks(scope: ReadsTasks, parent_task_id: Annotated[Id, Query()]) -> list[TaskObject]:
        return [TaskObject.of(task) for task in await room.tasks.subtasks(scope, parent_task_id)]

    @router.post("/subtasks", status_code=201, responses=shown(examples.task, 201), summary="Make a subtask")
    async def create_subtask(
        scope: WritesTasks,
        asked: Annotated[NewSubtask, Body(openapi_examples=sent(examples.NEW_SUBTASK))],
        timezone: Where = None,
    ) -> TaskObject:
        return TaskObject.of(await room.tasks.create(scope, asked.fields(), timezone))

    @router.put("/subtasks/reorder", responses=shown([examples.task]), summary="Put subtasks in another order")
    async def reorder_subtasks(scope: WritesTasks, asked: NewOrder) -> list[TaskObject]:
        ordered = await room.tasks.reorder(scope, asked.parent_task_id, asked.task_ids)
        return [TaskObject.of(task) for task in ordered]


def add_relations(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(
        "/task-relations",
        responses=shown({"relations": [examples.link]}),
        summary="What tasks are to each other: all, or those in which one has a part",
    )
    async def list_relations(scope: ReadsTasks, task_id: Annotated[Id | None, Query()] = None) -> RelationList:
        return RelationList(relations=await room.tasks.links(scope, task_id))

    @router.post(
        "/task-relations",
        status_code=201,
        responses=shown({"relation": examples.link}, 201),
        summary="Say what a task is to another",
    )
    async def create_relation(scope: WritesTasks, asked: NewRelation) -> OneRelation:
        made = await room.tasks.link(scope, asked.task_id, asked.related_task_id, asked.relation)
        return OneRelation(relation=made)

    @router.delete("/task-relations/{relation_id}", summary="Take a relation away")
    async def delete_relation(scope: WritesTasks, relation_id: str) -> Gone:
        return Gone(message="Relation deleted", id=(await room.tasks.unlink(scope, relation_id)).id)
