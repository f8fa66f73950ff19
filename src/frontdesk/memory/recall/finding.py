"""One search over a person's records, from the terms of the query to the hits."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.db.tables.recall import TERM_LENGTH
from frontdesk.memory.model import Item
from frontdesk.memory.recall import score
from frontdesk.memory.recall.evidence import Evidence, Numbers
from frontdesk.memory.recall.looking import store as looking
from frontdesk.memory.recall.meaning import store as meaning
from frontdesk.memory.recall.model import Hit, Query, Way
from frontdesk.memory.recall.postings import store as postings
from frontdesk.memory.recall.rank import BESIDE, Ranked, ranked
from frontdesk.memory.store import Mine
from frontdesk.words import terms

Floats: TypeAlias = NDArray[np.float32]

# So many of the likeliest by words, and as many by meaning, are weighed against one another; more of them where too few
# are what was asked among.
DEPTHS = (32, 512, 4096)
MOST_TERMS = 32


@dataclass(frozen=True, slots=True)
class Meaning:
    """A text as a vector, and the number of the model that made it."""

    model: int
    vector: Floats

    @classmethod
    def of(cls, embedder: str, vector: Floats) -> "Meaning":
        return cls(meaning.number_of(embedder), vector)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, the terms to look for with the words they stand for, and its meaning where it goes by that too."""

    query: Query
    words: dict[str, str]
    meaning: Meaning | None

    @classmethod
    def of(cls, query: Query, text: str, meant: Meaning | None) -> "Asked":
        words: dict[str, str] = {}
        for term, word in terms(text) if query.how is not Way.SEMANTIC else ():
            words.setdefault(term[:TERM_LENGTH], word)
        return cls(query, dict(list(words.items())[:MOST_TERMS]), meant)


def find(mine: Mine, asked: Asked) -> list[Hit]:
    """The best first."""
    conditions = looking.asked_among(mine, asked.query)
    items, last = looking.standing(mine)
    if not items:
        return []
    evidence = _evidence(mine, asked, items, last)
    among = looking.few(mine, asked.query) if items > looking.FEW else None
    best = _best(mine, asked, evidence, conditions, among)
    whole = looking.whole(mine, [one.n for one in best])
    # One may have gone since it was looked at.
    return [_hit(one, *whole[one.n], asked, evidence) for one in best if one.n in whole]


def _evidence(mine: Mine, asked: Asked, items: int, last: int) -> Evidence:
    held = postings.find(mine, list(asked.words), last)
    if asked.meaning is None:
        return Evidence.of(held, items, np.empty(0, np.int32), np.empty(0, np.float32))
    near = meaning.near(mine, asked.meaning.model, asked.meaning.vector, every_one=items <= meaning.EVERY_ONE)
    return Evidence.of(held, items, near.numbers, near.products(asked.meaning.vector))


def _best(
    mine: Mine,
    asked: Asked,
    evidence: Evidence,
    conditions: Sequence[looking.Condition],
    among: Sequence[int] | None,
) -> list[Ranked]:
    if among is not None:
        return _weighed(mine, asked, evidence, np.array(among, np.int32), conditions)
    found: list[Ranked] = []
    for depth in (max(depth, asked.query.limit) for depth in DEPTHS):
        found = _weighed(mine, asked, evidence, evidence.likeliest(depth), conditions)
        if len(found) >= asked.query.limit or depth >= evidence.most:
            break
    return found


def _weighed(
    mine: Mine, asked: Asked, evidence: Evidence, numbers: Numbers, conditions: Sequence[looking.Condition]
) -> list[Ranked]:
    """These and their neighbours that are what was asked among, and for which something speaks, in order."""
    around = np.unique(np.concatenate([numbers, *(numbers + step for step in BESIDE)]))
    candidates = looking.candidates(mine, around.tolist(), conditions)
    words, nearness = evidence.about(candidates.numbers)
    if asked.meaning is not None and len(evidence.numbers):
        _look_up(mine, asked.meaning, candidates.numbers, nearness)
    found = ranked(candidates, words, nearness, mine.now)
    told = (one for one in found if one.own or one.beside or (one.nearness or 0.0) >= score.NEAR)
    return list(islice(told, asked.query.limit))


def _look_up(mine: Mine, asked: Meaning, numbers: Numbers, nearness: Floats) -> None:
    """Of those that were not in a cell that was read, the vectors are read one by one."""
    missing = numbers[np.isnan(nearness)]
    if len(missing):
        alone = meaning.alone_of(mine, asked.model, missing.tolist(), len(asked.vector))
        nearness[np.searchsorted(numbers, alone.numbers)] = alone.products(asked.vector)


def _hit(one: Ranked, item: Item, text: str, asked: Asked, evidence: Evidence) -> Hit:
    words = [asked.words[posting.term] for posting in evidence.postings]
    return Hit(
        item=item,
        text=text,
        score=score.score(one.evidence, evidence.words, by_meaning=len(evidence.numbers) > 0),
        words=[words[place] for place in one.own],
        meaning=None if one.nearness is None else round(min(1.0, max(0.0, one.nearness)), 3),
        beside=[words[place] for place in one.beside],
    )
