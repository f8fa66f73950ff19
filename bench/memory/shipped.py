"""Searches with Frontdesk itself: each talk is a person, each turn a memory, through the services on SQLite."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.memory.locomo import Talk
from frontdesk.db.engine import Database
from frontdesk.embedding.builtin import MODEL_FOLDER, BuiltinEmbedder, WordPieceTokenizer
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.model import ItemSearch, ItemType, PersonScope, SearchMode
from frontdesk.memory.search.indexer import MemoryIndexer
from frontdesk.memory.search.service import ItemSearchService
from frontdesk.memory.store import PersonDatabase
from frontdesk.settings import Settings

MEMORIES = frozenset({ItemType.MEMORY})
# Longer than any answer.
ENDLESS = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a search, best first, its time, and the number of tokens of the first ten texts."""

    ids: Sequence[str]
    ms: float
    tokens: int


@dataclass(frozen=True, slots=True)
class ShippedAnswers:
    """All answers of a way, and the time to keep a memory (p50)."""

    answers: Sequence[Sequence[Answer]]
    keep_ms: float


async def ask_frontdesk(
    folder: Path, talks: Sequence[Talk], ways: Sequence[SearchMode], limit: int
) -> dict[SearchMode, ShippedAnswers]:
    """The answers to every talk's questions, by way."""
    async with AsyncExitStack() as stack:
        database = await Database.open(Settings.model_validate({"FRONTDESK_DATA": folder}))
        stack.push_async_callback(database.close)
        embedder = BuiltinEmbedder()
        records = PersonDatabase(database)
        kept = [
            await _keep(MemoryService(records), PersonScope(f"person-{number}"), talk)
            for number, talk in enumerate(talks)
        ]
        await MemoryIndexer(records, embedder).index_all()
        recall, words = ItemSearchService(records, embedder), WordPieceTokenizer.read(MODEL_FOLDER / "vocab.txt")
        keep_ms = sorted(ms for _, times in kept for ms in times)
        found: dict[SearchMode, ShippedAnswers] = {}
        for way in ways:
            answers = [
                await _ask(recall, words, PersonScope(f"person-{number}"), talk, kept[number][0], way, limit)
                for number, talk in enumerate(talks)
            ]
            found[way] = ShippedAnswers(answers, keep_ms[len(keep_ms) // 2])
        return found


async def _keep(memories: MemoryService, scope: PersonScope, talk: Talk) -> tuple[dict[str, str], list[float]]:
    turn_of: dict[str, str] = {}
    times: list[float] = []
    for turn in talk.turns:
        start = time.perf_counter()
        memory = await memories.create(scope, {"note": turn.note, "captured_at": turn.at.isoformat()})
        times.append((time.perf_counter() - start) * 1e3)
        turn_of[memory.id] = turn.id
    return turn_of, times


async def _ask(
    recall: ItemSearchService,
    words: WordPieceTokenizer,
    scope: PersonScope,
    talk: Talk,
    turn_of: dict[str, str],
    way: SearchMode,
    limit: int,
) -> list[Answer]:
    found: list[Answer] = []
    for question in talk.questions:
        start = time.perf_counter()
        hits = await recall.search(scope, ItemSearch(text=question.text, types=MEMORIES, limit=limit, mode=way))
        ms = (time.perf_counter() - start) * 1e3
        tokens = sum(len(words.ids(hit.text, ENDLESS)) - 2 for hit in hits[:10])
        found.append(Answer([turn_of[hit.item.id] for hit in hits], ms, tokens))
    return found
