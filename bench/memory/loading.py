"""Fills the memory tables with very many memories, as ordinary use would have written them."""

import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Protocol

import psycopg
from psycopg import sql
from sqlalchemy import Table

from bench.memory.planting import Planted, planted
from frontdesk.db.schema import (
    memories,
    people,
    recall_cells,
    recall_docs,
    recall_regions,
    recall_words,
    timeline_items,
)
from frontdesk.memory.search.index_store import BLOCK_SIZE, block_of, pack_entry, weigh_terms
from frontdesk.search.vectors import Floats, NumberedVectors

# The tables with a person's data, in the order in which they can be filled.
TABLES = (timeline_items, memories, recall_docs, recall_words, recall_cells, recall_regions)
APART = timedelta(minutes=5)
LAST = datetime(2026, 11, 1, tzinfo=UTC)
AT_ONCE = 20_000

Row = Mapping[str, Any]


class Sink(Protocol):
    """A database that receives the rows."""

    def pour(self, table: Table, rows: Iterable[Row]) -> None: ...

    def run(self, statement: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SqliteSink:
    connection: sqlite3.Connection

    def pour(self, table: Table, rows: Iterable[Row]) -> None:
        for names, some in _slices(rows):
            places = ", ".join("?" * len(names))
            self.connection.executemany(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({places})", some)

    def run(self, statement: str) -> None:
        self.connection.execute(statement)


@dataclass(frozen=True, slots=True)
class PostgresSink:
    connection: psycopg.Connection

    def pour(self, table: Table, rows: Iterable[Row]) -> None:
        for names, some in _slices(rows):
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), columns)
            with self.connection.cursor().copy(into) as copy:
                for row in some:
                    copy.write_row(row)

    def run(self, statement: str) -> None:
        self.connection.execute(statement.encode())


@contextmanager
def sink(url: str) -> Generator[Sink]:
    """For a database that has the tables."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            connection.execute("SET TIME ZONE 'UTC'")
            yield PostgresSink(connection)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        # Otherwise SQLite writes the index pages to the disk again and again.
        connection.execute("PRAGMA cache_size = -1000000")
        connection.execute("PRAGMA synchronous = OFF")
        with connection:
            yield SqliteSink(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def keep(into: Sink, person: str, texts: Iterable[str], vectors: Floats, model: int) -> None:
    """This many memories of one person, the last of them created just now."""
    count = len(vectors)
    into.pour(people, [_person(person, count, model)])
    grown = planted(vectors)
    given = iter(texts)
    # Block by block: only one block is in memory.
    for start in range(0, count + 1, BLOCK_SIZE):
        numbers = range(max(1, start), min(start + BLOCK_SIZE, count + 1))
        _keep_some(into, person, list(zip(numbers, given, strict=False)), vectors, grown, model)
    _grow(into, person, grown, model)


def copy(into: Sink, person: str, others: Sequence[str], count: int, model: int) -> None:
    """Give each of these people as many memories as that person has, with the same contents."""
    into.pour(people, (_person(other, count, model) for other in others))
    for table in TABLES:
        columns = ", ".join(column.name for column in table.c if column.name != "user_id")
        for other in others:
            into.run(
                f"INSERT INTO {table.name} (user_id, {columns}) "
                f"SELECT '{other}', {columns} FROM {table.name} WHERE user_id = '{person}'"
            )


def _person(person: str, count: int, model: int) -> Row:
    row = {"user_id": person, "zone": "UTC", "created_at": _when(LAST), "found": count, "unread": 0}
    return row | {"numbered": count, "model": model}


def _keep_some(
    into: Sink, person: str, some: Sequence[tuple[int, str]], vectors: Floats, grown: Planted, model: int
) -> None:
    count = len(vectors)
    ids = {n: _id(n, count) for n, _ in some}
    into.pour(timeline_items, (_item(person, ids[n], text, n, count) for n, text in some))
    into.pour(memories, (_memory(person, ids[n], text, n, count) for n, text in some))
    into.pour(recall_docs, _docs(person, ids, some, vectors, grown, model))
    into.pour(recall_words, _words(person, some))


def _item(person: str, item_id: str, text: str, n: int, count: int) -> Row:
    at = _when(_at(n, count))
    return {
        "user_id": person,
        "id": item_id,
        "type": "memory",
        "title": text[:80],
        "description": "",
        "start_time": at,
        "is_time_consuming": 0,
        "render_on_timeline": 1,
        "tags": "",
        "status": "active",
        "priority": "medium",
        "metadata": "{}",
        "created_at": at,
        "updated_at": at,
    }


def _memory(person: str, item_id: str, text: str, n: int, count: int) -> Row:
    row = {"user_id": person, "id": item_id, "memory_type": "note", "status": "active", "note": text}
    return row | {"is_highlight": 0, "captured_at": _when(_at(n, count))}


def _docs(
    person: str,
    ids: Mapping[int, str],
    some: Sequence[tuple[int, str]],
    vectors: Floats,
    grown: Planted,
    model: int,
) -> Iterator[Row]:
    first, last = some[0][0], some[-1][0]
    packed = NumberedVectors.encode(range(first, last + 1), vectors[first - 1 : last]).single_vectors()
    for (n, text), (_, vector) in zip(some, packed, strict=True):
        row = {"user_id": person, "n": n, "item_id": ids[n], "text": text, "model": model}
        yield row | {"cell": int(grown.cell_of[n - 1]), "vector": vector}


def _words(person: str, some: Sequence[tuple[int, str]]) -> Iterator[Row]:
    held: defaultdict[tuple[str, int], bytearray] = defaultdict(bytearray)
    for n, text in some:
        for term, weight in weigh_terms(text).items():
            held[term, block_of(n)] += pack_entry(n, weight)
    for (term, block), docs in sorted(held.items()):
        yield {"user_id": person, "term": term, "block": block, "docs": bytes(docs)}


def _grow(into: Sink, person: str, grown: Planted, model: int) -> None:
    whose = {"user_id": person, "model": model}
    cells = ({**whose, "cell": cell, "vectors": bag.packed()} for cell, bag in grown.cells.items())
    into.pour(recall_cells, cells)
    into.pour(
        recall_regions,
        (
            {
                **whose,
                "region": region,
                "centre": NumberedVectors.encode([region], centre[None]).packed(),
                "cells": cells.packed(),
            }
            for (region, cells), centre in zip(grown.regions.items(), grown.centres.values(), strict=True)
        ),
    )


def _id(n: int, count: int) -> str:
    """In the order of their creation, like ids."""
    milliseconds = int(_at(n, count).timestamp() * 1000)
    return str(uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62 | n))


def _at(n: int, count: int) -> datetime:
    return LAST - (count - n) * APART


def _when(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")


def _slices(rows: Iterable[Row]) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    """The names of the columns, and the values of some rows."""
    given = iter(rows)
    while some := list(islice(given, AT_ONCE)):
        names = list(some[0])
        yield names, [tuple(row[name] for name in names) for row in some]
