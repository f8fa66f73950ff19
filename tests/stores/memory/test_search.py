"""Search among a person's records: by words at once, by meaning once they were read, and never another's."""

import random
from collections.abc import Callable, Sequence
from hashlib import sha256

import anyio
import numpy as np
import pytest
from sqlalchemy import Connection, select
from typing_extensions import override

from frontdesk.db.engine import Database
from frontdesk.db.schema import people, recall_cells, recall_docs
from frontdesk.embedding.builtin import BuiltinEmbedder
from frontdesk.embedding.embedder import Vectors
from frontdesk.errors import Invalid, MissingScope
from frontdesk.memory.memories import MemoryService, create_memory
from frontdesk.memory.memories_rules import MemoryFilter
from frontdesk.memory.model import ItemSearch, ItemType, PersonScope, SearchMode
from frontdesk.memory.search import vectors_store
from frontdesk.memory.search.index_store import FOLD_AFTER
from frontdesk.memory.search.indexer import MemoryIndexer
from frontdesk.memory.search.service import ItemSearchService
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService
from tests.requirements import shows
from tests.stores.memory.conftest import ANN, BOB

pytestmark = pytest.mark.anyio
WORDS = ("apple", "bridge", "candle", "dragon", "engine", "forest", "guitar", "harbour", "island", "jungle")
MANY = 400


class ByChance:
    """An embedder for which texts are near each other only where they are the same."""

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
        """Nothing is held."""


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
    """Held against a plain look through everything, past the point where words are folded together."""
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
    """By meaning alone, past the point where all are compared."""
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
