"""What was not read yet in the database, and how it comes to be."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import and_, bindparam, func, or_, select, update

from frontdesk.db.lists import one_of
from frontdesk.db.schema import people, recall_docs
from frontdesk.errors import NotFound
from frontdesk.memory.recall.meaning import store as meaning
from frontdesk.memory.recall.meaning.packing import Bag
from frontdesk.memory.store import Mine

# People at a time.
SOME_PEOPLE = 100
_IS_UNREAD = and_(
    recall_docs.c.user_id == bindparam("whose"),
    or_(recall_docs.c.model < bindparam("model"), recall_docs.c.model > bindparam("model")),
)
_SOME = select(recall_docs.c.n, recall_docs.c.text).where(_IS_UNREAD).limit(bindparam("count"))
_AS_THEY_ARE = select(recall_docs.c.n, recall_docs.c.text, recall_docs.c.cell, recall_docs.c.vector).where(
    _IS_UNREAD, one_of(recall_docs.c.n, "numbers")
)
_KEEP = (
    update(recall_docs)
    .where(recall_docs.c.user_id == bindparam("whose"), recall_docs.c.n == bindparam("number"))
    .values(model=bindparam("by"), vector=bindparam("means"))
)


@dataclass(frozen=True, slots=True)
class Unread:
    """An item's number, and its text."""

    n: int
    text: str


def of_others(mine: Mine, model: int) -> Sequence[str]:
    """The people whose items another model was to read."""
    wanted = select(people.c.user_id).where(people.c.model != model)
    return mine.connection.execute(wanted).scalars().all()


def adopt(mine: Mine, model: int) -> None:
    """Have this model read all of the person's."""
    _hold(mine)
    mine.connection.execute(
        update(people).where(people.c.user_id == mine.user_id).values(model=model, unread=people.c.found)
    )


def people_with(mine: Mine, model: int) -> Sequence[str]:
    """Some of the people with unread items that are this model's to read, in any order, so that replicas part."""
    theirs = or_(people.c.model.is_(None), people.c.model == model)
    wanted = select(people.c.user_id).where(people.c.unread > 0, theirs).order_by(func.random()).limit(SOME_PEOPLE)
    return mine.connection.execute(wanted).scalars().all()


def some(mine: Mine, model: int, count: int) -> Sequence[Unread]:
    """Some of a person's unread items."""
    rows = mine.connection.execute(_SOME, {"whose": mine.user_id, "model": model, "count": count})
    return [Unread(row.n, row.text) for row in rows]


def keep(mine: Mine, model: int, texts: Sequence[Unread], given: Bag, *, last: bool) -> None:
    """What these items mean; one that was changed, removed or read meanwhile is passed over.

    After the `last` of them it is counted what is left, which counts as they go by may have missed.
    """
    _hold(mine)
    said = {one.n: one.text for one in texts}
    asked = {"whose": mine.user_id, "model": model, "numbers": list(said)}
    rows = [row for row in mine.connection.execute(_AS_THEY_ARE, asked) if row.text == said[row.n]]
    for row in rows:
        if row.cell is not None:
            meaning.take_out(mine, row.cell, row.n, row.vector)
    if rows:
        _keep(mine, model, given[np.isin(given.numbers, [row.n for row in rows])])
    _settle(mine, model, None if last else len(rows))


def _hold(mine: Mine) -> None:
    """Nobody else changes what is this person's; and one who was erased meanwhile does not come to be again."""
    wanted = select(people.c.numbered).where(people.c.user_id == mine.user_id).with_for_update()
    if not mine.connection.execute(wanted).scalar_one():
        raise NotFound("Nothing is kept of this person any more")


def _keep(mine: Mine, model: int, given: Bag) -> None:
    kept = [{"whose": mine.user_id, "number": n, "by": model, "means": vector} for n, vector in given.each()]
    mine.connection.execute(_KEEP, kept)
    meaning.move(mine, meaning.place(mine, model, given))


def _settle(mine: Mine, model: int, read: int | None) -> None:
    """So many less are unread, or as many as there are; once there are none, what other models made goes too."""
    settled = update(people).where(people.c.user_id == mine.user_id)
    if read is not None:
        mine.connection.execute(settled.values(model=model, unread=people.c.unread - read))
        return
    counted = select(func.count()).select_from(recall_docs).where(_IS_UNREAD)
    left = mine.connection.execute(counted, {"whose": mine.user_id, "model": model}).scalar_one()
    mine.connection.execute(settled.values(model=model, unread=left))
    if not left:
        meaning.drop_others(mine, model)
