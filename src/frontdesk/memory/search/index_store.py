"""Stores the search index of a person's items: terms in blocks of postings, texts, and which texts lack a vector.

The terms of the newest items are stored with each item, and are folded into the blocks when there are enough of them:
writing each term of each item into its block would touch a page of the database for every term.
"""

import json
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause, and_, bindparam, delete, func, insert, or_, select, text, update

from frontdesk.db.schema import (
    TERM_LENGTH,
    people,
    recall_cells,
    recall_docs,
    recall_loose,
    recall_regions,
    recall_words,
)
from frontdesk.db.statements import one_of
from frontdesk.errors import NotFound
from frontdesk.memory.search.vectors_store import delete_other_models, place_vectors, remove_vector, save_cells
from frontdesk.memory.store import PersonTransaction
from frontdesk.search.bm25 import Bm25
from frontdesk.search.vectors import NumberedVectors, Numbers
from frontdesk.search.words import terms

# A weight is one byte. Measured on LoCoMo (bench/memory): a saturation from 0.6 to 1.2 and a length share from 0.3 to
# 0.6 give equal results.
WEIGHT_STEPS = 255
MEMORY_BM25 = Bm25(saturation=0.9, length_share=0.4, usual_length=20, largest_weight=WEIGHT_STEPS)
# A text with more different terms is found only by its first ones.
MAX_TEXT_TERMS = 2_000


def weigh_terms(text: str) -> dict[str, int]:
    """The terms of a text, each with a weight from 1 to 255."""
    found = MEMORY_BM25.weigh([(term[:TERM_LENGTH], word) for term, word in terms(text)])
    return {term: max(1, round(weight)) for term, _, weight in islice(found, MAX_TEXT_TERMS)}


Weights: TypeAlias = NDArray[np.uint8]

# A block has a row for each of its terms, and a search reads some blocks. Larger blocks mean fewer reads, but larger
# writes with each item.
BLOCK_SIZE = 16_384
_ENTRY_STRUCT = struct.Struct("<HB")
ENTRY_TYPE = np.dtype([("at", "<u2"), ("weight", "u1")])


@dataclass(frozen=True, slots=True)
class PostingList:
    """The items that hold a term. `held_by` is how many hold it in all, estimated if only some blocks were read."""

    term: str
    numbers: Numbers
    weights: Weights
    held_by: float


def block_of(n: int) -> int:
    return n // BLOCK_SIZE


def pack_entry(n: int, weight: int) -> bytes:
    return _ENTRY_STRUCT.pack(n % BLOCK_SIZE, weight)


def unpack_entries(blocks: Sequence[tuple[int, bytes]]) -> tuple[Numbers, Weights]:
    """The numbers of the items, and the weight of the term in each."""
    found = np.frombuffer(b"".join([docs for _, docs in blocks]), ENTRY_TYPE)
    starts = np.array([block * BLOCK_SIZE for block, _ in blocks], np.int32)
    counts = np.array([len(docs) for _, docs in blocks], np.intp) // ENTRY_TYPE.itemsize
    return found["at"] + np.repeat(starts, counts), found["weight"]


def remove_entry(docs: bytes, n: int) -> bytes:
    found = np.frombuffer(docs, ENTRY_TYPE)
    return found[found["at"] != n % BLOCK_SIZE].tobytes()


def pack_terms(weights: Mapping[str, int]) -> str:
    """The terms of an item that is not in a block yet, each with its weight, as one text."""
    return " ".join(f"{term} {weight}" for term, weight in weights.items())


def unpack_terms(words: str) -> tuple[list[str], list[str]]:
    """The terms and their weights, from `pack_terms`."""
    parts = words.split(" ") if words else []
    return parts[::2], parts[1::2]


BlockRows: TypeAlias = list[tuple[int, bytes]]

# Number of blocks read first for each term. Most people have no more, and it shows how common a term is.
FIRST_BLOCKS = 2
# For a common term about this many of the newest items are read; for a rare term all, although in many blocks.
MAX_ITEMS, MAX_BLOCKS = 32_768, 128
ANY_BLOCK = 2**31 - 1

# SQLite is fastest row by row; PostgreSQL takes all rows in one statement.
_ADD_ENTRIES_SQLITE = """
INSERT INTO recall_words (user_id, term, block, docs) VALUES (?, ?, ?, ?)
ON CONFLICT (user_id, term, block) DO UPDATE SET docs = CAST(docs || excluded.docs AS BLOB)
"""
_ADD_ENTRIES_POSTGRESQL = text(
    """
    INSERT INTO recall_words AS held (user_id, term, block, docs)
    SELECT :user_id, given.term, given.block, decode(given.docs, 'hex')
    FROM json_to_recordset(CAST(:rows AS json)) AS given (term text, block int, docs text)
    ON CONFLICT (user_id, term, block) DO UPDATE SET docs = held.docs || excluded.docs
    """
)
_SELECT_POSTINGS = select(recall_words.c.term, recall_words.c.docs).where(
    recall_words.c.user_id == bindparam("user_id"),
    recall_words.c.block == bindparam("block"),
    one_of(recall_words.c.term, "terms"),
)
_IS_POSTINGS = (
    recall_words.c.user_id == bindparam("whose"),
    recall_words.c.block == bindparam("which"),
    recall_words.c.term == bindparam("of_term"),
)
_REPLACE_POSTINGS = update(recall_words).where(*_IS_POSTINGS).values(docs=bindparam("kept"))
_DELETE_POSTINGS = delete(recall_words).where(*_IS_POSTINGS)
_INSERT_UNFOLDED = insert(recall_loose)
_IS_UNFOLDED = recall_loose.c.user_id == bindparam("whose")
_SELECT_UNFOLDED = select(recall_loose.c.n, recall_loose.c.words).where(_IS_UNFOLDED)
_DELETE_UNFOLDED = delete(recall_loose).where(_IS_UNFOLDED)
_DELETE_ONE_UNFOLDED = delete(recall_loose).where(_IS_UNFOLDED, recall_loose.c.n == bindparam("number"))


def add_postings(transaction: PersonTransaction, n: int, weights: Mapping[str, int]) -> None:
    """Add the terms of an item; for now they are stored with the item."""
    transaction.connection.execute(
        _INSERT_UNFOLDED, {"user_id": transaction.user_id, "n": n, "words": pack_terms(weights)}
    )


def fold_postings(transaction: PersonTransaction, at_least: int = 1) -> None:
    """Move the terms stored with items into the blocks, if at least `at_least` items have such terms."""
    rows = transaction.connection.execute(_SELECT_UNFOLDED, {"whose": transaction.user_id}).all()
    if len(rows) < at_least:
        return
    gathered: dict[tuple[str, int], bytes] = {}
    for n, words in rows:
        for term, weight in zip(*unpack_terms(words), strict=True):
            key = (term, block_of(n))
            gathered[key] = gathered.get(key, b"") + pack_entry(n, int(weight))
    _add_entries(transaction, gathered)
    transaction.connection.execute(_DELETE_UNFOLDED, {"whose": transaction.user_id})


def remove_postings(transaction: PersonTransaction, n: int, terms: Sequence[str]) -> None:
    """Remove an item from its terms. `terms` must be all of them."""
    if transaction.connection.execute(_DELETE_ONE_UNFOLDED, {"whose": transaction.user_id, "number": n}).rowcount:
        return
    block = block_of(n)
    given = {"user_id": transaction.user_id, "block": block, "terms": list(terms)}
    left = {row.term: remove_entry(row.docs, n) for row in transaction.connection.execute(_SELECT_POSTINGS, given)}
    row = {"whose": transaction.user_id, "which": block}
    kept = [{**row, "of_term": term, "kept": docs} for term, docs in left.items() if docs]
    gone = [{**row, "of_term": term} for term, docs in left.items() if not docs]
    if kept:
        transaction.connection.execute(_REPLACE_POSTINGS, kept)
    if gone:
        transaction.connection.execute(_DELETE_POSTINGS, gone)


def find_postings(transaction: PersonTransaction, terms: Sequence[str], last: int) -> list[PostingList]:
    """The postings of each term that an item has. `last` is the number of the person's last item."""
    if not terms:
        return []
    # Read before the blocks, because another process may fold them meanwhile: a duplicate is better than a miss.
    loose = _find_unfolded(transaction, frozenset(terms))
    read = _fetch_blocks(transaction, dict.fromkeys(terms, (FIRST_BLOCKS, ANY_BLOCK)))
    more = {
        term: (_count_more_blocks(rows, last), rows[-1][0])
        for term, rows in read.items()
        if _count_more_blocks(rows, last)
    }
    for term, rows in _fetch_blocks(transaction, more).items():
        read[term].extend(rows)
    cut_off = {
        term for term, rows in read.items() if len(rows) == FIRST_BLOCKS + (more[term][0] if term in more else 0)
    }
    return [
        _posting_list(term, read.get(term, []), loose.get(term, []), last if term in cut_off else None)
        for term in terms
        if term in read or term in loose
    ]


def _find_unfolded(transaction: PersonTransaction, terms: frozenset[str]) -> dict[str, list[tuple[int, int]]]:
    """For each term, the items that are not folded and contain it, with its weight in each."""
    found: dict[str, list[tuple[int, int]]] = {}
    for n, words in transaction.connection.execute(_SELECT_UNFOLDED, {"whose": transaction.user_id}):
        held, weights = unpack_terms(words)
        for term in terms.intersection(held):
            found.setdefault(term, []).append((n, int(weights[held.index(term)])))
    return found


def _count_more_blocks(rows: BlockRows, last: int) -> int:
    """How many more blocks of a term are worth reading."""
    if len(rows) < FIRST_BLOCKS:
        return 0
    read = _count_entries(rows)
    in_a_block = read * BLOCK_SIZE / _count_covered(rows, last)
    return max(0, min(MAX_BLOCKS, int((MAX_ITEMS - read) / in_a_block)))


def _posting_list(term: str, rows: BlockRows, loose: list[tuple[int, int]], last: int | None) -> PostingList:
    """`last` is the number of the last item if blocks are missing: these are assumed to be like the read ones."""
    own = np.array(loose, np.int32).reshape(-1, 2)
    folded, folded_weights = unpack_entries(rows)
    numbers = np.concatenate([own[:, 0], folded])
    weights = np.concatenate([own[:, 1].astype(np.uint8), folded_weights])
    held_by = len(numbers) if last is None else len(numbers) * last / _count_covered(rows, last)
    return PostingList(term, numbers, weights, max(len(numbers), held_by))


def _count_entries(rows: BlockRows) -> int:
    return sum(len(docs) for _, docs in rows) // ENTRY_TYPE.itemsize


def _count_covered(rows: BlockRows, last: int) -> int:
    """How many item numbers these blocks cover, from the oldest block on."""
    return max(1, last + 1 - rows[-1][0] * BLOCK_SIZE)


def _fetch_blocks(transaction: PersonTransaction, wanted: Mapping[str, tuple[int, int]]) -> Mapping[str, BlockRows]:
    """The newest blocks of each term. `wanted` has for each term their number, and the block below which they are."""
    if not wanted:
        return {}
    given: dict[str, str | int] = {"user_id": transaction.user_id}
    for place, (term, (count, below)) in enumerate(wanted.items()):
        given |= {f"term_{place}": term, f"count_{place}": count, f"below_{place}": below}
    found: defaultdict[str, BlockRows] = defaultdict(list)
    for term, block, docs in transaction.connection.execute(_newest_blocks_query(len(wanted)), given).all():
        found[term].append((block, docs))
    for rows in found.values():
        rows.sort(reverse=True)
    return found


@cache
def _newest_blocks_query(terms: int) -> TextClause:
    one = """
    SELECT * FROM (
        SELECT term, block, docs FROM recall_words
        WHERE user_id = :user_id AND term = :term_{0} AND block < :below_{0} ORDER BY block DESC LIMIT :count_{0}
    ) AS of_{0}
    """
    return text(" UNION ALL ".join(one.format(place) for place in range(terms)))


def _add_entries(transaction: PersonTransaction, gathered: Mapping[tuple[str, int], bytes]) -> None:
    if transaction.connection.dialect.name == "postgresql":
        rows = [{"term": term, "block": block, "docs": docs.hex()} for (term, block), docs in gathered.items()]
        transaction.connection.execute(
            _ADD_ENTRIES_POSTGRESQL, {"user_id": transaction.user_id, "rows": json.dumps(rows)}
        )
    elif gathered:
        each = [(transaction.user_id, term, block, docs) for (term, block), docs in sorted(gathered.items())]
        transaction.connection.exec_driver_sql(_ADD_ENTRIES_SQLITE, each)


# People at a time.
PEOPLE_BATCH = 100
_IS_PENDING = and_(
    recall_docs.c.user_id == bindparam("whose"),
    or_(recall_docs.c.model < bindparam("model"), recall_docs.c.model > bindparam("model")),
)
_SELECT_PENDING = select(recall_docs.c.n, recall_docs.c.text).where(_IS_PENDING).limit(bindparam("count"))
_SELECT_CURRENT = select(recall_docs.c.n, recall_docs.c.text, recall_docs.c.cell, recall_docs.c.vector).where(
    _IS_PENDING, one_of(recall_docs.c.n, "numbers")
)
_SAVE_VECTOR = (
    update(recall_docs)
    .where(recall_docs.c.user_id == bindparam("whose"), recall_docs.c.n == bindparam("number"))
    .values(model=bindparam("by"), vector=bindparam("means"))
)


@dataclass(frozen=True, slots=True)
class PendingText:
    """The number and the text of an item without a vector."""

    n: int
    text: str


def people_of_other_models(transaction: PersonTransaction, model: int) -> Sequence[str]:
    """The people whose items are assigned to another model."""
    query = select(people.c.user_id).where(people.c.model != model)
    return transaction.connection.execute(query).scalars().all()


def assign_model(transaction: PersonTransaction, model: int) -> None:
    """Assign all items of the person to this model."""
    _lock_known_person(transaction)
    transaction.connection.execute(
        update(people).where(people.c.user_id == transaction.user_id).values(model=model, unread=people.c.found)
    )


def people_with_pending(transaction: PersonTransaction, model: int) -> Sequence[str]:
    """Some people with items to embed, in random order, so that replicas take different ones."""
    theirs = or_(people.c.model.is_(None), people.c.model == model)
    query = select(people.c.user_id).where(people.c.unread > 0, theirs).order_by(func.random()).limit(PEOPLE_BATCH)
    return transaction.connection.execute(query).scalars().all()


def fetch_pending(transaction: PersonTransaction, model: int, count: int) -> Sequence[PendingText]:
    """Some of the items of a person that have no vector of this model."""
    rows = transaction.connection.execute(
        _SELECT_PENDING, {"whose": transaction.user_id, "model": model, "count": count}
    )
    return [PendingText(row.n, row.text) for row in rows]


def save_embedded(
    transaction: PersonTransaction, model: int, texts: Sequence[PendingText], vectors: NumberedVectors, *, last: bool
) -> None:
    """Store the vectors of items. An item that was changed, removed or embedded meanwhile is ignored.

    After the `last` batch, the items without a vector are counted again, to correct the running count.
    """
    _lock_known_person(transaction)
    said = {one.n: one.text for one in texts}
    asked = {"whose": transaction.user_id, "model": model, "numbers": list(said)}
    rows = [row for row in transaction.connection.execute(_SELECT_CURRENT, asked) if row.text == said[row.n]]
    for row in rows:
        if row.cell is not None:
            remove_vector(transaction, row.cell, row.n, row.vector)
    if rows:
        _save_vectors(transaction, model, vectors[np.isin(vectors.numbers, [row.n for row in rows])])
    _update_pending(transaction, model, None if last else len(rows))


def _lock_known_person(transaction: PersonTransaction) -> None:
    """Lock the person's records. Someone who was erased meanwhile is not created again."""
    query = select(people.c.numbered).where(people.c.user_id == transaction.user_id).with_for_update()
    if not transaction.connection.execute(query).scalar_one():
        raise NotFound("Nothing is kept of this person any more")


def _save_vectors(transaction: PersonTransaction, model: int, vectors: NumberedVectors) -> None:
    kept = [
        {"whose": transaction.user_id, "number": n, "by": model, "means": vector}
        for n, vector in vectors.single_vectors()
    ]
    transaction.connection.execute(_SAVE_VECTOR, kept)
    save_cells(transaction, place_vectors(transaction, model, vectors))


def _update_pending(transaction: PersonTransaction, model: int, read: int | None) -> None:
    """Reduce the count of items without a vector, or count them again; at zero, delete other models' vectors."""
    settled = update(people).where(people.c.user_id == transaction.user_id)
    if read is not None:
        transaction.connection.execute(settled.values(model=model, unread=people.c.unread - read))
        return
    counted = select(func.count()).select_from(recall_docs).where(_IS_PENDING)
    left = transaction.connection.execute(counted, {"whose": transaction.user_id, "model": model}).scalar_one()
    transaction.connection.execute(settled.values(model=model, unread=left))
    if not left:
        delete_other_models(transaction, model)


NO_MODEL = 0
# With more items than this, their terms are folded into the blocks.
FOLD_AFTER = 64
INDEX_TABLES = (recall_docs, recall_loose, recall_words, recall_regions, recall_cells)

_DOCUMENT_COLUMNS = ("n", "text", "model", "cell", "vector")
_IS_DOCUMENT = (recall_docs.c.user_id == bindparam("whose"), recall_docs.c.item_id == bindparam("item"))
_SELECT_DOCUMENT = select(*(recall_docs.c[name] for name in _DOCUMENT_COLUMNS)).where(*_IS_DOCUMENT)
# Each change starts with one of these, and so waits for other changes to the same person's records.
_LOCK_MODEL = (
    select(func.coalesce(people.c.model, NO_MODEL)).where(people.c.user_id == bindparam("whose")).with_for_update()
)
_UPDATE_COUNTS: Any = (
    update(people)
    .where(people.c.user_id == bindparam("whose"))
    .values(
        found=people.c.found + bindparam("more"),
        unread=people.c.unread + bindparam("more_unread"),
        numbered=people.c.numbered + bindparam("new"),
    )
    .returning(people.c.numbered)
)
_INSERT_DOCUMENT = insert(recall_docs)
_REPLACE_TEXT = (
    update(recall_docs).where(*_IS_DOCUMENT).values(text=bindparam("said"), model=NO_MODEL, cell=None, vector=None)
)
_DELETE_DOCUMENT = delete(recall_docs).where(*_IS_DOCUMENT)


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """What is indexed of an item."""

    n: int
    text: str
    model: int
    cell: int | None
    vector: bytes | None

    def was_embedded(self, model: int) -> bool:
        """Whether the vector is from the model that the person is assigned to."""
        return self.model == model != NO_MODEL


def index_item(transaction: PersonTransaction, item_id: str, text: str) -> None:
    """Index an item under a text, which replaces its former text."""
    doc = _fetch_document(transaction, item_id)
    if doc is None:
        _insert_document(transaction, item_id, text)
    elif doc.text != text:
        _replace_text(transaction, item_id, text)


def unindex_item(transaction: PersonTransaction, item_id: str) -> None:
    """Remove an item from the index."""
    model = _lock_model(transaction)
    doc = _fetch_document(transaction, item_id)
    if doc is not None:
        _update_counts(transaction, found=-1, unread=0 if doc.was_embedded(model) else -1)
        _remove_terms_and_vector(transaction, doc)
        transaction.connection.execute(_DELETE_DOCUMENT, {"whose": transaction.user_id, "item": item_id})


def clear_index(transaction: PersonTransaction) -> None:
    """Remove all items of the person from the index."""
    for table in INDEX_TABLES:
        transaction.connection.execute(delete(table).where(table.c.user_id == transaction.user_id))
    transaction.connection.execute(
        update(people).where(people.c.user_id == transaction.user_id).values(found=0, unread=0)
    )


def _insert_document(transaction: PersonTransaction, item_id: str, text: str) -> None:
    n = _update_counts(transaction, found=1, unread=1, new=1)
    row = {"user_id": transaction.user_id, "n": n, "item_id": item_id, "text": text, "model": NO_MODEL}
    transaction.connection.execute(_INSERT_DOCUMENT, row)
    add_postings(transaction, n, weigh_terms(text))
    if n % FOLD_AFTER == 0:
        fold_postings(transaction)


def _replace_text(transaction: PersonTransaction, item_id: str, text: str) -> None:
    model = _lock_model(transaction)
    # Read again under the lock: the item may have been embedded meanwhile.
    doc = _fetch_document(transaction, item_id)
    if doc is None:
        return
    _update_counts(transaction, found=0, unread=1 if doc.was_embedded(model) else 0)
    _remove_terms_and_vector(transaction, doc)
    transaction.connection.execute(_REPLACE_TEXT, {"whose": transaction.user_id, "item": item_id, "said": text})
    add_postings(transaction, doc.n, weigh_terms(text))
    fold_postings(transaction, FOLD_AFTER)


def _fetch_document(transaction: PersonTransaction, item_id: str) -> IndexedDocument | None:
    row = transaction.connection.execute(
        _SELECT_DOCUMENT, {"whose": transaction.user_id, "item": item_id}
    ).one_or_none()
    return None if row is None else IndexedDocument(*row)


def _lock_model(transaction: PersonTransaction) -> int:
    """The model that the person is assigned to. Locks it until the end of the transaction."""
    return transaction.connection.execute(_LOCK_MODEL, {"whose": transaction.user_id}).scalar_one_or_none() or NO_MODEL


def _update_counts(transaction: PersonTransaction, *, found: int, unread: int, new: int = 0) -> int:
    """Change the person's counts. Returns the number of the last item."""
    given = {"whose": transaction.user_id, "more": found, "more_unread": unread, "new": new}
    return transaction.connection.execute(_UPDATE_COUNTS, given).scalar_one()


def _remove_terms_and_vector(transaction: PersonTransaction, doc: IndexedDocument) -> None:
    remove_postings(transaction, doc.n, list(weigh_terms(doc.text)))
    if doc.cell is not None and doc.vector is not None:
        remove_vector(transaction, doc.cell, doc.n, doc.vector)
