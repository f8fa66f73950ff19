"""What speaks for each tool of an index as the answer to a query: shared words, near meaning, past use, its name."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.search.bm25 import rarity
from frontdesk.tools.search.model import Query
from frontdesk.tools.search.postings import Mask
from frontdesk.tools.search.segment import Segment
from frontdesk.words import terms

Floats: TypeAlias = NDArray[np.float32]

# A word of a query that is written as only names are: `create_issue`, `github::create_issue`, `createIssue`; `GitHub`
# is written so by people who mean no tool.
NAME_LIKE = re.compile(r"[\w.:/-]*(?:_|::)[\w.:/-]*\w|\b[a-z]+[A-Z]\w+")
QUOTES = " \t\r\n\"'`"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of all segments, numbered through."""

    segments: Sequence[Segment]
    starts: list[int]

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> "Rows":
        return cls(segments, list(accumulate((len(segment.ids) for segment in segments), initial=0)))

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def living(self) -> int:
        return sum(segment.living for segment in self.segments)

    def __iter__(self) -> Iterator[tuple[Segment, slice]]:
        return zip(self.segments, (slice(start, end) for start, end in pairwise(self.starts)), strict=True)

    def place(self, row: int) -> tuple[Segment, int]:
        number = bisect_right(self.starts, row) - 1
        return self.segments[number], row - self.starts[number]

    def id(self, row: int) -> str:
        segment, at = self.place(row)
        return segment.ids[at]

    def find(self, tool_id: str) -> int | None:
        for segment, at in self:
            row = segment.row(tool_id)
            if row is not None:
                return at.start + row
        return None


@dataclass(frozen=True, slots=True)
class Words:
    """What the terms of a query tell, and how much of that each row holds."""

    told: dict[str, float]
    held: Floats


def open_to(rows: Rows, query: Query) -> Mask:
    """The rows that the query may have."""
    return np.concatenate([_open(segment, query) for segment in rows.segments])


def _open(segment: Segment, query: Query) -> Mask:
    found = segment.live
    if query.servers is not None:
        found = found & segment.servers.among(query.servers)
    if query.kinds is not None:
        found = found & segment.kinds.among(query.kinds)
    return found


def shared_words(rows: Rows, text: str) -> Words:
    tools = rows.living
    parts = [(segment, at, None if segment.living == len(segment.ids) else segment.live) for segment, at in rows]
    told: dict[str, float] = {}
    held = np.zeros(len(rows), np.float32)
    for term in dict.fromkeys(term for term, _ in terms(text)):
        held_by = sum(segment.words.count(term, live) for segment, _, live in parts)
        told[term] = rarity(held_by, tools)
        if held_by:
            for segment, at, _ in parts:
                segment.words.add(held[at], term, told[term])
    return Words(told, held)


def has_meaning(rows: Rows) -> Mask | None:
    """The rows whose vectors are there; None where none is."""
    if all(segment.meaning is None for segment in rows.segments):
        return None
    return np.concatenate(
        [
            np.zeros(len(segment.ids), np.bool_) if segment.meaning is None else segment.meaning.ready
            for segment in rows.segments
        ]
    )


def nearness(rows: Rows, vectors: Floats, among: NDArray[np.intp] | None = None) -> Floats:
    """How near each row is to the nearest of the vectors, -1 to 1; with `among`, for those rows alone."""
    found = np.zeros(len(rows) if among is None else len(among), np.float32)
    for segment, at in rows:
        if segment.meaning is None:
            continue
        if among is None:
            found[at] = segment.meaning.products(vectors).max(axis=0)
        else:
            here = (among >= at.start) & (among < at.stop)
            found[here] = segment.meaning.products_of(among[here] - at.start, vectors).max(axis=0)
    return found


def past_use(rows: Rows, query: Query) -> dict[int, float]:
    placed = ((rows.find(tool_id), strength) for tool_id, strength in (query.past or {}).items())
    return {row: strength for row, strength in placed if row is not None}


def named(rows: Rows, text: str) -> frozenset[int]:
    """The rows of tools that the query calls by name, alone or among other words."""
    called = {text.strip(QUOTES), *NAME_LIKE.findall(text)}
    return frozenset(
        at.start + row
        for segment, at in rows
        for name in called
        for row in segment.keys.find(name).tolist()
        if segment.live[row]
    )
