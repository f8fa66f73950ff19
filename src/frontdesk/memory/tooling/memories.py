"""The tools for memories."""

from collections.abc import Sequence
from functools import partial

from frontdesk.memory.asked import memories as asked
from frontdesk.memory.asked.common import Nothing, Which
from frontdesk.memory.given import Page
from frontdesk.memory.memories.wanted import MemoryStats, MemoryWanted
from frontdesk.memory.model import Memory
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.finding import found
from frontdesk.memory.tooling.telling.memories import memory_line, memory_told, stats_told
from frontdesk.memory.tooling.telling.words import lines, listed
from frontdesk.memory.tooling.tool import CHANGES, MAKES, Answer, MemoryTool, Told

ADD = (
    "Remember something for the person: a fact, a wish, a thought, something that happened. Write the note so that it "
    "can be understood by itself, without this conversation. Only a note is needed. "
    'Example: {"note": "Ann is allergic to nuts", "tags": ["health"], "salience_score": 0.9}. Where it corrects what '
    "you remembered before, name that memory's id in supersedes: the old one is kept, and no longer found."
)
SEARCH = (
    "Find what was remembered: say in plain words what it is about in search, and it is found by words and by meaning; "
    "or list memories by type, tags, place, feeling, importance and time. All that is given must hold. "
    'Example: {"search": "what may Ann not eat"}, or {"is_highlight": true, "captured_from": "2026-11-01"}. Use it '
    "before you say that you do not know something about the person."
)
GET = "One memory by its id, with all that is known of it; also one that was superseded or has expired."
UPDATE = (
    "Change a memory. What you leave out stays as it is. Where a fact has changed, add_memory with supersedes keeps "
    'what was true before. Example: {"id": "0199…", "is_highlight": true}.'
)
DELETE = (
    "Delete a memory: it is no longer found. Where it is only out of date, replace it instead, with add_memory and "
    'supersedes. Example: {"id": "0199…"}.'
)
STATS = "The person's memories in figures: how many, by type, place and tag, how they feel, how many are highlights."
NONE = (
    "No memory is like that. Say it in other words, leave out some of what you asked for, or add one with add_memory."
)


class MemoryAnswer(Answer):
    """One memory."""

    memory: Memory


class MemoriesAnswer(Answer):
    """Some memories, and how many there are in all."""

    memories: Sequence[Memory]
    total: int
    offset: int
    has_more: bool


class MemoryStatsAnswer(Answer):
    """The memories in figures."""

    stats: MemoryStats


class DeletedAnswer(Answer):
    """What is no longer found."""

    id: str
    deleted: bool


async def add(room: MemoryRoom, scope: Scope, given: asked.AddMemory) -> Told:
    return await _told(room, scope, await room.memories.create(scope, given.said()), "Remembered.")


async def search(room: MemoryRoom, scope: Scope, given: asked.SearchMemories) -> Told:
    page = await (found(room, scope, given, given.search) if given.search else _listed(room, scope, given))
    zone = await clock(room, scope)
    text = listed(page, partial(memory_line, zone=zone), "memory", "memories", none=NONE)
    answer = MemoriesAnswer(memories=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Told(text, answer)


async def get(room: MemoryRoom, scope: Scope, given: Which) -> Told:
    return await _told(room, scope, await room.memories.get(scope, given.id))


async def update(room: MemoryRoom, scope: Scope, given: asked.UpdateMemory) -> Told:
    return await _told(room, scope, await room.memories.update(scope, given.id, given.said("id")), "Changed.")


async def delete(room: MemoryRoom, scope: Scope, given: Which) -> Told:
    await room.memories.delete(scope, given.id)
    return Told(f"The memory {given.id} is deleted, and no longer found.", DeletedAnswer(id=given.id, deleted=True))


async def stats(room: MemoryRoom, scope: Scope, _given: Nothing) -> Told:
    figures = await room.memories.stats(scope)
    return Told(stats_told(figures), MemoryStatsAnswer(stats=figures))


async def _listed(room: MemoryRoom, scope: Scope, given: asked.SearchMemories) -> Page[Memory]:
    said = given.said("search", "limit", "offset")
    return await room.memories.list(scope, MemoryWanted(**said, limit=given.limit, offset=given.offset))


async def _told(room: MemoryRoom, scope: Scope, memory: Memory, first: str = "") -> Told:
    text = lines(first, memory_told(memory, await clock(room, scope)))
    return Told(text, MemoryAnswer(memory=memory))


MEMORIES: tuple[MemoryTool, ...] = (
    MemoryTool("add_memory", "Remember something", ADD, asked.AddMemory, MemoryAnswer, add, **MAKES),
    MemoryTool("search_memories", "Find memories", SEARCH, asked.SearchMemories, MemoriesAnswer, search),
    MemoryTool("get_memory", "Look at a memory", GET, Which, MemoryAnswer, get),
    MemoryTool("update_memory", "Change a memory", UPDATE, asked.UpdateMemory, MemoryAnswer, update, **CHANGES),
    MemoryTool("delete_memory", "Delete a memory", DELETE, Which, DeletedAnswer, delete, **CHANGES),
    MemoryTool("get_memory_stats", "Memories in figures", STATS, Nothing, MemoryStatsAnswer, stats),
)
