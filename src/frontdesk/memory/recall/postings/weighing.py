"""What each word of a text weighs, by BM25 with lengths held against a usual one, and how much a word tells.

A weight depends on its own text alone, so that items come and go without touching the others.
"""

import math
from collections import Counter

from frontdesk.db.tables.recall import TERM_LENGTH
from frontdesk.words import terms

# Measured on LoCoMo (bench/memory): anything from 0.6 to 1.2 and 0.3 to 0.6 is level with these.
SATURATION, LENGTH = 0.9, 0.4
USUAL = 20
STEPS = 255
# As if the person had so many items more, none of them with a word of the query: among three items a word that one of
# them holds is still a rare word.
OTHERS = 300
# A text of more different words than these is found by the first of them.
MOST_TERMS = 2_000


def weights(text: str) -> dict[str, int]:
    """Each term of the text, with a weight from 1 to 255."""
    counts = Counter(term[:TERM_LENGTH] for term, _ in terms(text))
    even = SATURATION * (1 - LENGTH + LENGTH * counts.total() / USUAL)
    found = list(counts.items())[:MOST_TERMS]
    return {term: max(1, round(STEPS * count / (count + even))) for term, count in found}


def mention() -> int:
    """The weight of a term that is said once in a text of usual length."""
    return round(STEPS / (1 + SATURATION))


def rarity(held_by: float, items: int) -> float:
    """How much a term tells of a person's items apart, for a weight of one step: the fewer hold it, the more."""
    told = math.log1p((max(items, held_by) + OTHERS - held_by + 0.5) / (held_by + 0.5))
    return told * (1 + SATURATION) / STEPS
