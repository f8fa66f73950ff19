"""Holds tools for search in immutable segments, so that readers never wait for writers.

Also defines the documents, queries and hits of tool search.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from frontdesk.mcp_client.model import api_name
from frontdesk.search.bm25 import Bm25, InvertedIndex, TextField, build_inverted_index, merge_inverted_indexes
from frontdesk.search.vectors import Floats, Mask, QuantisedVectors, join_vectors
from frontdesk.search.words import terms
from frontdesk.tools.model import ToolKind

HITS_LIMIT = 10
# Name, server, description and parameters, each with its weight and usual length.
TOOL_BM25 = Bm25(saturation=2.5, fields=(TextField(3.0, 3), TextField(1.0, 3), TextField(1.0, 14), TextField(1.0, 20)))


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """A tool as search sees it. `parameter_texts` has the descriptions of all parameters, joined."""

    id: str
    server: str
    name: str
    description: str
    parameters: tuple[str, ...] = ()
    kind: ToolKind = ToolKind.MCP
    parameter_texts: str = ""

    @property
    def fields(self) -> tuple[str, str, str, str]:
        """The texts of the fields of `TOOL_BM25`."""
        return self.name, self.server, self.description, f"{' '.join(self.parameters)} {self.parameter_texts}"


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """What to search for, and among which tools.

    `vectors`: one row for each of `split_clauses(text)`, the whole text first; with None, the search uses words alone.
    `past`: how well a tool answered similar queries before, from 0 to 1, by tool id.
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
    """A found tool and the reasons: shared words, nearness of meaning, past use, and whether the query named it."""

    id: str
    score: float
    words: tuple[str, ...] = ()
    meaning: float = 0.0
    past_use: float = 0.0
    exact: bool = False


def name_key(called: str) -> int:
    """A number for a name in any case. A dictionary with three names per tool would need ten times the memory."""
    return hash(called.strip().casefold())


@dataclass(frozen=True, slots=True)
class NameIndex:
    """The numbers of names in ascending order, and the row of each."""

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
        """The live rows only, with new numbers from `offset` on."""
        renumbered = np.cumsum(live, dtype=np.int32) + np.int32(offset - 1)
        still = live[self.rows]
        return NameIndex(self.numbers[still], renumbered[self.rows[still]])


def join_name_indexes(parts: Sequence[NameIndex]) -> NameIndex:
    return _sort_by_key(np.concatenate([part.numbers for part in parts]), np.concatenate([part.rows for part in parts]))


def _sort_by_key(numbers: NDArray[np.int64], rows: NDArray[np.int32]) -> NameIndex:
    order = np.argsort(numbers, kind="stable")
    return NameIndex(numbers[order], rows[order])


# A segment that is this many times larger than the next is not merged, so small changes do not rewrite it.
SEGMENT_RATIO = 4


@dataclass(frozen=True, slots=True)
class RowLabels:
    """One label for each row, such as its server. Each name is stored once, and its number in every row."""

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
    """Tools, one per row. `live` marks the tools that were neither removed nor replaced."""

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
            words=build_inverted_index(TOOL_BM25.weigh(*map(terms, doc.fields)) for doc in docs),
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
        """The row of a tool; None if it is not in this segment."""
        return next(
            (row for row in self.keys.find(tool_id).tolist() if self.live[row] and self.ids[row] == tool_id), None
        )

    def without(self, rows: Sequence[int]) -> "IndexSegment":
        live = self.live.copy()
        live[list(rows)] = False
        return replace(self, live=live)

    def with_vectors(self, rows: Sequence[int], found: Floats) -> "IndexSegment":
        """A copy with the vectors of some rows set."""
        before = QuantisedVectors.empty(len(self.ids), found.shape[1]) if self.meaning is None else self.meaning
        return replace(self, meaning=before.with_rows(np.array(rows, np.intp), found))

    def ids_of(self, rows: Mask) -> list[str]:
        return [self.ids[row] for row in np.flatnonzero(rows).tolist()]

    @property
    def without_vector(self) -> Mask:
        """A mask of the tools without a vector."""
        return self.live if self.meaning is None else self.live & ~self.meaning.ready


def join_segments(parts: Sequence[IndexSegment]) -> IndexSegment:
    """Join the live tools of the parts into one segment."""
    lives = [part.live for part in parts]
    offsets = list(accumulate((part.living for part in parts), initial=0))
    return IndexSegment(
        ids=[tool_id for part in parts for tool_id in part.ids_of(part.live)],
        digests=np.concatenate([part.digests[part.live] for part in parts]),
        keys=join_name_indexes(
            [part.keys.live_part(part.live, offset) for part, offset in zip(parts, offsets, strict=False)]
        ),
        servers=RowLabels.of([label for part in parts for label in part.servers.live_labels(part.live)]),
        kinds=RowLabels.of([label for part in parts for label in part.kinds.live_labels(part.live)]),
        words=merge_inverted_indexes([(part.words, live) for part, live in zip(parts, lives, strict=True)]),
        meaning=join_vectors([(part.meaning, live) for part, live in zip(parts, lives, strict=True)]),
        live=np.ones(offsets[-1], np.bool_),
    )


def merge_segments(segments: Sequence[IndexSegment]) -> tuple[IndexSegment, ...]:
    """Keep few segments, each much larger than the next, and none with mostly dead tools."""
    kept: list[IndexSegment] = []
    for segment in segments:
        living = segment.living
        if living:
            kept.append(segment if 2 * living >= len(segment.ids) else join_segments([segment]))
    while len(kept) > 1 and len(kept[-2].ids) < SEGMENT_RATIO * len(kept[-1].ids):
        kept[-2:] = [join_segments(kept[-2:])]
    return tuple(kept)
