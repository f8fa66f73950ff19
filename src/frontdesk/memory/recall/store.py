"""What can be found of a person's items: their words and, once they were read, their meaning."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from frontdesk.db.schema import people, recall_cells, recall_docs, recall_loose, recall_regions, recall_words
from frontdesk.memory.recall.meaning import store as meaning
from frontdesk.memory.recall.postings import store as postings
from frontdesk.memory.recall.postings.weighing import weights
from frontdesk.memory.store import Mine

UNREAD = 0
# So many items are found by words of their own before these are folded into those of all: to write each word of each
# item where it belongs would touch a page of the database for every word.
LOOSE = 64
TABLES = (recall_docs, recall_loose, recall_words, recall_regions, recall_cells)

_COLUMNS = ("n", "text", "model", "cell", "vector")
_IS_ITS = (recall_docs.c.user_id == bindparam("whose"), recall_docs.c.item_id == bindparam("item"))
_DOC = select(*(recall_docs.c[name] for name in _COLUMNS)).where(*_IS_ITS)
# One of these comes first in each change: whoever else changes what is this person's waits for it.
_MODEL = select(func.coalesce(people.c.model, UNREAD)).where(people.c.user_id == bindparam("whose")).with_for_update()
_COUNT: Any = (
    update(people)
    .where(people.c.user_id == bindparam("whose"))
    .values(
        found=people.c.found + bindparam("more"),
        unread=people.c.unread + bindparam("more_unread"),
        numbered=people.c.numbered + bindparam("new"),
    )
    .returning(people.c.numbered)
)
_ADD = insert(recall_docs)
_SAY_ANEW = update(recall_docs).where(*_IS_ITS).values(text=bindparam("said"), model=UNREAD, cell=None, vector=None)
_REMOVE = delete(recall_docs).where(*_IS_ITS)


@dataclass(frozen=True, slots=True)
class Doc:
    """An item as it is found now."""

    n: int
    text: str
    model: int
    cell: int | None
    vector: bytes | None

    def was_read(self, model: int) -> bool:
        """By the model that is to read it."""
        return self.model == model != UNREAD


def put(mine: Mine, item_id: str, text: str) -> None:
    """Have an item found by this text from now on, instead of the one it was found by before."""
    doc = _doc(mine, item_id)
    if doc is None:
        _add(mine, item_id, text)
    elif doc.text != text:
        _change(mine, item_id, text)


def remove(mine: Mine, item_id: str) -> None:
    """Have an item found no longer."""
    model = _hold(mine)
    doc = _doc(mine, item_id)
    if doc is not None:
        _count(mine, found=-1, unread=0 if doc.was_read(model) else -1)
        _forget(mine, doc)
        mine.connection.execute(_REMOVE, {"whose": mine.user_id, "item": item_id})


def clear(mine: Mine) -> None:
    """Have nothing of this person found."""
    for table in TABLES:
        mine.connection.execute(delete(table).where(table.c.user_id == mine.user_id))
    mine.connection.execute(update(people).where(people.c.user_id == mine.user_id).values(found=0, unread=0))


def _add(mine: Mine, item_id: str, text: str) -> None:
    n = _count(mine, found=1, unread=1, new=1)
    row = {"user_id": mine.user_id, "n": n, "item_id": item_id, "text": text, "model": UNREAD}
    mine.connection.execute(_ADD, row)
    postings.add(mine, n, weights(text))
    if n % LOOSE == 0:
        postings.fold(mine)


def _change(mine: Mine, item_id: str, text: str) -> None:
    model = _hold(mine)
    # Once more: it may have been read meanwhile.
    doc = _doc(mine, item_id)
    if doc is None:
        return
    _count(mine, found=0, unread=1 if doc.was_read(model) else 0)
    _forget(mine, doc)
    mine.connection.execute(_SAY_ANEW, {"whose": mine.user_id, "item": item_id, "said": text})
    postings.add(mine, doc.n, weights(text))
    postings.fold(mine, LOOSE)


def _doc(mine: Mine, item_id: str) -> Doc | None:
    row = mine.connection.execute(_DOC, {"whose": mine.user_id, "item": item_id}).one_or_none()
    return None if row is None else Doc(*row)


def _hold(mine: Mine) -> int:
    """The model that is to read what is this person's, which nobody else changes until the end."""
    return mine.connection.execute(_MODEL, {"whose": mine.user_id}).scalar_one_or_none() or UNREAD


def _count(mine: Mine, *, found: int, unread: int, new: int = 0) -> int:
    """The last number that was given."""
    given = {"whose": mine.user_id, "more": found, "more_unread": unread, "new": new}
    return mine.connection.execute(_COUNT, given).scalar_one()


def _forget(mine: Mine, doc: Doc) -> None:
    """What it was found by."""
    postings.take_out(mine, doc.n, list(weights(doc.text)))
    if doc.cell is not None and doc.vector is not None:
        meaning.take_out(mine, doc.cell, doc.n, doc.vector)
