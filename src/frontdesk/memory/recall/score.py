"""Makes one score from 0 to 1 of what speaks for an item."""

import math

# An item that shares no word must be so near at least.
NEAR = 0.1
EVEN, STEEPNESS = 0.9, 5.0


def score(evidence: float) -> float:
    return round(1 / (1 + math.exp(-STEEPNESS * (evidence - EVEN))), 3)
