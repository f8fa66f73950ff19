"""Measures a search for a person with very many memories next to one with a thousand, by turns."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, quantiles

import anyio
import numpy as np
from tests.support.postgres import open_postgres

from bench.memory.loading import copy, keep, sink
from bench.memory.locomo import read_talks
from bench.memory.made_up import Source, source
from bench.memory.shipped import MEMORIES
from bench.retrieval.embeddings import SHIPPED, Embeddings
from frontdesk.db.engine import Database
from frontdesk.embedding.builtin import MODEL_NAME, BuiltinEmbedder
from frontdesk.memory.model import ItemSearch, PersonScope
from frontdesk.memory.search.service import ItemSearchService
from frontdesk.memory.search.vectors_store import COMPARE_ALL, model_number, nearest_vectors
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.search.vectors import Floats
from frontdesk.settings import Settings

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
POSTGRES = ("shared_buffers=512MB", "max_wal_size=1GB", "checkpoint_timeout=30min")
EACH = 1_000
MANY = "somebody-with-a-great-many"
WARM_UP = 20
NEAREST, COMPARED = 10, 100


@dataclass(frozen=True, slots=True)
class Size:
    """How many memories one person has, how many people have a thousand each, and how many questions each asks."""

    many: int
    people: int
    asked: int


@dataclass(frozen=True, slots=True)
class SpeedMeasured:
    """Milliseconds by question, embedding included; and the share of the truly nearest memories that a search reads."""

    size: Size
    many_ms: Sequence[float]
    few_ms: Sequence[float]
    looked_at: float
    filled_s: float

    @property
    def ratio(self) -> float:
        """The ratio of the p95."""
        return at(self.many_ms, 95) / at(self.few_ms, 95)


def at(times: Sequence[float], share: int) -> float:
    return quantiles(times, n=100)[share - 1]


def measure_speed(folder: Path, size: Size, databases: Sequence[str]) -> Mapping[str, SpeedMeasured]:
    talks = read_talks()
    made_from = source(talks, Embeddings(SHIPPED))
    asked = [question.text for talk in talks for question in talk.questions]
    some = asked[:: len(asked) // (size.asked + WARM_UP)][: size.asked + WARM_UP]
    return {name: _measure(folder, name, size, made_from, some) for name in databases}


def _measure(folder: Path, name: str, size: Size, made_from: Source, asked: Sequence[str]) -> SpeedMeasured:
    with ExitStack() as stack:
        data = folder / f"speed-{name}"
        settings = {"FRONTDESK_DATA": str(data)}
        url = f"sqlite:///{data / 'frontdesk.db'}"
        if name == POSTGRESQL:
            url = stack.enter_context(open_postgres(*POSTGRES)).create_database()
            settings["FRONTDESK_DATABASE_URL"] = url
        anyio.run(partial(_make_tables, settings))
        start = time.monotonic()
        vectors = _fill(url, size, made_from)
        filled = time.monotonic() - start
        print(f"  {name}: {size.many + size.people * EACH:,} memories in {filled:.0f} s", file=sys.stderr, flush=True)
        many, few, looked_at = anyio.run(partial(_ask, settings, size, asked, vectors))
        if name == SQLITE:
            (data / "frontdesk.db").unlink()
        return SpeedMeasured(size, many[WARM_UP:], few[WARM_UP:], looked_at, filled)


def _fill(url: str, size: Size, made_from: Source) -> Floats:
    """The vectors of the person with many memories."""
    model = model_number(MODEL_NAME)
    vectors = made_from.moved(size.many)
    with sink(url) as into:
        keep(into, MANY, made_from.texts(size.many), vectors, model)
        keep(into, "person-0", made_from.texts(EACH, seed=2), made_from.moved(EACH, seed=2), model)
        copy(into, "person-0", [f"person-{number}" for number in range(1, size.people)], EACH, model)
    return vectors


async def _make_tables(settings: Mapping[str, str]) -> None:
    await (await Database.open(Settings.model_validate(settings))).close()


async def _ask(
    settings: Mapping[str, str], size: Size, asked: Sequence[str], vectors: Floats
) -> tuple[list[float], list[float], float]:
    """Times of the questions, for the large person and for the others, and the share of the nearest that was read."""
    async with AsyncExitStack() as stack:
        database = await Database.open(Settings.model_validate(settings))
        stack.push_async_callback(database.close)
        records, embedder = PersonDatabase(database), BuiltinEmbedder()
        recall = ItemSearchService(records, embedder)
        many: list[float] = []
        few: list[float] = []
        for number, text in enumerate(asked):
            many.append(await _timed(recall, MANY, text))
            few.append(await _timed(recall, f"person-{number % size.people}", text))
        # Not during the timing: the full comparison uses threads that would disturb it.
        shares = [await _share(records, (await embedder.embed([text]))[0], vectors) for text in asked[:COMPARED]]
        return many, few, mean(shares)


async def _share(records: PersonDatabase, vector: Floats, vectors: Floats) -> float:
    """The share of the truly nearest that a search reads."""
    seen = await records.read(PersonScope(MANY), partial(_seen, vector=vector))
    nearest = np.argpartition(-(vectors @ vector), NEAREST)[:NEAREST] + 1
    return float(np.isin(nearest, list(seen)).mean())


async def _timed(recall: ItemSearchService, person: str, text: str) -> float:
    start = time.perf_counter()
    hits = await recall.search(PersonScope(person), ItemSearch(text=text, types=MEMORIES))
    if not hits:
        raise RuntimeError(f"{person} has nothing about: {text}")
    return (time.perf_counter() - start) * 1e3


def _seen(mine: PersonTransaction, vector: Floats) -> set[int]:
    return set(nearest_vectors(mine, model_number(MODEL_NAME), vector, COMPARE_ALL + 1).numbers.tolist())
