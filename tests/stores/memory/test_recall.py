"""What search stands on: nothing is left of what is gone, what is read and when, and the ways among a great many."""

from collections.abc import Sequence
from datetime import timedelta

import anyio
import numpy as np
import pytest
from sqlalchemy import func, select
from structlog.testing import capture_logs

from frontdesk.db.schema import (
    people,
    recall_cells,
    recall_docs,
    recall_loose,
    recall_regions,
    recall_words,
    timeline_items,
)
from frontdesk.embedding.port import Vectors
from frontdesk.errors import Invalid, Unavailable
from frontdesk.memory.activities.service import Activities
from frontdesk.memory.categories.service import Categories
from frontdesk.memory.memories import making
from frontdesk.memory.memories.service import Memories
from frontdesk.memory.model import ItemStatus, ItemType
from frontdesk.memory.people.store import erase
from frontdesk.memory.recall import finding
from frontdesk.memory.recall import store as recall_store
from frontdesk.memory.recall.looking import store as looking
from frontdesk.memory.recall.meaning import store as meaning
from frontdesk.memory.recall.meaning import tree
from frontdesk.memory.recall.meaning.packing import Bag
from frontdesk.memory.recall.model import Query, Tie, Way
from frontdesk.memory.recall.postings import packing
from frontdesk.memory.recall.postings import store as postings
from frontdesk.memory.recall.reading import Reader
from frontdesk.memory.recall.service import Recall
from frontdesk.memory.recall.store import LOOSE
from frontdesk.memory.store import Mine, Records
from frontdesk.memory.tasks.service import Tasks
from tests.stores.memory.conftest import ANN, BOB, NOON, Clock

pytestmark = pytest.mark.anyio
KINDS = ("sea", "sky", "fire", "stone")


class Kinds:
    """An embedder that knows four things and how near to each a text is, by the words it holds."""

    name = "kinds"

    def __init__(self) -> None:
        self.away = False
        self.read = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.away:
            raise Unavailable("The embedder is away")
        self.read += len(texts)
        found = np.array([[0.05 + text.count(kind) for kind in KINDS] for text in texts], np.float32).reshape(-1, 4)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    async def close(self) -> None:
        """Nothing is held."""


def _word(number: int) -> str:
    """A word of its own for each number."""
    return "".join("bcdfghjklm"[int(digit)] for digit in str(number)) + "oz"


def _rows(mine: Mine) -> dict[str, int]:
    """How many rows there are of what search stands on, and of vectors in cells."""
    tables = (recall_docs, recall_loose, recall_words)
    found = {table.name: _count(mine, table.c.user_id) for table in tables}
    cells = mine.connection.execute(select(recall_cells.c.vectors).where(recall_cells.c.user_id == mine.user_id))
    return found | {"vectors": sum(len(Bag.read([packed], 4)) for packed in cells.scalars())}


def _count(mine: Mine, whose: object) -> int:
    return mine.connection.execute(select(func.count()).where(whose == mine.user_id)).scalar_one()  # pyright: ignore[reportArgumentType] - a column


def _person(mine: Mine) -> tuple[int, int]:
    row = mine.connection.execute(select(people.c.found, people.c.unread).where(people.c.user_id == mine.user_id)).one()
    return row.found, row.unread


async def _texts(recall: Recall, **asked: object) -> list[str]:
    return [hit.text for hit in await recall.search(ANN, Query(**asked))]  # pyright: ignore[reportArgumentType] - of a Query


async def test_nothing_is_left_of_what_is_gone_and_counts_stay_right(records: Records) -> None:
    memories, reader = Memories(records), Reader(records, Kinds())
    made = [await memories.create(ANN, {"note": f"sea {_word(number)}"}) for number in range(LOOSE + 6)]
    assert await records.read(ANN, _person) == (LOOSE + 6, LOOSE + 6)
    await reader.read_all()
    assert await records.read(ANN, _person) == (LOOSE + 6, 0)
    assert (await records.read(ANN, _rows))["vectors"] == LOOSE + 6
    for memory in made[3:]:
        await memories.delete(ANN, memory.id)
    await memories.update(ANN, made[0].id, {"note": "fire"})
    assert await records.read(ANN, _person) == (3, 1)
    rows = await records.read(ANN, _rows)
    assert rows["vectors"] == 2, "a vector of what was said before is gone at once"
    assert rows["recall_docs"] == 3
    assert rows["recall_loose"] == 1
    assert rows["recall_words"] == 3, "sea, and a word of each"
    await reader.read_all()
    for memory in made[:3]:
        await memories.delete(ANN, memory.id)
    assert await records.read(ANN, _person) == (0, 0)
    assert set((await records.read(ANN, _rows)).values()) == {0}


async def test_a_text_that_stays_the_same_costs_nothing(records: Records) -> None:
    memories, tasks, embedder = Memories(records), Tasks(records), Kinds()
    reader = Reader(records, embedder)
    memory = await memories.create(ANN, {"note": "the sea"})
    task = await tasks.create(ANN, {"title": "look at the sky"})
    await reader.read_all()
    await memories.update(ANN, memory.id, {"salience_score": 0.5})
    await tasks.update(ANN, task.id, {"progress": 50})
    assert await records.read(ANN, _person) == (2, 0)
    await reader.read_all()
    assert embedder.read == 2


async def test_what_is_cleared_is_gone_and_can_be_put_again(records: Records) -> None:
    memories, recall, reader = Memories(records), Recall(records, None), Reader(records, Kinds())
    memory = await memories.create(ANN, {"note": "the sea"})
    await memories.create(BOB, {"note": "the sea"})
    await reader.read_all()
    await records.change(ANN, recall_store.clear)
    assert set((await records.read(ANN, _rows)).values()) == {0}
    assert await _texts(recall, text="sea") == []
    await records.change(ANN, lambda mine: recall_store.put(mine, memory.id, "the sea again"))
    assert await _texts(recall, text="sea") == ["the sea again"]
    assert (await records.read(BOB, _rows))["vectors"] == 1


async def test_memories_written_down_together_are_found_by_each_others_words(records: Records, clock: Clock) -> None:
    memories, recall = Memories(records), Recall(records, None)
    await memories.create(ANN, {"note": "Ben: which instrument do you play?"})
    await memories.create(ANN, {"note": "Mia: the cello, since I was six"})
    clock.forward(timedelta(hours=3))
    await memories.create(ANN, {"note": "Ben: good morning"})
    first, second = await recall.search(ANN, Query(text="instrument", how=Way.FULL_TEXT))
    assert first.words == ["instrument"]
    assert (second.text, second.words, second.beside) == ("Mia: the cello, since I was six", [], ["instrument"])
    assert second.why == "beside what says: instrument"
    assert first.score > second.score > 0


async def test_among_equals_the_newer_and_the_more_salient_comes_first(records: Records) -> None:
    memories, recall = Memories(records), Recall(records, None)
    for note, when, salience in (("a", "2020-01-01", None), ("b", NOON.isoformat(), None), ("c", "2020-06-01", 1.0)):
        fields = {"note": f"the harbour {note}", "captured_at": when, "salience_score": salience}
        await memories.create(ANN, fields)
    [*better, last] = await _texts(recall, text="harbour")
    assert sorted(better) == ["the harbour b", "the harbour c"]
    assert last == "the harbour a"


async def test_the_few_that_are_asked_among_are_found_among_a_great_many(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "FEW", 3)
    monkeypatch.setattr(finding, "DEPTHS", (1,))
    memories, tasks, categories = Memories(records), Tasks(records), Categories(records)
    recall = Recall(records, None)
    category = await categories.create(ANN, {"name": "Boats"})
    await memories.create(ANN, {"note": "harbour of old", "captured_at": "2001-05-01", "category": "boats"})
    await tasks.create(ANN, {"title": "harbour tour", "description": "a long text about many things by the sea"})
    for number in range(12):
        await memories.create(ANN, {"note": f"harbour harbour {number}", "captured_at": f"2026-01-{number + 1:02}"})
    one = {"text": "harbour", "limit": 1}
    assert await _texts(recall, **one, date_from="2001-01-01", date_to="2001-12-31") == ["harbour of old"]
    assert await _texts(recall, **one, category=category.id) == ["harbour of old"]
    [task] = await _texts(recall, **one, types=frozenset({ItemType.TASK}))
    assert task.startswith("harbour tour")
    with pytest.raises(Invalid, match="no category"):
        await recall.search(ANN, Query(text="harbour", category="none"))
    with pytest.raises(Invalid, match="date_from"):
        await recall.search(ANN, Query(text="harbour", date_from="soon"))


async def test_filters_of_memories_and_statuses_leave_out_the_rest(records: Records) -> None:
    memories, activities, recall = Memories(records), Activities(records), Recall(records, None)
    await memories.create(ANN, {"note": "garden plan", "place_name": "Porto", "salience_score": 0.9})
    await memories.create(ANN, {"note": "garden quote", "memory_type": "quote", "emotion_valence": 4})
    put_away = await memories.create(ANN, {"note": "garden shed"})
    await memories.update(ANN, put_away.id, {"status": "archived"})
    await activities.create(ANN, {"title": "garden walk", "activity_type": "walking"})
    assert len(await _texts(recall, text="garden")) == 3
    assert await _texts(recall, text="garden", statuses=frozenset({ItemStatus.ARCHIVED})) == ["garden shed"]
    assert await _texts(recall, text="garden", place_name="porto") == ["garden plan\nPorto"]
    assert await _texts(recall, text="garden", min_salience=0.5) == ["garden plan\nPorto"]
    assert await _texts(recall, text="garden", memory_type="quote") == ["garden quote"]
    valence = {"min_emotion_valence": 3, "max_emotion_valence": 5}
    assert await _texts(recall, text="garden", **valence) == ["garden quote"]
    with pytest.raises(Invalid, match="limit"):
        await recall.search(ANN, Query(text="garden", limit=0))


async def test_of_a_common_word_the_newest_are_found_and_of_a_rare_one_all(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (packing, postings):
        monkeypatch.setattr(module, "BLOCK", 8)
    for name, value in (("FIRST", 1), ("MOST_ITEMS", 24), ("MOST_BLOCKS", 20)):
        monkeypatch.setattr(postings, name, value)

    def plant(mine: Mine) -> None:
        for number in range(2 * LOOSE):
            making.create(mine, {"note": f"common {'rare' if number % 16 == 3 else ''} {_word(number)}"}, None)

    await records.change(ANN, plant, small=False)

    def look(mine: Mine) -> Sequence[packing.Posting]:
        return postings.find(mine, ["common", "rare", _word(5), "none"], 2 * LOOSE)

    common, rare, one = await records.read(ANN, look)
    assert sorted(rare.numbers.tolist()) == list(range(4, 2 * LOOSE, 16))
    assert rare.held_by == LOOSE / 8
    assert set(range(2 * LOOSE - 16, 2 * LOOSE + 1)) <= set(common.numbers.tolist())
    assert len(common.numbers) < LOOSE
    assert abs(common.held_by - 2 * LOOSE) < 20, "told from the newest"
    assert one.numbers.tolist() == [6]


async def test_a_tree_of_many_small_regions_leads_to_every_item(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in ((tree, "CELL", 4), (tree, "REGION", 3), (meaning, "EVERY_ONE", 0)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(meaning, "REGIONS", 4)
    monkeypatch.setattr(meaning, "CELLS", 8)
    embedder, memories = Kinds(), Memories(records)
    notes = [f"{'sea ' * (number % 7)}{'sky ' * (number % 5)}{'fire ' * (number % 3)}stone" for number in range(90)]
    for note in notes:
        await memories.create(ANN, {"note": note})
    await Reader(records, embedder).read_all()
    regions = select(func.count()).where(recall_regions.c.user_id == "ann")
    assert await records.read(ANN, lambda mine: mine.connection.execute(regions).scalar_one()) > 3
    recall = Recall(records, embedder)
    for note in notes[:70:7]:
        [best] = await recall.search(ANN, Query(text=note, how=Way.SEMANTIC, limit=1))
        assert best.meaning is not None
        assert best.meaning > 0.998
    both = await recall.search(ANN, Query(text="sea fire", limit=100))
    assert all(hit.meaning is not None for hit in both), "what lies in no near cell is looked up"


async def test_a_reader_reads_what_comes_and_waits_while_its_embedder_is_away(records: Records) -> None:
    embedder, memories = Kinds(), Memories(records)
    reader, recall = Reader(records, embedder), Recall(records, embedder)
    records.listen(reader.wake)

    async def until_read() -> None:
        with anyio.fail_after(20):
            while (await records.read(ANN, _person))[1]:
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(reader.run)
        await memories.create(ANN, {"note": "the sea"})
        await until_read()
        embedder.away = True
        with capture_logs() as logs:
            await memories.create(ANN, {"note": "the sky"})
            [hit] = await recall.search(ANN, Query(text="sky", limit=1))
        assert (hit.text, hit.meaning) == ("the sky", None)
        assert "recall_without_meaning" in {line["event"] for line in logs}
        embedder.away = False
        await memories.create(ANN, {"note": "the stone"})
        await until_read()
        group.cancel_scope.cancel()
    assert (await records.read(ANN, _rows))["vectors"] == 3
    await Reader(records, None).run()


async def test_who_was_erased_while_they_were_read_does_not_come_to_be_again(records: Records) -> None:
    await Memories(records).create(ANN, {"note": "the sea"})

    class Erasing(Kinds):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            await records.change(ANN, erase)
            return await super().embed(texts)

    await Reader(records, Erasing()).read_all()
    there = select(func.count()).select_from(people).where(people.c.user_id == "ann")
    assert await records.read(ANN, lambda mine: mine.connection.execute(there).scalar_one()) == 0


async def test_what_lies_around_an_item_was_written_down_beside_it_or_is_tied_to_it(records: Records) -> None:
    memories, tasks, recall = Memories(records), Tasks(records), Recall(records, None)
    notes = [await memories.create(ANN, {"note": f"note {number}"}) for number in range(5)]
    trip = await tasks.create(ANN, {"title": "the trip"})
    part = await tasks.create(ANN, {"title": "pack", "parent_task_id": trip.id})
    await memories.anchor(ANN, notes[0].id, {"anchor_item_id": trip.id, "relation": "about"})
    await memories.delete(ANN, notes[3].id)
    around = await recall.around(ANN, [notes[2].id, trip.id, notes[3].id], 1)
    assert [(near.item.title, near.tie) for near in around[notes[2].id]] == [("note 1", Tie.BEFORE)]
    assert {(near.item.title, near.tie) for near in around[trip.id]} == {
        ("note 0", Tie.ANCHORED),
        ("pack", Tie.RELATED),
        ("note 4", Tie.BEFORE),
    }
    assert list(around[notes[3].id]) == []
    assert await recall.around(BOB, [trip.id, part.id], 2) == {trip.id: [], part.id: []}
    with pytest.raises(Invalid, match="depth"):
        await recall.around(ANN, [trip.id], 6)


async def test_people_who_keep_much_at_once_get_a_number_for_each_and_lose_no_word(records: Records) -> None:
    memories, recall = Memories(records), Recall(records, None)
    async with anyio.create_task_group() as group:
        for number in range(LOOSE + 16):
            group.start_soon(memories.create, ANN, {"note": f"lantern number{number}"})
    assert await records.read(ANN, _person) == (LOOSE + 16, LOOSE + 16)
    items = select(func.count()).select_from(timeline_items).where(timeline_items.c.user_id == "ann")
    assert await records.read(ANN, lambda mine: mine.connection.execute(items).scalar_one()) == LOOSE + 16
    found = await recall.search(ANN, Query(text="lantern", limit=100))
    assert len({hit.text for hit in found}) == LOOSE + 16
