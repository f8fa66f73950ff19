"""Tests search among a person's records by words and by meaning, and its index."""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import sha256

import anyio
import numpy as np
import pytest
from sqlalchemy import Connection, func, select
from structlog.testing import capture_logs
from typing_extensions import override

from frontdesk.db.engine import Database
from frontdesk.db.schema import (
    people,
    recall_cells,
    recall_docs,
    recall_loose,
    recall_regions,
    recall_words,
    timeline_items,
)
from frontdesk.embedding import Vectors
from frontdesk.embedding.builtin import BuiltinEmbedder
from frontdesk.errors import Invalid, MissingScope, Unavailable
from frontdesk.memory.activities import ActivityService
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.memories import MemoryService, create_memory
from frontdesk.memory.memories_rules import MemoryFilter
from frontdesk.memory.model import ContextRelation, ItemSearch, ItemStatus, ItemType, PersonScope, SearchMode
from frontdesk.memory.people_store import erase_person
from frontdesk.memory.search import index_store as postings
from frontdesk.memory.search import query_store, service, vectors_store
from frontdesk.memory.search import vectors_store as tree
from frontdesk.memory.search.index_store import FOLD_AFTER, PostingList, clear_index, find_postings, index_item
from frontdesk.memory.search.indexer import MemoryIndexer
from frontdesk.memory.search.query_store import fetch_context
from frontdesk.memory.search.service import ItemSearchService
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService
from frontdesk.search.vectors import NumberedVectors
from tests.requirements import shows
from tests.stores.memory.conftest import ANN, BOB, NOON, Clock

# Search: by words immediately, by meaning once the records are embedded, and never in another person's records


WORDS = ("apple", "bridge", "candle", "dragon", "engine", "forest", "guitar", "harbour", "island", "jungle")
MANY = 400


class ByChance:
    """An embedder for which texts are near each other only if they are equal."""

    def __init__(self, name: str = "by chance", size: int = 32) -> None:
        self.name = name
        self.read: list[str] = []
        self._size = size

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.read += texts
        seeds = [int.from_bytes(sha256(text.encode()).digest()[:8]) for text in texts]
        found = np.stack([np.random.default_rng(seed).standard_normal(self._size, np.float32) for seed in seeds])
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    async def close(self) -> None:
        """Holds no resources."""


async def _notes(recall: ItemSearchService, scope: PersonScope = ANN, **asked: object) -> list[str]:
    return [hit.text for hit in await recall.search(scope, ItemSearch(**asked))]  # pyright: ignore[reportArgumentType] - of a Query


@shows("MEMORY-SEARCH")
async def test_what_is_kept_is_found_by_its_words_at_once_and_by_its_meaning_once_it_was_read(
    records: PersonDatabase,
) -> None:
    embedder = BuiltinEmbedder()
    memories, recall, reader = (
        MemoryService(records),
        ItemSearchService(records, embedder),
        MemoryIndexer(records, embedder),
    )
    for note in ("My dog is afraid of fireworks", "The boiler was repaired in May", "Lunch with Omar on Tuesdays"):
        await memories.create(ANN, {"note": note})
    [first, *_] = await recall.search(ANN, ItemSearch(text="who repaired the boilers"))
    assert (first.text.splitlines()[0], first.words) == ("The boiler was repaired in May", ["repaired", "boilers"])
    assert first.meaning is None
    await reader.index_all()
    [nearest, *_] = await recall.search(ANN, ItemSearch(text="pets that are frightened by loud noises"))
    assert "dog" in nearest.text
    assert nearest.meaning is not None
    assert nearest.meaning > 0.3
    assert "meaning" in nearest.why
    by_words = await recall.search(
        ANN, ItemSearch(text="pets that are frightened by loud noises", mode=SearchMode.FULL_TEXT)
    )
    assert by_words == []


async def test_what_was_changed_deleted_superseded_or_has_expired_is_found_as_it_is_now(
    records: PersonDatabase,
) -> None:
    memories, recall = MemoryService(records), ItemSearchService(records, None)
    old = await memories.create(ANN, {"note": "Ada lives in Lisbon"})
    new = await memories.create(ANN, {"note": "Ada lives in Porto", "supersedes": old.id})
    gone = await memories.create(ANN, {"note": "Ada lives nowhere"})
    await memories.delete(ANN, gone.id)
    assert await _notes(recall, text="where does Ada live") == [new.note]
    kept = await _notes(recall, text="Ada lives", include_superseded=True)
    assert sorted(kept) == sorted([old.note, new.note])
    await memories.update(ANN, new.id, {"note": "Grace lives in Porto", "title": "Grace"})
    assert not any(hit.words for hit in await recall.search(ANN, ItemSearch(text="Ada"))), "at most beside what says so"
    assert len(await _notes(recall, text="Grace")) == 1


async def test_what_is_asked_among_is_all_that_is_found(records: PersonDatabase) -> None:
    memories, tasks, recall = MemoryService(records), TaskService(records), ItemSearchService(records, None)
    await tasks.create(ANN, {"title": "Water the garden", "tags": ["home"]})
    starred = await memories.create(
        ANN, {"note": "The garden in spring", "is_highlight": True, "tags": ["home", "joy"]}
    )
    await memories.create(ANN, {"note": "A garden long ago", "captured_at": "2001-05-01"})
    assert len(await _notes(recall, text="garden")) == 3
    assert len(await _notes(recall, text="garden", types=frozenset({ItemType.TASK}))) == 1
    assert await _notes(recall, text="garden", is_highlight=True) == [f"{starred.note}\nhome joy"]
    assert len(await _notes(recall, text="garden", tags=("HOME",))) == 2
    assert len(await _notes(recall, text="garden", tags=("home", "joy"), every_tag=True)) == 1
    assert len(await _notes(recall, text="garden", date_to="2010-01-01")) == 1
    assert len(await _notes(recall, text="garden", limit=2)) == 2
    with pytest.raises(Invalid, match="empty"):
        await recall.search(ANN, ItemSearch(text="  "))


async def test_a_search_is_one_transaction_which_begins_once_the_query_is_embedded(
    records: PersonDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    read = Database.read

    async def counted(database: Database, work: Callable[[Connection], object]) -> object:
        steps.append("read")
        return await read(database, work)

    class Noting(ByChance):
        @override
        async def embed(self, texts: Sequence[str]) -> Vectors:
            steps.append("embed")
            return await super().embed(texts)

    await MemoryService(records).create(ANN, {"note": "The garden in spring"})
    monkeypatch.setattr(Database, "read", counted)
    search, query = ItemSearchService(records, Noting()), ItemSearch(text="garden")
    memories = ItemSearch(text="garden", types=frozenset({ItemType.MEMORY}), limit=100)
    [hit] = await search.search(ANN, query)
    assert [one for one, _ in await search.search_memories(ANN, memories)] == [hit]
    found = await search.search_with_context(ANN, query, 1)
    assert (found.hits, found.context, found.zone.key) == ([hit], {hit.item.id: []}, "UTC")
    listed = await search.list_memories(ANN, memories, MemoryFilter(limit=1, offset=0), best_first=True)
    assert ([memory.id for memory in listed.page.items], listed.page.total) == ([hit.item.id], 1)
    assert steps == ["embed", "read"] * 4


@shows("MEMORY-SEARCH")
async def test_another_person_finds_nothing_and_changes_nothing_in_what_is_found(records: PersonDatabase) -> None:
    embedder = ByChance()
    memories, recall, reader = (
        MemoryService(records),
        ItemSearchService(records, embedder),
        MemoryIndexer(records, embedder),
    )
    for number in range(5):
        await memories.create(ANN, {"note": f"Secret number {number} of the vault"})
    await reader.index_all()
    before = await recall.search(ANN, ItemSearch(text="secret vault"))
    for number in range(FOLD_AFTER + 5):
        await memories.create(BOB, {"note": f"Vault, vault, no secret {number}"})
    await reader.index_all()
    after = await recall.search(ANN, ItemSearch(text="secret vault"))
    assert [(hit.item.id, hit.score) for hit in after] == [(hit.item.id, hit.score) for hit in before]
    assert all("no secret" in text for text in await _notes(recall, BOB, text="secret vault", limit=100))
    assert await _notes(recall, PersonScope("nobody"), text="secret vault") == []


async def test_search_needs_the_right_to_what_it_is_among(records: PersonDatabase) -> None:
    recall = ItemSearchService(records, None)
    limited = PersonScope("ann", scopes=frozenset({"memories.read"}))
    assert await recall.search(limited, ItemSearch(text="x", types=frozenset({ItemType.MEMORY}))) == []
    for types in (None, frozenset({ItemType.TASK}), frozenset({ItemType.MEMORY, ItemType.TASK})):
        with pytest.raises(MissingScope):
            await recall.search(limited, ItemSearch(text="x", types=types))


async def test_words_lead_to_all_items_that_hold_them_however_these_came_and_went(records: PersonDatabase) -> None:
    """Compared with a plain scan of everything, past the point where words are folded together."""
    memories, recall, chance = MemoryService(records), ItemSearchService(records, None), random.Random(7)
    kept: dict[str, str] = {}
    for number in range(2 * FOLD_AFTER + 20):
        note = f"{' '.join(chance.sample(WORDS, 3))} number{number}"
        kept[(await memories.create(ANN, {"note": note})).id] = note
        if number % 3 == 0:
            changed = chance.choice(list(kept))
            kept[changed] = f"{' '.join(chance.sample(WORDS, 2))} changed{number}"
            await memories.update(ANN, changed, {"note": kept[changed], "title": kept[changed]})
        if number % 5 == 0:
            gone = chance.choice(list(kept))
            await memories.delete(ANN, gone)
            del kept[gone]
    for word in WORDS:
        hits = await recall.search(ANN, ItemSearch(text=word, limit=100, mode=SearchMode.FULL_TEXT))
        held = {hit.item.id for hit in hits if hit.words}
        assert held == {item_id for item_id, note in kept.items() if word in note.split()}


async def test_among_many_items_the_nearest_is_found_as_surely_as_among_few(
    records: PersonDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By meaning alone, past the point up to which all vectors are compared."""
    monkeypatch.setattr(vectors_store, "COMPARE_ALL", MANY // 3)
    embedder = ByChance()
    recall, reader = ItemSearchService(records, embedder), MemoryIndexer(records, embedder)

    def plant(mine: PersonTransaction) -> None:
        for number in range(MANY):
            create_memory(mine, {"note": f"note{number}"}, None)

    await records.change(ANN, plant, small=False)
    await reader.index_all()
    for number in range(0, MANY, 20):
        hits = await recall.search(ANN, ItemSearch(text=f"note{number}", mode=SearchMode.SEMANTIC, limit=1))
        assert [hit.text for hit in hits] == [f"note{number}"]


async def test_readers_at_once_read_everything_and_count_it_right(records: PersonDatabase) -> None:
    embedder = ByChance()
    memories = MemoryService(records)
    for number in range(150):
        await memories.create(PersonScope(f"person-{number % 3}"), {"note": f"note {number}"})
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(MemoryIndexer(records, embedder).index_all)
    for number in range(3):
        scope = PersonScope(f"person-{number}")
        unread, docs, vectors = await records.read(scope, _counts)
        assert (unread, docs) == (0, 50)
        assert vectors > 0


def _counts(mine: PersonTransaction) -> tuple[int, int, int]:
    unread = mine.connection.execute(select(people.c.unread).where(people.c.user_id == mine.user_id)).scalar_one()
    docs = select(recall_docs.c.n).where(recall_docs.c.user_id == mine.user_id, recall_docs.c.vector.is_not(None))
    cells = select(recall_cells.c.cell).where(recall_cells.c.user_id == mine.user_id)
    return unread, len(mine.connection.execute(docs).all()), len(mine.connection.execute(cells).all())


async def test_another_embedder_reads_everything_anew_and_its_vectors_meet_no_others(records: PersonDatabase) -> None:
    memories, first, second = MemoryService(records), ByChance("first"), ByChance("second", size=48)
    for number in range(10):
        await memories.create(ANN, {"note": f"note {number}"})
    await MemoryIndexer(records, first).index_all()
    between = await ItemSearchService(records, second).search(ANN, ItemSearch(text="note 3"))
    assert [hit.meaning for hit in between] == [None] * 10, "by words, as nothing of its own is there yet"
    reader = MemoryIndexer(records, second)
    await reader.assign_model()
    await reader.index_all()
    [best, *_] = await ItemSearchService(records, second).search(
        ANN, ItemSearch(text="note 3", mode=SearchMode.SEMANTIC)
    )
    assert best.text == "note 3"
    assert len(second.read) == 11 + 1


# The index: nothing remains of deleted records, what is embedded and when, and cells for very many vectors


KINDS = ("sea", "sky", "fire", "stone")


class Kinds:
    """An embedder that knows four topics, and how near to each a text is, by its words."""

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
        """Holds no resources."""


def _word(number: int) -> str:
    """A different word for each number."""
    return "".join("bcdfghjklm"[int(digit)] for digit in str(number)) + "oz"


def _rows(mine: PersonTransaction) -> dict[str, int]:
    """The number of rows of the index, and of vectors in cells."""
    tables = (recall_docs, recall_loose, recall_words)
    found = {table.name: _count(mine, table.c.user_id) for table in tables}
    cells = mine.connection.execute(select(recall_cells.c.vectors).where(recall_cells.c.user_id == mine.user_id))
    return found | {"vectors": sum(len(NumberedVectors.read([packed], 4)) for packed in cells.scalars())}


def _count(mine: PersonTransaction, whose: object) -> int:
    return mine.connection.execute(select(func.count()).where(whose == mine.user_id)).scalar_one()  # pyright: ignore[reportArgumentType] - a column


def _person(mine: PersonTransaction) -> tuple[int, int]:
    row = mine.connection.execute(select(people.c.found, people.c.unread).where(people.c.user_id == mine.user_id)).one()
    return row.found, row.unread


async def _texts(recall: ItemSearchService, **asked: object) -> list[str]:
    return [hit.text for hit in await recall.search(ANN, ItemSearch(**asked))]  # pyright: ignore[reportArgumentType] - of a Query


async def test_nothing_is_left_of_what_is_gone_and_counts_stay_right(records: PersonDatabase) -> None:
    memories, reader = MemoryService(records), MemoryIndexer(records, Kinds())
    made = [await memories.create(ANN, {"note": f"sea {_word(number)}"}) for number in range(FOLD_AFTER + 6)]
    assert await records.read(ANN, _person) == (FOLD_AFTER + 6, FOLD_AFTER + 6)
    await reader.index_all()
    assert await records.read(ANN, _person) == (FOLD_AFTER + 6, 0)
    assert (await records.read(ANN, _rows))["vectors"] == FOLD_AFTER + 6
    for memory in made[3:]:
        await memories.delete(ANN, memory.id)
    await memories.update(ANN, made[0].id, {"note": "fire"})
    assert await records.read(ANN, _person) == (3, 1)
    rows = await records.read(ANN, _rows)
    assert rows["vectors"] == 2, "a vector of what was said before is gone at once"
    assert rows["recall_docs"] == 3
    assert rows["recall_loose"] == 1
    assert rows["recall_words"] == 3, "sea, and a word of each"
    await reader.index_all()
    for memory in made[:3]:
        await memories.delete(ANN, memory.id)
    assert await records.read(ANN, _person) == (0, 0)
    assert set((await records.read(ANN, _rows)).values()) == {0}


async def test_a_text_that_stays_the_same_costs_nothing(records: PersonDatabase) -> None:
    memories, tasks, embedder = MemoryService(records), TaskService(records), Kinds()
    reader = MemoryIndexer(records, embedder)
    memory = await memories.create(ANN, {"note": "the sea"})
    task = await tasks.create(ANN, {"title": "look at the sky"})
    await reader.index_all()
    await memories.update(ANN, memory.id, {"salience_score": 0.5})
    await tasks.update(ANN, task.id, {"progress": 50})
    assert await records.read(ANN, _person) == (2, 0)
    await reader.index_all()
    assert embedder.read == 2


async def test_what_is_cleared_is_gone_and_can_be_put_again(records: PersonDatabase) -> None:
    memories, recall, reader = MemoryService(records), ItemSearchService(records, None), MemoryIndexer(records, Kinds())
    memory = await memories.create(ANN, {"note": "the sea"})
    await memories.create(BOB, {"note": "the sea"})
    await reader.index_all()
    await records.change(ANN, clear_index)
    assert set((await records.read(ANN, _rows)).values()) == {0}
    assert await _texts(recall, text="sea") == []
    await records.change(ANN, lambda mine: index_item(mine, memory.id, "the sea again"))
    assert await _texts(recall, text="sea") == ["the sea again"]
    assert (await records.read(BOB, _rows))["vectors"] == 1


async def test_memories_written_down_together_are_found_by_each_others_words(
    records: PersonDatabase, clock: Clock
) -> None:
    memories, recall = MemoryService(records), ItemSearchService(records, None)
    await memories.create(ANN, {"note": "Ben: which instrument do you play?"})
    await memories.create(ANN, {"note": "Mia: the cello, since I was six"})
    clock.forward(timedelta(hours=3))
    await memories.create(ANN, {"note": "Ben: good morning"})
    first, second = await recall.search(ANN, ItemSearch(text="instrument", mode=SearchMode.FULL_TEXT))
    assert first.words == ["instrument"]
    assert (second.text, second.words, second.beside) == ("Mia: the cello, since I was six", [], ["instrument"])
    assert second.why == "beside what says: instrument"
    assert first.score > second.score > 0


async def test_among_equals_the_newer_and_the_more_salient_comes_first(records: PersonDatabase) -> None:
    memories, recall = MemoryService(records), ItemSearchService(records, None)
    for note, when, salience in (("a", "2020-01-01", None), ("b", NOON.isoformat(), None), ("c", "2020-06-01", 1.0)):
        fields = {"note": f"the harbour {note}", "captured_at": when, "salience_score": salience}
        await memories.create(ANN, fields)
    [*better, last] = await _texts(recall, text="harbour")
    assert sorted(better) == ["the harbour b", "the harbour c"]
    assert last == "the harbour a"


async def test_the_few_that_are_asked_among_are_found_among_a_great_many(
    records: PersonDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_store, "FEW_ITEMS", 3)
    monkeypatch.setattr(service, "CANDIDATE_DEPTHS", (1,))
    memories, tasks, categories = MemoryService(records), TaskService(records), CategoryService(records)
    recall = ItemSearchService(records, None)
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
        await recall.search(ANN, ItemSearch(text="harbour", category="none"))
    with pytest.raises(Invalid, match="date_from"):
        await recall.search(ANN, ItemSearch(text="harbour", date_from="soon"))


async def test_filters_of_memories_and_statuses_leave_out_the_rest(records: PersonDatabase) -> None:
    memories, activities, recall = MemoryService(records), ActivityService(records), ItemSearchService(records, None)
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
        await recall.search(ANN, ItemSearch(text="garden", limit=0))


async def test_of_a_common_word_the_newest_are_found_and_of_a_rare_one_all(
    records: PersonDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BLOCK_SIZE", 8), ("FIRST_BLOCKS", 1), ("MAX_ITEMS", 24), ("MAX_BLOCKS", 20)):
        monkeypatch.setattr(postings, name, value)

    def plant(mine: PersonTransaction) -> None:
        for number in range(2 * FOLD_AFTER):
            create_memory(mine, {"note": f"common {'rare' if number % 16 == 3 else ''} {_word(number)}"}, None)

    await records.change(ANN, plant, small=False)

    def look(mine: PersonTransaction) -> Sequence[PostingList]:
        return find_postings(mine, ["common", "rare", _word(5), "none"], 2 * FOLD_AFTER)

    common, rare, one = await records.read(ANN, look)
    assert sorted(rare.numbers.tolist()) == list(range(4, 2 * FOLD_AFTER, 16))
    assert rare.held_by == FOLD_AFTER / 8
    assert set(range(2 * FOLD_AFTER - 16, 2 * FOLD_AFTER + 1)) <= set(common.numbers.tolist())
    assert len(common.numbers) < FOLD_AFTER
    assert abs(common.held_by - 2 * FOLD_AFTER) < 20, "told from the newest"
    assert one.numbers.tolist() == [6]


async def test_a_tree_of_many_small_regions_leads_to_every_item(
    records: PersonDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("MAX_CELL", 4), ("MAX_REGION", 3), ("COMPARE_ALL", 0)):
        monkeypatch.setattr(tree, name, value)
    monkeypatch.setattr(tree, "NEAREST_REGIONS", 4)
    monkeypatch.setattr(tree, "NEAREST_CELLS", 8)
    embedder, memories = Kinds(), MemoryService(records)
    notes = [f"{'sea ' * (number % 7)}{'sky ' * (number % 5)}{'fire ' * (number % 3)}stone" for number in range(90)]
    for note in notes:
        await memories.create(ANN, {"note": note})
    await MemoryIndexer(records, embedder).index_all()
    regions = select(func.count()).where(recall_regions.c.user_id == "ann")
    assert await records.read(ANN, lambda mine: mine.connection.execute(regions).scalar_one()) > 3
    recall = ItemSearchService(records, embedder)
    for note in notes[:70:7]:
        [best] = await recall.search(ANN, ItemSearch(text=note, mode=SearchMode.SEMANTIC, limit=1))
        assert best.meaning is not None
        assert best.meaning > 0.998
    both = await recall.search(ANN, ItemSearch(text="sea fire", limit=100))
    assert all(hit.meaning is not None for hit in both), "what lies in no near cell is looked up"


async def test_a_reader_reads_what_comes_and_waits_while_its_embedder_is_away(records: PersonDatabase) -> None:
    embedder, memories = Kinds(), MemoryService(records)
    reader, recall = MemoryIndexer(records, embedder), ItemSearchService(records, embedder)
    records.on_change(reader.wake)

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
            [hit] = await recall.search(ANN, ItemSearch(text="sky", limit=1))
        assert (hit.text, hit.meaning) == ("the sky", None)
        assert "recall_without_meaning" in {line["event"] for line in logs}
        embedder.away = False
        await memories.create(ANN, {"note": "the stone"})
        await until_read()
        group.cancel_scope.cancel()
    assert (await records.read(ANN, _rows))["vectors"] == 3
    await MemoryIndexer(records, None).run()


async def test_who_was_erased_while_they_were_read_does_not_come_to_be_again(records: PersonDatabase) -> None:
    await MemoryService(records).create(ANN, {"note": "the sea"})

    class Erasing(Kinds):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            await records.change(ANN, erase_person)
            return await super().embed(texts)

    await MemoryIndexer(records, Erasing()).index_all()
    there = select(func.count()).select_from(people).where(people.c.user_id == "ann")
    assert await records.read(ANN, lambda mine: mine.connection.execute(there).scalar_one()) == 0


async def test_what_lies_around_an_item_was_written_down_beside_it_or_is_tied_to_it(records: PersonDatabase) -> None:
    memories, tasks = MemoryService(records), TaskService(records)
    notes = [await memories.create(ANN, {"note": f"note {number}"}) for number in range(5)]
    trip = await tasks.create(ANN, {"title": "the trip"})
    part = await tasks.create(ANN, {"title": "pack", "parent_task_id": trip.id})
    await memories.anchor(ANN, notes[0].id, {"anchor_item_id": trip.id, "relation": "about"})
    await memories.delete(ANN, notes[3].id)
    around = await records.read(ANN, lambda mine: fetch_context(mine, [notes[2].id, trip.id, notes[3].id], 1))
    assert [(near.item.title, near.tie) for near in around[notes[2].id]] == [("note 1", ContextRelation.BEFORE)]
    assert {(near.item.title, near.tie) for near in around[trip.id]} == {
        ("note 0", ContextRelation.ANCHORED),
        ("pack", ContextRelation.RELATED),
        ("note 4", ContextRelation.BEFORE),
    }
    assert list(around[notes[3].id]) == []
    of_bob = await records.read(BOB, lambda mine: fetch_context(mine, [trip.id, part.id], 2))
    assert of_bob == {trip.id: [], part.id: []}
    with pytest.raises(Invalid, match="depth"):
        await ItemSearchService(records, None).search_with_context(ANN, ItemSearch(text="trip"), 6)


async def test_people_who_keep_much_at_once_get_a_number_for_each_and_lose_no_word(records: PersonDatabase) -> None:
    memories, recall = MemoryService(records), ItemSearchService(records, None)
    async with anyio.create_task_group() as group:
        for number in range(FOLD_AFTER + 16):
            group.start_soon(memories.create, ANN, {"note": f"lantern number{number}"})
    assert await records.read(ANN, _person) == (FOLD_AFTER + 16, FOLD_AFTER + 16)
    items = select(func.count()).select_from(timeline_items).where(timeline_items.c.user_id == "ann")
    assert await records.read(ANN, lambda mine: mine.connection.execute(items).scalar_one()) == FOLD_AFTER + 16
    found = await recall.search(ANN, ItemSearch(text="lantern", limit=100))
    assert len({hit.text for hit in found}) == FOLD_AFTER + 16
