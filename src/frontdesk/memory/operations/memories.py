"""Declares the operations on memories and their anchors."""

from collections.abc import Sequence
from functools import partial

from frontdesk.identity.rights import MEMORIES_READ, MEMORIES_WRITE
from frontdesk.memory.memories_rules import MemoryFilter, MemoryStats
from frontdesk.memory.model import MAX_SEARCH_LIMIT, ItemSearch, ItemStatus, ItemType, Memory, PersonScope
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
from frontdesk.memory.operations.timeline_requests import (
    AddMemory,
    AnchorContent,
    ItemIdRequest,
    MemoryContent,
    MemoryIdRequest,
    MemoryQuery,
    MemorySearchQuery,
    RemoveAnchorRequest,
    SearchMemories,
    UpdateMemory,
)
from frontdesk.memory.operations.timeline_text import format_memory, format_memory_line, format_memory_stats
from frontdesk.memory.rest import timeline as rest
from frontdesk.memory.rest.responses import (
    EXAMPLE_ANCHOR,
    EXAMPLE_MEMORY,
    NEW_ANCHOR,
    NEW_MEMORY,
    AnchoredListResponse,
    AnchorListResponse,
    AnchorResponse,
    DoneResponse,
    example_response,
)
from frontdesk.memory.service import RecordServices
from frontdesk.operations import Answer, Effect, Operation, Requires

MEMORIES_PATH = "/memories"
MEMORY_PATH = f"{MEMORIES_PATH}/{{memory_id}}"
ANCHORS_PATH = f"{MEMORY_PATH}/anchors"
# The filters that search applies itself, so that the best hits are searched among what passes them.
SEARCH_FIELDS = {
    "tags",
    "memory_type",
    "is_highlight",
    "place_name",
    "min_salience",
    "min_emotion_valence",
    "max_emotion_valence",
}
ADD_MEMORY = (
    "Remember something for the person: a fact, a wish, a thought, something that happened. Write the note so that it "
    "can be understood by itself, without this conversation. Only a note is needed. "
    'Example: {"note": "Ann is allergic to nuts", "tags": ["health"], "salience_score": 0.9}. Where it corrects what '
    "you remembered before, name that memory's id in supersedes: the old one is kept, and no longer found."
)
SEARCH_MEMORIES = (
    "Find what was remembered: say in plain words what it is about in search, and it is found by words and by meaning; "
    "or list memories by type, tags, place, feeling, importance and time. All that is given must hold. "
    'Example: {"search": "what may Ann not eat"}, or {"is_highlight": true, "captured_from": "2026-11-01"}. Use it '
    "before you say that you do not know something about the person."
)
GET_MEMORY = "One memory by its id, with all that is known of it; also one that was superseded or has expired."
UPDATE_MEMORY = (
    "Change a memory. What you leave out stays as it is. Where a fact has changed, add_memory with supersedes keeps "
    'what was true before. Example: {"id": "0199…", "is_highlight": true}.'
)
DELETE_MEMORY = (
    "Delete a memory: it is no longer found. Where it is only out of date, replace it instead, with add_memory and "
    'supersedes. Example: {"id": "0199…"}.'
)
GET_MEMORY_STATS = (
    "The person's memories in figures: how many, by type, place and tag, how they feel, how many are highlights."
)
NO_MEMORIES = (
    "No memory is like that. Say it in other words, leave out some of what you asked for, or add one with add_memory."
)


class MemoryAnswer(ToolAnswer):
    """One memory."""

    memory: Memory


class MemoriesAnswer(ToolAnswer):
    """A page of memories."""

    memories: Sequence[Memory]
    total: int
    offset: int
    has_more: bool


class MemoryStatsAnswer(ToolAnswer):
    """Statistics of memories."""

    stats: MemoryStats


class DeletedAnswer(ToolAnswer):
    """A deleted memory."""

    id: str
    deleted: bool


async def add_memory(services: RecordServices, scope: PersonScope, request: AddMemory) -> Answer:
    memory = await services.memories.create(scope, request.provided())
    return await _memory_answer(services, scope, memory, "Remembered.")


async def search_memories(services: RecordServices, scope: PersonScope, request: SearchMemories) -> Answer:
    filters = MemoryFilter(**request.provided("search", "limit", "offset"), limit=request.limit, offset=request.offset)
    if request.search:
        query = _item_search(request, request.search)
        found = await services.search.list_memories(scope, query, filters, best_first=request.sort_by is None)
        page, zone = found.page, found.zone
    else:
        page, zone = await services.memories.list(scope, filters), await person_zone(services, scope)
    text = format_page(page, partial(format_memory_line, zone=zone), "memory", "memories", none=NO_MEMORIES)
    data = MemoriesAnswer(memories=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Answer(text, data)


def _item_search(request: SearchMemories, text: str) -> ItemSearch:
    fields = request.provided()
    return ItemSearch(
        text=text,
        types=frozenset({ItemType.MEMORY}),
        limit=MAX_SEARCH_LIMIT,
        category=request.category_id,
        statuses=frozenset({ItemStatus(request.status)}) if request.status else None,
        **{name: fields[name] for name in SEARCH_FIELDS if name in fields},
    )


async def get_memory(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> Answer:
    return await _memory_answer(services, scope, await services.memories.get(scope, request.id))


async def update_memory(services: RecordServices, scope: PersonScope, request: UpdateMemory) -> Answer:
    memory = await services.memories.update(scope, request.id, request.provided("id"))
    return await _memory_answer(services, scope, memory, "Changed.")


async def delete_memory(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> Answer:
    await services.memories.delete(scope, request.id)
    text = f"The memory {request.id} is deleted, and no longer found."
    return Answer(text, DeletedAnswer(id=request.id, deleted=True))


async def get_memory_stats(services: RecordServices, scope: PersonScope, _request: EmptyRequest) -> Answer:
    stats = await services.memories.stats(scope)
    return Answer(format_memory_stats(stats), MemoryStatsAnswer(stats=stats))


async def _memory_answer(services: RecordServices, scope: PersonScope, memory: Memory, first: str = "") -> Answer:
    text = join_lines(first, format_memory(memory, await person_zone(services, scope)))
    return Answer(text, MemoryAnswer(memory=memory))


MEMORIES_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="add_memory",
        summary="Remember something",
        request=AddMemory,
        run=for_person(add_memory),
        scopes=(MEMORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        mcp=memory_tool("Remember something", ADD_MEMORY, MemoryAnswer),
        agents=memory_agent_tool("add_memory", ADD_MEMORY),
        rest=memory_route(
            "POST",
            MEMORIES_PATH,
            name="create_memory",
            query=ZoneQuery,
            body=MemoryContent,
            body_example=NEW_MEMORY,
            run=rest.create_memory,
            response=Memory,
            status=201,
            example=EXAMPLE_MEMORY,
        ),
    ),
    Operation(
        name="search_memories",
        summary="Find memories by words and by meaning",
        request=SearchMemories,
        run=for_person(search_memories),
        scopes=(MEMORIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Find memories", SEARCH_MEMORIES, MemoriesAnswer),
        agents=memory_agent_tool("search_memories", SEARCH_MEMORIES),
        rest=memory_route(
            "GET",
            f"{MEMORIES_PATH}/search",
            query=MemorySearchQuery,
            run=rest.search_memories,
            response=rest.MemorySearchResponse,
            example={**rest.SEARCH_EXAMPLE, "results": [{**rest.MATCH_EXAMPLE, "memory": EXAMPLE_MEMORY}]},
        ),
    ),
    Operation(
        name="list_memories",
        summary="Memories",
        request=MemoryQuery,
        run=for_person(rest.list_memories),
        scopes=(MEMORIES_READ,),
        requires=Requires.PERSON,
        rest=memory_route(
            "GET",
            MEMORIES_PATH,
            response=list[Memory],
            responses=example_response([EXAMPLE_MEMORY], counted=True),
        ),
    ),
    Operation(
        name="get_memory",
        summary="A memory",
        request=RecordIdRequest,
        run=for_person(get_memory),
        scopes=(MEMORIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Look at a memory", GET_MEMORY, MemoryAnswer),
        agents=memory_agent_tool("get_memory", GET_MEMORY),
        rest=memory_route(
            "GET", MEMORY_PATH, name="show_memory", run=rest.show_memory, response=Memory, example=EXAMPLE_MEMORY
        ),
    ),
    Operation(
        name="update_memory",
        summary="Change a memory",
        request=UpdateMemory,
        run=for_person(update_memory),
        scopes=(MEMORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        mcp=memory_tool("Change a memory", UPDATE_MEMORY, MemoryAnswer),
        agents=memory_agent_tool("update_memory", UPDATE_MEMORY),
        rest=memory_route(
            "PUT",
            MEMORY_PATH,
            query=ZoneQuery,
            body=MemoryContent,
            body_example=NEW_MEMORY,
            run=rest.update_memory,
            response=Memory,
            example=EXAMPLE_MEMORY,
        ),
    ),
    Operation(
        name="delete_memory",
        summary="Delete a memory; it is kept, and found again with status=deleted",
        request=RecordIdRequest,
        run=for_person(delete_memory),
        scopes=(MEMORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        mcp=memory_tool("Delete a memory", DELETE_MEMORY, DeletedAnswer),
        agents=memory_agent_tool("delete_memory", DELETE_MEMORY),
        rest=memory_route(
            "DELETE",
            MEMORY_PATH,
            run=rest.delete_memory,
            response=DoneResponse,
            example={"message": "Memory deleted"},
        ),
    ),
    Operation(
        name="get_memory_stats",
        summary="What is remembered, in numbers",
        request=EmptyRequest,
        run=for_person(get_memory_stats),
        scopes=(MEMORIES_READ,),
        requires=Requires.PERSON,
        mcp=memory_tool("Memories in figures", GET_MEMORY_STATS, MemoryStatsAnswer),
        agents=memory_agent_tool("get_memory_stats", GET_MEMORY_STATS),
        rest=memory_route(
            "GET",
            f"{MEMORIES_PATH}/stats",
            name="memory_stats",
            query=ZoneQuery,
            run=rest.memory_stats,
            response=MemoryStats,
        ),
    ),
    Operation(
        name="list_anchors",
        summary="What a memory is anchored to",
        request=MemoryIdRequest,
        run=for_person(rest.list_anchors),
        scopes=(MEMORIES_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", ANCHORS_PATH, response=AnchorListResponse, example={"anchors": [EXAMPLE_ANCHOR]}),
    ),
    Operation(
        name="add_anchor",
        summary="Anchor a memory to a task, an activity or another item",
        request=AnchorContent,
        run=for_person(rest.add_anchor),
        scopes=(MEMORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.ADDS,
        rest=memory_route(
            "POST",
            ANCHORS_PATH,
            query=ZoneQuery,
            body=AnchorContent,
            body_example=NEW_ANCHOR,
            run=rest.add_anchor,
            response=AnchorResponse,
            status=201,
            example={"anchor": EXAMPLE_ANCHOR},
        ),
    ),
    Operation(
        name="remove_anchor",
        summary="Take a memory's anchors to an item away, or the one of a relation",
        request=RemoveAnchorRequest,
        run=for_person(rest.remove_anchor),
        scopes=(MEMORIES_WRITE,),
        requires=Requires.PERSON,
        effect=Effect.CHANGES,
        rest=memory_route("DELETE", f"{ANCHORS_PATH}/{{item_id}}", response=DoneResponse),
    ),
    Operation(
        name="item_anchors",
        summary="The memories that are anchored to an item, and how",
        request=ItemIdRequest,
        run=for_person(rest.item_anchors),
        scopes=(MEMORIES_READ,),
        requires=Requires.PERSON,
        rest=memory_route("GET", "/timeline-items/{item_id}/anchors", response=AnchoredListResponse),
    ),
)
