"""Tests memories on both databases: created, superseded, expired, found and linked to other records."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from frontdesk.errors import Conflict, Invalid, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.memories_rules import MemoryFilter
from frontdesk.memory.model import Anchor, AnchorRelation, Memory, MemoryStatus, MemoryType, PersonScope
from frontdesk.memory.people import PersonDataService
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.timeline import TimelineService
from frontdesk.memory.validation import RecordPage

ANN, BOB = PersonScope("ann", "scribe"), PersonScope("bob")
NOWHERE = "01890000-0000-7000-8000-000000000000"
BERLIN = "Europe/Berlin"


@pytest.fixture
def memories(records: PersonDatabase) -> MemoryService:
    return MemoryService(records)


def titles(page: RecordPage[Memory] | Sequence[Memory]) -> list[str]:
    return [memory.title for memory in (page.items if isinstance(page, RecordPage) else page)]


async def listed(memories: MemoryService, scope: PersonScope = ANN, **wanted: Any) -> list[str]:
    return titles(await memories.list(scope, MemoryFilter(**wanted)))


async def test_everything_that_is_said_of_a_memory_is_kept(records: PersonDatabase, memories: MemoryService) -> None:
    category = await CategoryService(records).create(ANN, {"name": "Travel"})
    before = datetime.now(UTC)
    made = await memories.create(
        ANN,
        {
            "note": "\n  The ferry to Föhr was late,\nand nobody minded.",
            "memory_type": "insight",
            "emotion_valence": 4,
            "emotion_arousal": 1,
            "energy_delta": -2,
            "place_name": "Dagebüll",
            "latitude": 54.73,
            "longitude": 8.69,
            "is_highlight": True,
            "salience_score": 0.75,
            "category_id": "TRAVEL",
            "tags": ["ferry", "North  Sea", "ferry"],
            "happened_start": "2026-07-01",
            "happened_end": "2026-07-02",
            "expires_at": "2099-01-01",
            "metadata": {"source": "postcard"},
        },
        BERLIN,
    )
    kept = await memories.get(ANN, made.id.upper())
    assert kept.title == "The ferry to Föhr was late,"
    assert kept.note == "\n  The ferry to Föhr was late,\nand nobody minded."
    assert (kept.memory_type, kept.status, kept.is_highlight) == (MemoryType.INSIGHT, MemoryStatus.ACTIVE, True)
    assert (kept.emotion_valence, kept.emotion_arousal, kept.energy_delta, kept.salience_score) == (4, 1, -2, 0.75)
    assert (kept.place_name, kept.latitude, kept.longitude) == ("Dagebüll", 54.73, 8.69)
    assert (kept.category_id, kept.tags, kept.agent_id) == (category.id, ("ferry", "North Sea"), "scribe")
    assert kept.metadata == {"source": "postcard"}
    assert kept.happened_start == datetime(2026, 6, 30, 22, tzinfo=UTC)
    assert kept.happened_end == datetime(2026, 7, 2, 21, 59, 59, tzinfo=UTC)
    assert kept.expires_at == datetime(2099, 1, 1, 22, 59, 59, tzinfo=UTC)
    assert before <= kept.captured_at == kept.created_at == kept.updated_at


async def test_a_title_is_made_from_the_note_and_follows_it(memories: MemoryService) -> None:
    long = await memories.create(ANN, {"note": "word " * 40})
    assert len(long.title) <= 80
    assert long.title.endswith("…")
    named = await memories.create(ANN, {"title": "Just a name"})
    assert (named.title, named.note) == ("Just a name", "")
    changed = await memories.update(ANN, long.id, {"note": "Short now"})
    assert changed.title == "Short now"
    changed = await memories.update(ANN, long.id, {"title": "My own", "note": "Longer again"})
    assert (await memories.update(ANN, long.id, {"note": "And again"})).title == "My own"
    assert (await memories.update(ANN, long.id, {"title": None})).title == "And again"
    described = await memories.create(ANN, {"title": "T", "description": "Another name for the note"})
    assert described.note == "Another name for the note"
    for nothing in ({}, {"note": " \n "}, {"title": "  "}):
        with pytest.raises(Invalid, match="needs a note"):
            await memories.create(ANN, nothing)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"emotion_valence": 6}, "emotion_valence must be from -5 to 5"),
        ({"emotion_arousal": -1}, "emotion_arousal must be from 0 to 5"),
        ({"energy_delta": -6}, "energy_delta"),
        ({"salience_score": 1.01}, "salience_score must be from 0 to 1"),
        ({"salience_score": float("nan")}, "salience_score"),
        ({"latitude": 91, "longitude": 0}, "latitude"),
        ({"latitude": 1}, "belong together"),
        ({"title": "t" * 501}, "title must have"),
        ({"place_name": "p" * 301}, "place_name"),
        ({"memory_type": "dream"}, "memory_type is note, link"),
        ({"happened_end": "2026-01-01"}, "has a start"),
        ({"happened_start": "2026-01-02", "happened_end": "2026-01-01"}, "must be after"),
        ({"captured_at": "yesterday"}, "captured_at must be a day"),
        ({"category_id": "Nope"}, "There is no category 'Nope'"),
        ({"superseded_by": NOWHERE}, "There is no field superseded_by"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_of_it_kept(
    memories: MemoryService, wrong: dict[str, Any], said: str
) -> None:
    kept = await memories.create(ANN, {"note": "kept"})
    for attempt in (memories.create(ANN, {"note": "n", **wrong}), memories.update(ANN, kept.id, wrong)):
        with pytest.raises(Invalid, match=said):
            await attempt
    assert await memories.list(ANN, MemoryFilter()) == RecordPage([kept], 1)


async def test_a_change_touches_what_it_names_and_null_takes_away(memories: MemoryService) -> None:
    made = await memories.create(
        ANN, {"note": "n", "tags": ["a"], "place_name": "here", "emotion_valence": 3, "metadata": {"k": 1}}
    )
    changed = await memories.update(ANN, made.id, {"emotion_valence": -1, "is_highlight": True})
    assert (changed.emotion_valence, changed.is_highlight, changed.tags) == (-1, True, ("a",))
    assert (changed.place_name, changed.metadata, changed.created_at) == ("here", {"k": 1}, made.created_at)
    cleared = await memories.update(
        ANN, made.id, {"emotion_valence": None, "tags": None, "place_name": None, "metadata": None}
    )
    assert (cleared.emotion_valence, cleared.tags, cleared.place_name, cleared.metadata) == (None, (), None, {})
    assert await memories.get(ANN, made.id) == cleared
    for name in ("captured_at", "memory_type", "is_highlight", "status"):
        with pytest.raises(Invalid, match=f"{name} cannot be empty"):
            await memories.update(ANN, made.id, {name: None})


async def test_what_is_superseded_is_kept_and_found_only_when_asked_for(memories: MemoryService) -> None:
    first = await memories.create(ANN, {"note": "Lives in Bonn"})
    second = await memories.create(ANN, {"note": "Lives in Berlin", "supersedes": first.id})
    assert second.supersedes == first.id
    assert await listed(memories) == ["Lives in Berlin"]
    assert await listed(memories, search="bonn") == []
    assert await listed(memories, search="lives", include_superseded=True) == ["Lives in Berlin", "Lives in Bonn"]
    assert (await memories.get(ANN, first.id)).superseded_by == second.id
    with pytest.raises(Conflict, match=second.id):
        await memories.create(ANN, {"note": "Lives in Kiel", "supersedes": first.id})
    with pytest.raises(NotFound):
        await memories.create(ANN, {"note": "Lives in Kiel", "supersedes": NOWHERE})
    assert len((await memories.list(ANN, MemoryFilter(include_superseded=True))).items) == 2


async def test_of_changes_that_come_at_once_none_is_lost_and_one_alone_supersedes(memories: MemoryService) -> None:
    made = await memories.create(ANN, {"note": "n"})
    changes = {"emotion_valence": 3, "place_name": "here", "salience_score": 0.5, "is_highlight": True, "tags": ("t",)}
    refused: list[str] = []

    async def supersede() -> None:
        try:
            await memories.create(ANN, {"note": "newer", "supersedes": made.id})
        except Conflict as error:
            refused.append(str(error))

    async with anyio.create_task_group() as group:
        for name, value in changes.items():
            group.start_soon(memories.update, ANN, made.id, {name: value})
            group.start_soon(supersede)
    kept = await memories.get(ANN, made.id)
    assert {name: getattr(kept, name) for name in changes} == changes
    assert len(refused) == len(changes) - 1
    assert await listed(memories) == ["newer"]


async def test_a_line_of_memories_closes_where_one_is_taken_out(memories: MemoryService) -> None:
    one, two = [await memories.create(ANN, {"note": note}) for note in ("one", "two")]
    two = await memories.update(ANN, two.id, {"supersedes": one.id})
    three = await memories.create(ANN, {"note": "three", "supersedes": two.id})
    with pytest.raises(Conflict, match="superseded already"):
        await memories.update(ANN, one.id, {"supersedes": three.id})
    with pytest.raises(Invalid, match="itself"):
        await memories.update(ANN, three.id, {"supersedes": three.id})
    await memories.delete(ANN, two.id)
    assert (await memories.get(ANN, one.id)).superseded_by == three.id
    assert (await memories.get(ANN, three.id)).supersedes == one.id
    assert await listed(memories) == ["three"]
    await memories.update(ANN, three.id, {"status": "deleted"})
    assert await listed(memories) == ["one"]
    four = await memories.create(ANN, {"note": "four", "supersedes": one.id})
    assert (await memories.update(ANN, four.id, {"supersedes": None})).supersedes is None
    assert await listed(memories, sort_order="asc") == ["one", "four"]


async def test_what_has_expired_is_kept_and_found_only_when_asked_for(memories: MemoryService) -> None:
    with pytest.raises(Invalid, match="lies in the past"):
        await memories.create(ANN, {"note": "The code is 1234", "expires_at": "2020-01-01"})
    made = await memories.create(ANN, {"note": "The code is 1234", "expires_at": "2099-12-31"})
    assert await listed(memories) == ["The code is 1234"]
    past = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    await memories.update(ANN, made.id, {"expires_at": past})
    assert await listed(memories) == []
    assert await listed(memories, include_expired=True) == ["The code is 1234"]
    assert (await memories.get(ANN, made.id)).note == "The code is 1234"
    await memories.update(ANN, made.id, {"expires_at": None})
    assert await listed(memories) == ["The code is 1234"]


async def test_a_deleted_memory_is_shown_only_to_a_caller_that_asks_for_deleted_ones(
    records: PersonDatabase, memories: MemoryService
) -> None:
    made = await memories.create(ANN, {"note": "forget me"})
    await memories.delete(ANN, made.id)
    assert await listed(memories) == []
    assert await listed(memories, search="forget") == []
    assert await listed(memories, status=MemoryStatus.DELETED) == ["forget me"]
    for attempt in (
        memories.get(ANN, made.id),
        memories.delete(ANN, made.id),
        memories.update(ANN, made.id, {"note": "x"}),
        TimelineService(records, TaskService(records)).get(ANN, made.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    back = await memories.update(ANN, made.id, {"status": "archived"})
    assert back.status is MemoryStatus.ARCHIVED
    assert await listed(memories, status=MemoryStatus.ARCHIVED) == ["forget me"]


async def filled(records: PersonDatabase, memories: MemoryService) -> None:
    await CategoryService(records).create(ANN, {"name": "Food"})
    for day, (note, more) in enumerate(
        [
            ("Äpfel vom Markt", {"tags": ["Obst", "markt"], "emotion_valence": 2, "category_id": "food"}),
            ("Birnen", {"tags": ["obst"], "place_name": "Old MARKET 50%", "is_highlight": True, "salience_score": 0.9}),
            ("A link", {"memory_type": "link", "emotion_valence": -4, "salience_score": 0.2}),
            ("Plain", {"title": "ΣΟΦΙΑ", "happened_start": "2020-01-01"}),
        ]
    ):
        await memories.create(ANN, {"note": note, "captured_at": f"2026-03-0{day + 1}T12:00:00Z", **more})


async def test_memories_are_found_by_what_is_asked(records: PersonDatabase, memories: MemoryService) -> None:
    await filled(records, memories)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["ΣΟΦΙΑ", "A link", "Birnen", "Äpfel vom Markt"]),
        ({"memory_type": MemoryType.LINK}, ["A link"]),
        ({"is_highlight": True}, ["Birnen"]),
        ({"is_highlight": False, "sort_order": "asc"}, ["Äpfel vom Markt", "A link", "ΣΟΦΙΑ"]),
        ({"search": "äPFEL markt"}, ["Äpfel vom Markt"]),
        ({"search": "ÄPFEL"}, ["Äpfel vom Markt"]),
        ({"search": "σοφια plain"}, ["ΣΟΦΙΑ"]),
        ({"search": "obst", "sort_order": "asc"}, ["Äpfel vom Markt", "Birnen"]),
        ({"search": "market"}, ["Birnen"]),
        ({"search": "50%"}, ["Birnen"]),
        ({"search": "%"}, ["Birnen"]),
        ({"search": "_"}, []),
        ({"tags": ["OBST"]}, ["Birnen", "Äpfel vom Markt"]),
        ({"tags": ["obst", "markt"]}, ["Birnen", "Äpfel vom Markt"]),
        ({"tags": ["obst", "markt"], "every_tag": True}, ["Äpfel vom Markt"]),
        ({"tags": ["obs"]}, []),
        ({"place_name": "old market"}, ["Birnen"]),
        ({"min_emotion_valence": 0}, ["Äpfel vom Markt"]),
        ({"max_emotion_valence": 0}, ["A link"]),
        ({"min_salience": 0.9}, ["Birnen"]),
        ({"category_id": "FOOD"}, ["Äpfel vom Markt"]),
        ({"captured_from": "2026-03-02", "captured_to": "2026-03-03"}, ["A link", "Birnen"]),
        ({"captured_to": "2026-03-02T12:00:00Z"}, ["Birnen", "Äpfel vom Markt"]),
        ({"captured_to": "2026-03-02", "timezone": "Pacific/Kiritimati"}, ["Äpfel vom Markt"]),
        ({"sort_by": "happened_at"}, ["A link", "Birnen", "Äpfel vom Markt", "ΣΟΦΙΑ"]),
        ({"sort_by": "salience_score", "limit": 2}, ["Birnen", "A link"]),
        ({"sort_by": "salience_score", "sort_order": "asc", "limit": 2}, ["A link", "Birnen"]),
        ({"sort_by": "emotion_valence", "limit": 2}, ["Äpfel vom Markt", "A link"]),
        ({"sort_by": "updated_at", "limit": 1}, ["ΣΟΦΙΑ"]),
        ({"sort_by": "created_at", "sort_order": "asc", "limit": 1}, ["Äpfel vom Markt"]),
    ]
    for wanted, found in cases:
        assert (wanted, await listed(memories, **wanted)) == (wanted, found)
    wrongs: list[dict[str, Any]] = [
        {"sort_by": "mood"},
        {"limit": 0},
        {"limit": 1001},
        {"offset": -1},
        {"category_id": "?"},
    ]
    for wrong in wrongs:
        with pytest.raises(Invalid):
            await listed(memories, **wrong)


async def test_a_page_says_how_many_there_are_in_all(memories: MemoryService) -> None:
    for number in range(5):
        await memories.create(ANN, {"note": f"{number}"})
    first = await memories.list(ANN, MemoryFilter(limit=2, sort_order="asc"))
    assert (titles(first), first.total, first.has_more) == (["0", "1"], 5, True)
    last = await memories.list(ANN, MemoryFilter(limit=2, offset=4, sort_order="asc"))
    assert (titles(last), last.total, last.has_more) == (["4"], 5, False)
    beyond = await memories.list(ANN, MemoryFilter(limit=2, offset=9))
    assert (titles(beyond), beyond.total, beyond.has_more) == ([], 5, False)


async def test_what_is_near_is_found_by_true_distance_and_paged(memories: MemoryService) -> None:
    places = {
        "Brandenburg Gate": (52.5163, 13.3777),
        "Alexanderplatz": (52.5219, 13.4132),
        "Potsdam": (52.3906, 13.0645),
        # In the box of 27 km around the tower, and farther away.
        "A corner": (52.7400, 13.7400),
        "Fiji, west": (-16.8, 179.9),
        "Fiji, east": (-16.8, -179.9),
        "North Pole": (90.0, 0.0),
    }
    for name, (latitude, longitude) in places.items():
        await memories.create(ANN, {"title": name, "latitude": latitude, "longitude": longitude})
    await memories.create(ANN, {"title": "Nowhere"})
    gate: dict[str, Any] = {"near_lat": 52.5163, "near_lng": 13.3777, "sort_order": "asc"}
    assert await listed(memories, **gate) == ["Brandenburg Gate", "Alexanderplatz"]
    assert await listed(memories, **gate, distance_km=27) == ["Brandenburg Gate", "Alexanderplatz", "Potsdam"]
    page = await memories.list(ANN, MemoryFilter(**gate, distance_km=27, limit=1, offset=1))
    assert (titles(page), page.total, page.has_more) == (["Alexanderplatz"], 3, True)
    assert await listed(memories, near_lat=-16.8, near_lng=180, distance_km=20) == ["Fiji, east", "Fiji, west"]
    assert await listed(memories, near_lat=89.95, near_lng=120, distance_km=20) == ["North Pole"]
    assert len(await listed(memories, near_lat=0, near_lng=0, distance_km=30_000)) == len(places)
    wrongs: list[dict[str, Any]] = [
        {"near_lat": 1},
        {"distance_km": 5},
        {"near_lat": 1, "near_lng": 1, "distance_km": 0},
    ]
    for wrong in wrongs:
        with pytest.raises(Invalid):
            await listed(memories, **wrong)


async def test_stats_are_those_of_memories(records: PersonDatabase, memories: MemoryService) -> None:
    await PersonDataService(records).set_zone(ANN, BERLIN)
    old = await memories.create(ANN, {"note": "old", "captured_at": "2020-01-01", "place_name": "Rome"})
    await memories.create(ANN, {"note": "a", "tags": ["X", "y"], "emotion_valence": 4, "place_name": "Rome"})
    await memories.create(
        ANN, {"note": "b", "tags": ["x"], "emotion_valence": -1, "is_highlight": True, "memory_type": "quote"}
    )
    await memories.create(ANN, {"note": "c", "salience_score": 0.5, "status": "archived", "place_name": "Oslo"})
    gone = await memories.create(ANN, {"note": "gone"})
    await memories.delete(ANN, gone.id)
    await memories.create(ANN, {"note": "new", "supersedes": old.id})
    stats = await memories.stats(ANN)
    assert (stats.total, stats.superseded, stats.expired, stats.highlights) == (4, 1, 0, 1)
    assert stats.by_type == {"note": 3, "quote": 1}
    assert stats.by_status == {"active": 3, "archived": 1}
    assert (stats.average_valence, stats.average_salience) == (1.5, 0.5)
    assert stats.by_place == {"Oslo": 1, "Rome": 1}
    assert stats.by_tag == {"x": 2, "y": 1}
    assert (stats.this_week, stats.this_month) == (4, 4)
    empty = await memories.stats(BOB)
    assert (empty.total, empty.average_valence, empty.by_tag, empty.this_week) == (0, None, {}, 0)


async def test_a_memory_is_anchored_once_for_each_relation(records: PersonDatabase, memories: MemoryService) -> None:
    habit = await TimelineService(records, TaskService(records)).create(ANN, {"type": "habit", "title": "Swim"})
    memory = await memories.create(ANN, {"note": "Cold today"})
    first = await memories.anchor(
        ANN, memory.id, {"anchor_item_id": habit.id, "local_start": "2026-01-01", "notes": "why"}, BERLIN
    )
    assert (first.relation, first.weight, first.notes) == (AnchorRelation.ABOUT, 1.0, "why")
    assert first.local_start == datetime(2025, 12, 31, 23, tzinfo=UTC)
    heavier = await memories.anchor(ANN, memory.id, {"anchor_item_id": habit.id, "weight": 7.5})
    assert (heavier.weight, heavier.notes, heavier.created_at) == (7.5, "why", first.created_at)
    other = await memories.anchor(ANN, memory.id, {"anchor_item_id": habit.id, "relation": "result_of"})
    assert await memories.anchors(ANN, memory.id) == [heavier, other]
    assert [(one.anchor, one.memory.id) for one in await memories.anchored_to(ANN, habit.id)] == [
        (heavier, memory.id),
        (other, memory.id),
    ]
    await memories.unanchor(ANN, memory.id, habit.id, "about")
    assert await memories.anchors(ANN, memory.id) == [other]
    await memories.unanchor(ANN, memory.id, habit.id)
    with pytest.raises(NotFound, match="Anchor not found"):
        await memories.unanchor(ANN, memory.id, habit.id)


async def test_an_anchor_goes_to_an_item_of_ones_own_that_is_no_memory(
    records: PersonDatabase, memories: MemoryService
) -> None:
    memory = await memories.create(ANN, {"note": "n"})
    habit = await TimelineService(records, TaskService(records)).create(ANN, {"type": "habit", "title": "h"})
    hers = await TimelineService(records, TaskService(records)).create(BOB, {"type": "habit", "title": "his"})
    for item_id in (hers.id, NOWHERE, "", "nothing"):
        with pytest.raises(NotFound, match="Timeline item not found"):
            await memories.anchor(ANN, memory.id, {"anchor_item_id": item_id})
    for wrong in ({"weight": 10.5}, {"weight": -1}, {"relation": "near"}, {"anchor_item_id": memory.id}):
        with pytest.raises(Invalid):
            await memories.anchor(ANN, memory.id, {"anchor_item_id": habit.id, **wrong})
    with pytest.raises(Invalid, match="local_end"):
        await memories.anchor(
            ANN, memory.id, {"anchor_item_id": habit.id, "local_start": "2026-01-02", "local_end": "2026-01-01"}
        )
    await memories.anchor(ANN, memory.id, {"anchor_item_id": habit.id})
    await memories.delete(ANN, memory.id)
    assert await memories.anchored_to(ANN, habit.id) == []


async def test_nobody_reaches_the_memories_of_somebody_else(records: PersonDatabase, memories: MemoryService) -> None:
    habit = await TimelineService(records, TaskService(records)).create(ANN, {"type": "habit", "title": "h"})
    made = await memories.create(ANN, {"note": "mine", "latitude": 1, "longitude": 1})
    anchor: Anchor = await memories.anchor(ANN, made.id, {"anchor_item_id": habit.id})
    bobs = await memories.create(BOB, {"note": "his"})
    for attempt in (
        memories.get(BOB, made.id),
        memories.update(BOB, made.id, {"note": "x"}),
        memories.update(BOB, made.id, {"status": "active"}),
        memories.delete(BOB, made.id),
        memories.create(BOB, {"note": "x", "supersedes": made.id}),
        memories.update(BOB, bobs.id, {"supersedes": made.id}),
        memories.anchor(BOB, made.id, {"anchor_item_id": habit.id}),
        memories.anchor(BOB, bobs.id, {"anchor_item_id": habit.id}),
        memories.anchors(BOB, made.id),
        memories.anchored_to(BOB, habit.id),
        memories.unanchor(BOB, made.id, habit.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await listed(memories, BOB) == ["his"]
    assert await listed(memories, BOB, search="mine", include_superseded=True, include_expired=True) == []
    assert await listed(memories, BOB, near_lat=1, near_lng=1) == []
    assert await memories.get(ANN, made.id) == made
    assert await memories.anchors(ANN, made.id) == [anchor]


async def test_each_right_opens_its_own_methods(memories: MemoryService) -> None:
    reader, writer = (
        PersonScope("ann", None, frozenset({right})) for right in (rights.MEMORIES_READ, rights.MEMORIES_WRITE)
    )
    made = await memories.create(writer, {"note": "n"})
    assert await memories.get(reader, made.id) == made
    for attempt in (
        memories.create(reader, {"note": "n"}),
        memories.update(reader, made.id, {}),
        memories.delete(reader, made.id),
        memories.anchor(reader, made.id, {}),
        memories.unanchor(reader, made.id, made.id),
        memories.get(writer, made.id),
        memories.list(writer, MemoryFilter()),
        memories.stats(writer),
        memories.anchors(writer, made.id),
        memories.anchored_to(writer, made.id),
    ):
        with pytest.raises(MissingScope):
            await attempt
