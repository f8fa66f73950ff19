"""The words of a person's items in the database: for each word and block of items, those that hold it.

The newest items have words of their own, which are folded into the others' when there are some of them.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from sqlalchemy import TextClause, bindparam, delete, insert, select, text, update

from frontdesk.db.lists import one_of
from frontdesk.db.schema import recall_loose
from frontdesk.db.schema import recall_words as table
from frontdesk.memory.recall.postings.packing import (
    BLOCK,
    ENTRY,
    Posting,
    block_of,
    entries,
    entry,
    listed,
    said,
    without,
)
from frontdesk.memory.store import Mine

Read: TypeAlias = list[tuple[int, bytes]]

# So many blocks of each word are read first: all there are for most people, and enough to tell how common a word is.
FIRST = 2
# Of a common word the newest items are read, about so many; of a rare one all, though they lie in many blocks.
MOST_ITEMS, MOST_BLOCKS = 32_768, 128
ANY = 2**31 - 1

# One row after the other is quickest in place; PostgreSQL takes them all in one trip.
_ADD_SQLITE = """
INSERT INTO recall_words (user_id, term, block, docs) VALUES (?, ?, ?, ?)
ON CONFLICT (user_id, term, block) DO UPDATE SET docs = CAST(docs || excluded.docs AS BLOB)
"""
_ADD_POSTGRESQL = text(
    """
    INSERT INTO recall_words AS held (user_id, term, block, docs)
    SELECT :user_id, given.term, given.block, decode(given.docs, 'hex')
    FROM json_to_recordset(CAST(:rows AS json)) AS given (term text, block int, docs text)
    ON CONFLICT (user_id, term, block) DO UPDATE SET docs = held.docs || excluded.docs
    """
)
_HELD = select(table.c.term, table.c.docs).where(
    table.c.user_id == bindparam("user_id"), table.c.block == bindparam("block"), one_of(table.c.term, "terms")
)
_IS_ROW = (
    table.c.user_id == bindparam("whose"),
    table.c.block == bindparam("which"),
    table.c.term == bindparam("of_term"),
)
_REPLACE = update(table).where(*_IS_ROW).values(docs=bindparam("kept"))
_DROP = delete(table).where(*_IS_ROW)
_ADD = insert(recall_loose)
_IS_MINE = recall_loose.c.user_id == bindparam("whose")
_LOOSE = select(recall_loose.c.n, recall_loose.c.words).where(_IS_MINE)
_FOLDED = delete(recall_loose).where(_IS_MINE)
_FORGET = delete(recall_loose).where(_IS_MINE, recall_loose.c.n == bindparam("number"))


def add(mine: Mine, n: int, weights: Mapping[str, int]) -> None:
    """Have an item found by these terms, of its own for now."""
    mine.connection.execute(_ADD, {"user_id": mine.user_id, "n": n, "words": said(weights)})


def fold(mine: Mine, at_least: int = 1) -> None:
    """Put the words that items have of their own where they belong, if there are so many of those items."""
    rows = mine.connection.execute(_LOOSE, {"whose": mine.user_id}).all()
    if len(rows) < at_least:
        return
    gathered: dict[tuple[str, int], bytes] = {}
    for n, words in rows:
        for term, weight in zip(*listed(words), strict=True):
            key = (term, block_of(n))
            gathered[key] = gathered.get(key, b"") + entry(n, int(weight))
    _add(mine, gathered)
    mine.connection.execute(_FOLDED, {"whose": mine.user_id})


def take_out(mine: Mine, n: int, terms: Sequence[str]) -> None:
    """Have an item found no longer by these terms, which are all it was found by."""
    if mine.connection.execute(_FORGET, {"whose": mine.user_id, "number": n}).rowcount:
        return
    block = block_of(n)
    given = {"user_id": mine.user_id, "block": block, "terms": list(terms)}
    left = {row.term: without(row.docs, n) for row in mine.connection.execute(_HELD, given)}
    row = {"whose": mine.user_id, "which": block}
    kept = [{**row, "of_term": term, "kept": docs} for term, docs in left.items() if docs]
    gone = [{**row, "of_term": term} for term, docs in left.items() if not docs]
    if kept:
        mine.connection.execute(_REPLACE, kept)
    if gone:
        mine.connection.execute(_DROP, gone)


def find(mine: Mine, terms: Sequence[str], last: int) -> list[Posting]:
    """Who holds each term, of a person whose last item has this number; a term that nobody holds is left out."""
    if not terms:
        return []
    # First, since they may be folded meanwhile: better to see them twice than not at all.
    loose = _loose(mine, frozenset(terms))
    read = _blocks(mine, dict.fromkeys(terms, (FIRST, ANY)))
    more = {term: (_more(rows, last), rows[-1][0]) for term, rows in read.items() if _more(rows, last)}
    for term, rows in _blocks(mine, more).items():
        read[term].extend(rows)
    cut_off = {term for term, rows in read.items() if len(rows) == FIRST + (more[term][0] if term in more else 0)}
    return [
        _posting(term, read.get(term, []), loose.get(term, []), last if term in cut_off else None)
        for term in terms
        if term in read or term in loose
    ]


def _loose(mine: Mine, terms: frozenset[str]) -> dict[str, list[tuple[int, int]]]:
    """The items that hold a term among words of their own, and its weights there."""
    found: dict[str, list[tuple[int, int]]] = {}
    for n, words in mine.connection.execute(_LOOSE, {"whose": mine.user_id}):
        held, weights = listed(words)
        for term in terms.intersection(held):
            found.setdefault(term, []).append((n, int(weights[held.index(term)])))
    return found


def _more(rows: Read, last: int) -> int:
    """How many more blocks of a term are worth reading."""
    if len(rows) < FIRST:
        return 0
    read = _held(rows)
    in_a_block = read * BLOCK / _looked_at(rows, last)
    return max(0, min(MOST_BLOCKS, int((MOST_ITEMS - read) / in_a_block)))


def _posting(term: str, rows: Read, loose: list[tuple[int, int]], last: int | None) -> Posting:
    """`last` is the number of the last item, where not all blocks were read: then the rest is like them."""
    own = np.array(loose, np.int32).reshape(-1, 2)
    folded, folded_weights = entries(rows)
    numbers = np.concatenate([own[:, 0], folded])
    weights = np.concatenate([own[:, 1].astype(np.uint8), folded_weights])
    held_by = len(numbers) if last is None else len(numbers) * last / _looked_at(rows, last)
    return Posting(term, numbers, weights, max(len(numbers), held_by))


def _held(rows: Read) -> int:
    return sum(len(docs) for _, docs in rows) // ENTRY.itemsize


def _looked_at(rows: Read, last: int) -> int:
    """How many numbers there are from the oldest of these blocks on."""
    return max(1, last + 1 - rows[-1][0] * BLOCK)


def _blocks(mine: Mine, wanted: Mapping[str, tuple[int, int]]) -> Mapping[str, Read]:
    """The newest blocks of each term: how many, and below which."""
    if not wanted:
        return {}
    given: dict[str, str | int] = {"user_id": mine.user_id}
    for place, (term, (count, below)) in enumerate(wanted.items()):
        given |= {f"term_{place}": term, f"count_{place}": count, f"below_{place}": below}
    found: defaultdict[str, Read] = defaultdict(list)
    for term, block, docs in mine.connection.execute(_newest(len(wanted)), given).all():
        found[term].append((block, docs))
    for rows in found.values():
        rows.sort(reverse=True)
    return found


@cache
def _newest(terms: int) -> TextClause:
    one = """
    SELECT * FROM (
        SELECT term, block, docs FROM recall_words
        WHERE user_id = :user_id AND term = :term_{0} AND block < :below_{0} ORDER BY block DESC LIMIT :count_{0}
    ) AS of_{0}
    """
    return text(" UNION ALL ".join(one.format(place) for place in range(terms)))


def _add(mine: Mine, gathered: Mapping[tuple[str, int], bytes]) -> None:
    if mine.connection.dialect.name == "postgresql":
        rows = [{"term": term, "block": block, "docs": docs.hex()} for (term, block), docs in gathered.items()]
        mine.connection.execute(_ADD_POSTGRESQL, {"user_id": mine.user_id, "rows": json.dumps(rows)})
    elif gathered:
        each = [(mine.user_id, term, block, docs) for (term, block), docs in sorted(gathered.items())]
        mine.connection.exec_driver_sql(_ADD_SQLITE, each)
