"""Weighs the words of a tool by BM25F: a word of the name counts more than one of the description.

What a word weighs in a tool depends on that tool alone: its fields are held against usual lengths, not against the
catalogue's averages. So tools come and go without touching the others, and only a word's rarity depends on them all.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from frontdesk.words import terms

SATURATION = 2.5
# As if so many tools more were known, none of them with a word of the query: a word that each of three tools holds is
# still a rare word.
OTHERS = 300


@dataclass(frozen=True, slots=True)
class Field:
    """How much a word counts in one part of a tool, and how many words that part usually has."""

    weight: float
    usual: int


NAME, SERVER, DESCRIPTION, PARAMETERS = Field(3.0, 3), Field(1.0, 3), Field(1.0, 14), Field(1.0, 20)
FIELDS = (NAME, SERVER, DESCRIPTION, PARAMETERS)


def weigh(texts: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """Each term of a tool, given as the texts of its fields, with a word that shows it and its weight from 0 to 1."""
    summed: dict[str, tuple[str, float]] = {}
    for field, text in zip(FIELDS, texts, strict=True):
        held = terms(text)
        # By the logarithm of the length: some servers describe their tools in pages, and those count as well.
        each = field.weight * math.log1p(field.usual) / math.log1p(max(len(held), 1))
        for term, word in held:
            shown, before = summed.get(term, (word, 0.0))
            summed[term] = (shown, before + each)
    for term, (word, weight) in summed.items():
        yield term, word, weight / (SATURATION + weight)


def rarity(held_by: int, tools: int) -> float:
    """How much a term tells tools apart: the fewer hold it, the more."""
    return math.log1p((tools + OTHERS - held_by + 0.5) / (held_by + 0.5))
