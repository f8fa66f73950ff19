"""Defines the tools for memories."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field
from typing_extensions import override

from frontdesk.memory.memories_rules import MemoryFilter, MemoryStats
from frontdesk.memory.model import (
    MAX_SEARCH_LIMIT,
    AnchorRelation,
    ItemSearch,
    ItemStatus,
    ItemType,
    Memory,
    MemoryStatus,
    MemoryType,
    PersonScope,
)
from frontdesk.memory.operations.base import (
    ADDS_HINTS,
    CHANGES_HINTS,
    MAX_LINE,
    Arousal,
    EmptyRequest,
    IdText,
    JsonMetadata,
    Latitude,
    Longitude,
    LongText,
    MemoryRequest,
    MemoryTool,
    MemoryToolResult,
    MinusFiveToFive,
    PagedRequest,
    RecordIdRequest,
    Salience,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    ToolAnswer,
    format_count,
    format_counts,
    format_page,
    format_tags,
    format_time,
    format_when,
    join_lines,
    join_parts,
    labelled_text,
    person_zone,
)
from frontdesk.memory.service import RecordServices
from frontdesk.text import one_line

MAX_TITLE = 500


class HappenedRange(MemoryRequest):
    """A range of time."""

    start: TimeText
    end: TimeText | None = None


class MemoryFields(MemoryRequest):
    """The fields of a memory."""

    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    memory_type: MemoryType | None = None
    emotion_valence: MinusFiveToFive | None = Field(None, description="From -5, very bad, to 5, very good.")
    emotion_arousal: Arousal | None = Field(None, description="From 0, calm, to 5, stirred.")
    energy_delta: MinusFiveToFive | None = Field(None, description="What it took (-5) or gave (5).")
    place_name: ShortText | None = None
    is_highlight: bool | None = None
    salience_score: Salience | None = Field(None, description="How much it matters, from 0 to 1.")
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    tags: Tags | None = None
    expires_at: TimeText | None = Field(None, description="When it is no longer true; it is kept, and no longer found.")


class MemoryContextFields(MemoryFields):
    """The fields of a memory, with its place and times."""

    latitude: Latitude | None = None
    longitude: Longitude | None = None
    happened_range: HappenedRange | None = Field(None, description="When it happened, if not when it was captured.")
    captured_at: TimeText | None = None
    supersedes: IdText | None = Field(
        None, description="The id of a memory that this one replaces: that one is kept, and no longer found."
    )

    @override
    def provided(self, *but: str) -> Mapping[str, Any]:
        return _split_happened_range(super().provided(*but))

    @override
    def changes(self, *but: str) -> Mapping[str, Any]:
        return _split_happened_range(super().changes(*but))


class AddMemory(MemoryContextFields):
    """A new memory."""

    note: LongText = Field(min_length=1, description="What is to be remembered, understandable by itself.")


class UpdateMemory(MemoryFields):
    """Changes of a memory."""

    id: IdText
    note: LongText | None = Field(None, min_length=1)


class MemoryContent(MemoryContextFields):
    """A memory as apps write it, with a title, a note or both; null removes a value."""

    note: LongText | None = None
    description: LongText | None = Field(None, description="Another name for the note.")
    status: MemoryStatus | None = None
    metadata: JsonMetadata | None = None


class AnchorContent(MemoryRequest):
    """An anchor of a memory to a task, an activity or another item. The same relation again is a change."""

    anchor_item_id: IdText
    relation: AnchorRelation | None = Field(None, description="about, unless said otherwise.")
    local_start: TimeText | None = None
    local_end: TimeText | None = None
    weight: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    notes: LongText | None = None


class SearchMemories(PagedRequest):
    """Filters of memories."""

    memory_type: MemoryType | None = None
    status: MemoryStatus | None = None
    is_highlight: bool | None = None
    search: ShortText | None = Field(
        None, description="What they are about, in plain words: found by words and meaning."
    )
    tags: Tags | None = Field(None, description="Any of these, comma separated.")
    place_name: ShortText | None = None
    min_emotion_valence: MinusFiveToFive | None = None
    max_emotion_valence: MinusFiveToFive | None = None
    min_salience: Salience | None = None
    captured_from: TimeText | None = None
    captured_to: TimeText | None = None
    near_lat: Latitude | None = None
    near_lng: Longitude | None = None
    distance_km: float | None = Field(None, gt=0, le=20_100, allow_inf_nan=False)
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    sort_by: Literal["captured_at", "happened_at", "salience_score", "emotion_valence", "updated_at"] | None = Field(
        None, description="The best match first where `search` is given, otherwise the last captured."
    )
    sort_order: SortOrder = "desc"


def _split_happened_range(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Split the range of time into its two ends."""
    if "happened_range" not in fields:
        return fields
    happened: Mapping[str, Any] = fields["happened_range"] or {}
    others = {name: value for name, value in fields.items() if name != "happened_range"}
    return {**others, "happened_start": happened.get("start"), "happened_end": happened.get("end")}


def format_memory_line(memory: Memory, zone: ZoneInfo) -> str:
    """A memory on two lines: what it is, and how its note begins."""
    begins = one_line(memory.note, MAX_LINE)
    return join_lines(
        f"- {memory.title} (id {memory.id}): {_format_status(memory, zone)}",
        f"  {begins}" if begins and begins != memory.title else "",
    )


def format_memory(memory: Memory, zone: ZoneInfo) -> str:
    """A memory with everything that is known of it."""
    return join_lines(
        f"{memory.title} (id {memory.id}): {_format_status(memory, zone)}",
        labelled_text("Note", "" if memory.note == memory.title else memory.note),
        _format_feeling(memory),
        f"Category {memory.category_id}" if memory.category_id else "",
        f"It replaced {memory.supersedes}." if memory.supersedes else "",
        f"It was replaced by {memory.superseded_by}; use that one." if memory.superseded_by else "",
        f"True until {format_time(memory.expires_at, zone)}." if memory.expires_at else "",
    )


def format_memory_stats(found: MemoryStats) -> str:
    averages = (("valence", found.average_valence, "of -5 to 5"), ("salience", found.average_salience, "of 0 to 1"))
    said = join_parts(f"{name} {value:g} {scale}" for name, value, scale in averages if value is not None)
    return join_lines(
        f"{format_count(found.total, 'memory', 'memories')}, {format_count(found.highlights, 'highlight')}; "
        f"{found.this_week:,} this week, {found.this_month:,} this month",
        format_counts("By type", found.by_type),
        format_counts("By place", found.by_place),
        format_counts("By tag", found.by_tag),
        f"On average: {said}" if said else "",
        f"Kept, and no longer found: {found.superseded:,} superseded, {found.expired:,} expired"
        if found.superseded or found.expired
        else "",
    )


def _format_status(memory: Memory, zone: ZoneInfo) -> str:
    return join_parts(
        [
            memory.memory_type,
            "" if memory.status is MemoryStatus.ACTIVE else memory.status,
            "highlight" if memory.is_highlight else "",
            f"captured {format_time(memory.captured_at, zone)}",
            f"happened {format_when(memory.happened_start, memory.happened_end, zone)}"
            if memory.happened_start
            else "",
            f"at {memory.place_name}" if memory.place_name else "",
            f"salience {memory.salience_score:g}" if memory.salience_score is not None else "",
            format_tags(memory.tags),
        ]
    )


def _format_feeling(memory: Memory) -> str:
    scales = (
        ("valence", memory.emotion_valence, "of -5 to 5"),
        ("arousal", memory.emotion_arousal, "of 0 to 5"),
        ("energy", memory.energy_delta, "of -5 to 5"),
    )
    said = join_parts(f"{name} {value} {scale}" for name, value, scale in scales if value is not None)
    return f"Felt: {said}" if said else ""


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


async def add_memory_tool(services: RecordServices, scope: PersonScope, given: AddMemory) -> MemoryToolResult:
    return await _memory_result(services, scope, await services.memories.create(scope, given.provided()), "Remembered.")


async def search_memories_tool(
    services: RecordServices, scope: PersonScope, request: SearchMemories
) -> MemoryToolResult:
    wanted = MemoryFilter(**request.provided("search", "limit", "offset"), limit=request.limit, offset=request.offset)
    if request.search:
        query = _item_search(request, request.search)
        found = await services.search.list_memories(scope, query, wanted, best_first=request.sort_by is None)
        page, zone = found.page, found.zone
    else:
        page, zone = await services.memories.list(scope, wanted), await person_zone(services, scope)
    text = format_page(page, partial(format_memory_line, zone=zone), "memory", "memories", none=NO_MEMORIES)
    answer = MemoriesAnswer(memories=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return MemoryToolResult(text, answer)


async def get_memory_tool(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> MemoryToolResult:
    return await _memory_result(services, scope, await services.memories.get(scope, request.id))


async def update_memory_tool(services: RecordServices, scope: PersonScope, given: UpdateMemory) -> MemoryToolResult:
    return await _memory_result(
        services, scope, await services.memories.update(scope, given.id, given.provided("id")), "Changed."
    )


async def delete_memory_tool(
    services: RecordServices, scope: PersonScope, request: RecordIdRequest
) -> MemoryToolResult:
    await services.memories.delete(scope, request.id)
    return MemoryToolResult(
        f"The memory {request.id} is deleted, and no longer found.", DeletedAnswer(id=request.id, deleted=True)
    )


async def memory_stats_tool(services: RecordServices, scope: PersonScope, _given: EmptyRequest) -> MemoryToolResult:
    figures = await services.memories.stats(scope)
    return MemoryToolResult(format_memory_stats(figures), MemoryStatsAnswer(stats=figures))


async def _memory_result(
    services: RecordServices, scope: PersonScope, memory: Memory, first: str = ""
) -> MemoryToolResult:
    text = join_lines(first, format_memory(memory, await person_zone(services, scope)))
    return MemoryToolResult(text, MemoryAnswer(memory=memory))


MEMORY_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool("add_memory", "Remember something", ADD_MEMORY, AddMemory, MemoryAnswer, add_memory_tool, **ADDS_HINTS),
    MemoryTool(
        "search_memories", "Find memories", SEARCH_MEMORIES, SearchMemories, MemoriesAnswer, search_memories_tool
    ),
    MemoryTool("get_memory", "Look at a memory", GET_MEMORY, RecordIdRequest, MemoryAnswer, get_memory_tool),
    MemoryTool(
        "update_memory",
        "Change a memory",
        UPDATE_MEMORY,
        UpdateMemory,
        MemoryAnswer,
        update_memory_tool,
        **CHANGES_HINTS,
    ),
    MemoryTool(
        "delete_memory",
        "Delete a memory",
        DELETE_MEMORY,
        RecordIdRequest,
        DeletedAnswer,
        delete_memory_tool,
        **CHANGES_HINTS,
    ),
    MemoryTool(
        "get_memory_stats", "Memories in figures", GET_MEMORY_STATS, EmptyRequest, MemoryStatsAnswer, memory_stats_tool
    ),
)
