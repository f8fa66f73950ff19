"""Makes a score from 0 to 1 of what speaks for an item: the share of what could speak for one that does.

All that could is each word of the query that the person ever used, said once in a text of usual length, and a meaning
that is the query's own. So the score of a hit does not depend on the other hits, and the best of a bad lot scores low.
"""

from frontdesk.memory.recall.rank import WORDS

# An item that shares no word must be so near at least. Of the right answers in LoCoMo, one in a hundred is farther.
NEAR = 0.18


def score(evidence: float, words: float, *, by_meaning: bool) -> float:
    """`words` is what all words of the query would tell."""
    possible = WORDS * words + (1.0 if by_meaning else 0.0)
    return round(min(1.0, max(0.0, evidence / possible)), 3) if possible > 0 else 0.0
