"""The tools of a catalogue in memory, found by words, meaning and past use."""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.search.model import Doc, Hit, Query
from frontdesk.tools.search.rank import ranked
from frontdesk.tools.search.segment import Segment, settled


class Index:
    """Safe to use from any thread: a search works on the tools as they stood when it began, and waits for nobody."""

    def __init__(self) -> None:
        self._segments: tuple[Segment, ...] = ()
        self._writing = Lock()

    def __len__(self) -> int:
        return sum(segment.living for segment in self._segments)

    def __contains__(self, tool_id: str) -> bool:
        return any(segment.row(tool_id) is not None for segment in self._segments)

    def ids(self) -> list[str]:
        """All that can be found."""
        return [tool_id for segment in self._segments for tool_id in segment.living_ids()]

    def search(self, query: Query) -> list[Hit]:
        """The best first, at most `query.limit`, none below `query.min_score`."""
        return ranked(self._segments, query)

    def put(self, docs: Iterable[Doc]) -> None:
        """Add tools, or replace those with the same id. One that did not change keeps its vector."""
        wanted = {doc.id: doc for doc in docs}
        with self._writing:
            changed = [doc for doc in wanted.values() if not self._holds(doc)]
            if changed:
                kept = _without(self._segments, _places(self._segments, [doc.id for doc in changed]))
                self._segments = settled([*kept, Segment.of(changed)])

    def remove(self, ids: Iterable[str]) -> None:
        """Take tools out; an id that is not there is passed over."""
        with self._writing:
            self._segments = settled(_without(self._segments, _places(self._segments, list(ids))))

    def set_vectors(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """What the tools mean, a row each, of length 1; an id that is not there is passed over."""
        with self._writing:
            segments = list(self._segments)
            if any(segment.dimensions not in {None, vectors.shape[1]} for segment in segments):
                raise ValueError("These vectors are of another model: drop those that are there first")
            for number, rows in _places(segments, ids).items():
                found = vectors[[place for _, place in rows]]
                segments[number] = segments[number].meaning_of([row for row, _ in rows], found)
            self._segments = tuple(segments)

    @property
    def unread(self) -> int:
        """How many tools are found by their words alone so far."""
        return sum(segment.unread for segment in self._segments)

    def missing_vectors(self) -> list[str]:
        """The tools that are found by their words alone so far."""
        return [tool_id for segment in self._segments for tool_id in segment.missing()]

    def _holds(self, doc: Doc) -> bool:
        for segment in self._segments:
            row = segment.row(doc.id)
            if row is not None:
                return bool(segment.digests[row] == hash(doc))
        return False


def _places(segments: Sequence[Segment], ids: Sequence[str]) -> Mapping[int, list[tuple[int, int]]]:
    """By segment: the rows of the tools that are there, each with the tool's place among `ids`."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place, tool_id in enumerate(ids):
        for number, segment in enumerate(segments):
            row = segment.row(tool_id)
            if row is not None:
                found.setdefault(number, []).append((row, place))
                break
    return found


def _without(segments: Sequence[Segment], places: Mapping[int, list[tuple[int, int]]]) -> list[Segment]:
    return [
        segment.without([row for row, _ in places[number]]) if number in places else segment
        for number, segment in enumerate(segments)
    ]
