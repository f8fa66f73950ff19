"""Memories over HTTP, under /api/memories."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from frontdesk.memory.asked.memories import AnchorContent, MemoryContent
from frontdesk.memory.memories.wanted import MemoryStats, MemoryWanted
from frontdesk.memory.model import AnchorRelation, Memory
from frontdesk.memory.service import MemoryRoom
from frontdesk.surfaces.rest.memory import examples
from frontdesk.surfaces.rest.memory.counting import counted
from frontdesk.surfaces.rest.memory.examples import sent, shown
from frontdesk.surfaces.rest.memory.queries import MemoryQuery, Where
from frontdesk.surfaces.rest.memory.told import AnchorList, Message, OneAnchor
from frontdesk.surfaces.rest.memory.who import ReadsMemories, WritesMemories

ONE = "/memories/{memory_id}"
ANCHORS = f"{ONE}/anchors"
Written = Annotated[MemoryContent, Body(openapi_examples=sent(examples.NEW_MEMORY))]


def add_memories(router: APIRouter, room: MemoryRoom) -> None:
    _add_lists(router, room)
    _add_one(router, room)
    _add_anchors(router, room)


def _add_lists(router: APIRouter, room: MemoryRoom) -> None:
    @router.get("/memories", responses=shown([examples.memory], counted=True), summary="Memories")
    async def list_memories(
        scope: ReadsMemories, query: Annotated[MemoryQuery, Query()], answer: Response
    ) -> list[Memory]:
        found = await room.memories.list(scope, MemoryWanted(**query.said()))
        return [*counted(found, answer)]

    @router.post("/memories", status_code=201, responses=shown(examples.memory, 201), summary="Remember something")
    async def create_memory(scope: WritesMemories, asked: Written, timezone: Where = None) -> Memory:
        return await room.memories.create(scope, asked.said(), timezone)

    @router.get("/memories/stats", summary="What is remembered, in numbers")
    async def memory_stats(scope: ReadsMemories, timezone: Where = None) -> MemoryStats:
        return await room.memories.stats(scope, timezone)


def _add_one(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ONE, responses=shown(examples.memory), summary="A memory")
    async def show_memory(scope: ReadsMemories, memory_id: str) -> Memory:
        return await room.memories.get(scope, memory_id)

    @router.put(ONE, responses=shown(examples.memory), summary="Change a memory")
    async def update_memory(scope: WritesMemories, memory_id: str, asked: Written, timezone: Where = None) -> Memory:
        return await room.memories.update(scope, memory_id, asked.changes(), timezone)

    @router.delete(
        ONE,
        responses=shown({"message": "Memory deleted"}),
        summary="Delete a memory; it is kept, and found again with status=deleted",
    )
    async def delete_memory(scope: WritesMemories, memory_id: str) -> Message:
        await room.memories.delete(scope, memory_id)
        return Message(message="Memory deleted")


def _add_anchors(router: APIRouter, room: MemoryRoom) -> None:
    @router.get(ANCHORS, responses=shown({"anchors": [examples.anchor]}), summary="What a memory is anchored to")
    async def list_anchors(scope: ReadsMemories, memory_id: str) -> AnchorList:
        return AnchorList(anchors=await room.memories.anchors(scope, memory_id))

    @router.post(
        ANCHORS,
        status_code=201,
        responses=shown({"anchor": examples.anchor}, 201),
        summary="Anchor a memory to a task, an activity or another item",
    )
    async def add_anchor(
        scope: WritesMemories,
        memory_id: str,
        asked: Annotated[AnchorContent, Body(openapi_examples=sent(examples.NEW_ANCHOR))],
        timezone: Where = None,
    ) -> OneAnchor:
        return OneAnchor(anchor=await room.memories.anchor(scope, memory_id, asked.said(), timezone))

    @router.delete(
        f"{ANCHORS}/{{item_id}}", summary="Take a memory's anchors to an item away, or the one of a relation"
    )
    async def remove_anchor(
        scope: WritesMemories, memory_id: str, item_id: str, relation: AnchorRelation | None = None
    ) -> Message:
        await room.memories.unanchor(scope, memory_id, item_id, relation)
        return Message(message="Anchor deleted")
