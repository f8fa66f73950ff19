"""Finds rows by what a tool is called: its id, its name, or the name under which models call it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frontdesk.loop.mcp.names import api_name
from frontdesk.tools.search.model import Doc


def key(called: str) -> int:
    """A number for a name, whatever its case: a dictionary of three names a tool would take ten times the memory."""
    return hash(called.strip().casefold())


@dataclass(frozen=True, slots=True)
class Keys:
    """Numbers of names in ascending order, and the row each leads to."""

    numbers: NDArray[np.int64]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, docs: Sequence[Doc]) -> "Keys":
        pairs = {
            (key(called), row)
            for row, doc in enumerate(docs)
            for called in (doc.id, doc.name, api_name(doc.server, doc.name, {}))
        }
        numbers = np.fromiter((number for number, _ in pairs), np.int64, len(pairs))
        rows = np.fromiter((row for _, row in pairs), np.int32, len(pairs))
        return _ordered(numbers, rows)

    def find(self, called: str) -> NDArray[np.int32]:
        number = key(called)
        start, end = self.numbers.searchsorted(number), self.numbers.searchsorted(number, "right")
        return self.rows[start:end]

    def kept(self, live: NDArray[np.bool_], offset: int) -> "Keys":
        """Without the rows that are gone, the others numbered anew from `offset`."""
        renumbered = np.cumsum(live, dtype=np.int32) + np.int32(offset - 1)
        still = live[self.rows]
        return Keys(self.numbers[still], renumbered[self.rows[still]])


def joined(parts: Sequence[Keys]) -> Keys:
    return _ordered(np.concatenate([part.numbers for part in parts]), np.concatenate([part.rows for part in parts]))


def _ordered(numbers: NDArray[np.int64], rows: NDArray[np.int32]) -> Keys:
    order = np.argsort(numbers, kind="stable")
    return Keys(numbers[order], rows[order])
