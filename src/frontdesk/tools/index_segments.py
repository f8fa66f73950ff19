"""Holds tools for search in immutable segments, so that readers never wait for writers; defines documents, queries and
hits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from frontdesk.mcp_client.model import api_name
from frontdesk.search import vectors
from frontdesk.search.bm25 import InvertedIndex, Mask, build_inverted_index, merge_inverted_indexes, weigh_terms
from frontdesk.search.vectors import Floats, QuantisedVectors
from frontdesk.tools.model import ToolKind

HITS_LIMIT = 10


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """A tool as search sees it. `parameter_texts` is what the schema says about the parameters, run together."""

    id: str
    server: str
    name: str
    description: str
    parameters: tuple[str, ...] = ()
    kind: ToolKind = ToolKind.MCP
    parameter_texts: str = ""

    @property
    def fields(self) -> tuple[str, str, str, str]:
        """The texts that are weighed apart, in the order of `bm25.FIELDS`."""
        return self.name, self.server, self.description, f"{' '.join(self.parameters)} {self.parameter_texts}"


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """What is looked for, and among what.

    `vectors`: a row for each of `clauses(text)`, the whole text first; None searches by words alone. `past`: how well a
    tool answered like queries before, from 0 to 1 by tool id.
    """

    text: str
    vectors: NDArray[np.float32] | None = None
    limit: int = HITS_LIMIT
    min_score: float = 0.0
    allowed: Callable[[str], bool] | None = None
    servers: frozenset[str] | None = None
    kinds: frozenset[ToolKind] | None = None
    past: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A tool that was found, and why: the words it shares, how near it is in meaning, what it was good for before."""

    id: str
    score: float
    words: tuple[str, ...] = ()
    meaning: float = 0.0
    past_use: float = 0.0
    exact: bool = False


def name_key(called: str) -> int:
    """A number for a name, whatever its case: a dictionary of three names a tool would take ten times the memory."""
    return hash(called.strip().casefold())


@dataclass(frozen=True, slots=True)
class NameIndex:
    """Numbers of names in ascending order, and the row each leads to."""

    numbers: NDArray[np.int64]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, docs: Sequence[ToolDocument]) -> "NameIndex":
        pairs = {
            (name_key(called), row)
            for row, doc in enumerate(docs)
            for called in (doc.id, doc.name, api_name(doc.server, doc.name, {}))
        }
        numbers = np.fromiter((number for number, _ in pairs), np.int64, len(pairs))
        rows = np.fromiter((row for _, row in pairs), np.int32, len(pairs))
        return _sort_by_key(numbers, rows)

    def find(self, called: str) -> NDArray[np.int32]:
        number = name_key(called)
        start, end = self.numbers.searchsorted(number), self.numbers.searchsorted(number, "right")
        return self.rows[start:end]

    def live_part(self, live: NDArray[np.bool_], offset: int) -> "NameIndex":
        """Without the rows that are gone, the others numbered anew from `offset`."""
        renumbered = np.cumsum(live, dtype=np.int32) + np.int32(offset - 1)
        still = live[self.rows]
        return NameIndex(self.numbers[still], renumbered[self.rows[still]])


def join_name_indexes(parts: Sequence[NameIndex]) -> NameIndex:
    return _sort_by_key(np.concatenate([part.numbers for part in parts]), np.concatenate([part.rows for part in parts]))


def _sort_by_key(numbers: NDArray[np.int64], rows: NDArray[np.int32]) -> NameIndex:
    order = np.argsort(numbers, kind="stable")
    return NameIndex(numbers[order], rows[order])


# A segment this many times as large as the next is left alone: small changes do not rewrite the bulk.
SEGMENT_RATIO = 4


@dataclass(frozen=True, slots=True)
class RowLabels:
    """One label a row, such as its server: each name once, and its number in every row."""

    names: tuple[str, ...]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, labels: Sequence[str]) -> "RowLabels":
        names = {name: number for number, name in enumerate(dict.fromkeys(labels))}
        return cls(tuple(names), np.fromiter((names[label] for label in labels), np.int32, len(labels)))

    def among(self, wanted: frozenset[str]) -> Mask:
        return np.array([name in wanted for name in self.names], np.bool_)[self.numbers]

    def live_labels(self, live: Mask) -> list[str]:
        return [self.names[number] for number in self.numbers[live].tolist()]


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """Tools row by row. `live`: those neither removed nor replaced since."""

    ids: list[str]
    digests: NDArray[np.int64]
    keys: NameIndex
    servers: RowLabels
    kinds: RowLabels
    words: InvertedIndex
    meaning: QuantisedVectors | None
    live: Mask

    @classmethod
    def of(cls, docs: Sequence[ToolDocument]) -> "IndexSegment":
        return cls(
            ids=[doc.id for doc in docs],
            digests=np.fromiter((hash(doc) for doc in docs), np.int64, len(docs)),
            keys=NameIndex.of(docs),
            servers=RowLabels.of([doc.server for doc in docs]),
            kinds=RowLabels.of([doc.kind for doc in docs]),
            words=build_inverted_index(weigh_terms(doc.fields) for doc in docs),
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

    def without(self, rows: Sequence[int]) -> "IndexSegment":
        live = self.live.copy()
        live[list(rows)] = False
        return replace(self, live=live)

    def with_vectors(self, rows: Sequence[int], found: Floats) -> "IndexSegment":
        """This with the vectors of some rows."""
        before = QuantisedVectors.empty(len(self.ids), found.shape[1]) if self.meaning is None else self.meaning
        return replace(self, meaning=before.with_rows(np.array(rows, np.intp), found))

    def living_ids(self) -> list[str]:
        return [self.ids[row] for row in np.flatnonzero(self.live).tolist()]

    @property
    def unread(self) -> int:
        """How many tools have no vector yet."""
        lacking = self.live if self.meaning is None else self.live & ~self.meaning.ready
        return int(np.count_nonzero(lacking))

    def ids_without_vector(self) -> list[str]:
        """The tools whose meaning is not known yet."""
        lacking = self.live if self.meaning is None else self.live & ~self.meaning.ready
        return [self.ids[row] for row in np.flatnonzero(lacking).tolist()]


def join_segments(parts: Sequence[IndexSegment]) -> IndexSegment:
    """The living tools of the parts as one segment."""
    lives = [part.live for part in parts]
    offsets = list(accumulate((part.living for part in parts), initial=0))
    return IndexSegment(
        ids=[part.ids[row] for part in parts for row in np.flatnonzero(part.live).tolist()],
        digests=np.concatenate([part.digests[part.live] for part in parts]),
        keys=join_name_indexes(
            [part.keys.live_part(part.live, offset) for part, offset in zip(parts, offsets, strict=False)]
        ),
        servers=RowLabels.of([label for part in parts for label in part.servers.live_labels(part.live)]),
        kinds=RowLabels.of([label for part in parts for label in part.kinds.live_labels(part.live)]),
        words=merge_inverted_indexes([(part.words, live) for part, live in zip(parts, lives, strict=True)]),
        meaning=vectors.join_vectors([(part.meaning, live) for part, live in zip(parts, lives, strict=True)]),
        live=np.ones(offsets[-1], np.bool_),
    )


def merge_segments(segments: Sequence[IndexSegment]) -> tuple[IndexSegment, ...]:
    """Few segments, each much larger than the next, none mostly of tools that are gone."""
    kept: list[IndexSegment] = []
    for segment in segments:
        living = segment.living
        if living:
            kept.append(segment if 2 * living >= len(segment.ids) else join_segments([segment]))
    while len(kept) > 1 and len(kept[-2].ids) < SEGMENT_RATIO * len(kept[-1].ids):
        kept[-2:] = [join_segments(kept[-2:])]
    return tuple(kept)
