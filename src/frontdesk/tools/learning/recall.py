"""Which tools were of use for queries like this one."""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.learning.model import Uses

# A query that is no nearer than this says nothing about another.
UNRELATED = 0.3
# Only the nearest few uses speak: else a tool that is used often would be found for everything.
NEAREST = 20
HALF_LIFE_DAYS = 90.0
# However often a tool was of use for the very same query, it counts as if that were so many.
MOST_WEIGHT = 3.0
DAY_SECONDS = 86_400.0


def recall(uses: Uses, vector: NDArray[np.float32], now: datetime) -> Mapping[str, float]:
    """How surely each tool fits, from 0 to 1: more with each use for a like query, less the longer that is ago."""
    if not len(uses):
        return {}
    likeness = np.clip((uses.vectors @ vector - UNRELATED) / (1 - UNRELATED), 0, 1)
    nearest = _nearest(likeness)
    says = likeness[nearest] * _counts(uses, nearest, now)
    summed: dict[str, float] = {}
    for row, said in zip(map(int, nearest), map(float, says), strict=True):
        if said > 0:
            tool_id = uses.tools[row]
            summed[tool_id] = summed.get(tool_id, 0.0) + said
    return {tool_id: float(-np.expm1(-said)) for tool_id, said in summed.items()}


def _nearest(likeness: NDArray[np.float32]) -> NDArray[np.intp]:
    if len(likeness) <= NEAREST:
        return np.arange(len(likeness))
    return np.argpartition(-likeness, NEAREST)[:NEAREST]


def _counts(uses: Uses, rows: NDArray[np.intp], now: datetime) -> NDArray[np.float64]:
    days = np.maximum(now.timestamp() - uses.at[rows], 0) / DAY_SECONDS
    return np.clip(uses.weights[rows], 0, MOST_WEIGHT) * 0.5 ** (days / HALF_LIFE_DAYS)
