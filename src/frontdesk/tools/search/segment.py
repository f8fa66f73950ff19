"""A part of the index that is never changed, only replaced: readers keep the one they began with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.search import keys, postings, vectors
from frontdesk.tools.search.bm25 import weigh
from frontdesk.tools.search.keys import Keys
from frontdesk.tools.search.model import Doc
from frontdesk.tools.search.postings import Mask, Postings
from frontdesk.tools.search.vectors import Floats, Vectors

# A segment this many times as large as the next is left alone: small changes do not rewrite the bulk.
APART = 4


@dataclass(frozen=True, slots=True)
class Labels:
    """One label a row, such as its server: each name once, and its number in every row."""

    names: tuple[str, ...]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, labels: Sequence[str]) -> "Labels":
        names = {name: number for number, name in enumerate(dict.fromkeys(labels))}
        return cls(tuple(names), np.fromiter((names[label] for label in labels), np.int32, len(labels)))

    def among(self, wanted: frozenset[str]) -> Mask:
        return np.array([name in wanted for name in self.names], np.bool_)[self.numbers]

    def kept(self, live: Mask) -> list[str]:
        return [self.names[number] for number in self.numbers[live].tolist()]


@dataclass(frozen=True, slots=True)
class Segment:
    """Tools row by row. `live`: those neither removed nor replaced since."""

    ids: list[str]
    digests: NDArray[np.int64]
    keys: Keys
    servers: Labels
    kinds: Labels
    words: Postings
    meaning: Vectors | None
    live: Mask

    @classmethod
    def of(cls, docs: Sequence[Doc]) -> "Segment":
        return cls(
            ids=[doc.id for doc in docs],
            digests=np.fromiter((hash(doc) for doc in docs), np.int64, len(docs)),
            keys=Keys.of(docs),
            servers=Labels.of([doc.server for doc in docs]),
            kinds=Labels.of([doc.kind for doc in docs]),
            words=postings.gather(weigh(doc.fields) for doc in docs),
            meaning=None,
            live=np.ones(len(docs), np.bool_),
        )

    @property
    def living(self) -> int:
        return int(np.count_nonzero(self.live))

    @property
    def dimensions(self) -> int | None:
        return None if self.meaning is None else self.meaning.steps.shape[1]

    def row(self, tool_id: str) -> int | None:
        """Where a tool stands, if it does."""
        return next(
            (row for row in self.keys.find(tool_id).tolist() if self.live[row] and self.ids[row] == tool_id), None
        )

    def without(self, rows: Sequence[int]) -> "Segment":
        live = self.live.copy()
        live[list(rows)] = False
        return replace(self, live=live)

    def meaning_of(self, rows: Sequence[int], found: Floats) -> "Segment":
        """This with the vectors of some rows."""
        before = Vectors.empty(len(self.ids), found.shape[1]) if self.meaning is None else self.meaning
        return replace(self, meaning=before.filled(np.array(rows, np.intp), found))

    def living_ids(self) -> list[str]:
        return [self.ids[row] for row in np.flatnonzero(self.live).tolist()]

    @property
    def unread(self) -> int:
        """How many tools have no vector yet."""
        lacking = self.live if self.meaning is None else self.live & ~self.meaning.ready
        return int(np.count_nonzero(lacking))

    def missing(self) -> list[str]:
        """The tools whose meaning is not known yet."""
        lacking = self.live if self.meaning is None else self.live & ~self.meaning.ready
        return [self.ids[row] for row in np.flatnonzero(lacking).tolist()]


def joined(parts: Sequence[Segment]) -> Segment:
    """The living tools of the parts as one segment."""
    lives = [part.live for part in parts]
    offsets = list(accumulate((part.living for part in parts), initial=0))
    return Segment(
        ids=[part.ids[row] for part in parts for row in np.flatnonzero(part.live).tolist()],
        digests=np.concatenate([part.digests[part.live] for part in parts]),
        keys=keys.joined([part.keys.kept(part.live, offset) for part, offset in zip(parts, offsets, strict=False)]),
        servers=Labels.of([label for part in parts for label in part.servers.kept(part.live)]),
        kinds=Labels.of([label for part in parts for label in part.kinds.kept(part.live)]),
        words=postings.merge([(part.words, live) for part, live in zip(parts, lives, strict=True)]),
        meaning=vectors.joined([(part.meaning, live) for part, live in zip(parts, lives, strict=True)]),
        live=np.ones(offsets[-1], np.bool_),
    )


def settled(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Few segments, each much larger than the next, none mostly of tools that are gone."""
    kept: list[Segment] = []
    for segment in segments:
        living = segment.living
        if living:
            kept.append(segment if 2 * living >= len(segment.ids) else joined([segment]))
    while len(kept) > 1 and len(kept[-2].ids) < APART * len(kept[-1].ids):
        kept[-2:] = [joined(kept[-2:])]
    return tuple(kept)
