"""Makes one score from 0 to 100 of what speaks for a tool, which means the same for every query and catalogue.

It is the chance that the tool is what the query is after, told from the evidence as logistic regression does. What
counts as even odds depends on the length of the query and the number of tools alone: among many tools some look alike
by chance. So tools are in the same order by score as by evidence, and the best of a bad lot scores low.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

# Evidence is counted in units of cosine: this is what a word tells against that, and a past use that is certain.
WORDS = 0.05
PAST = 1.0
# Some clause of a query is nearer to a tool than the whole by chance alone.
CLAUSE = 0.9
# Fewer tools are held to the same odds: a tool that stands alone must be as good a match as one of these.
FEWEST = 20
EXACT = 1000.0
MOST = 99.9
DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Odds:
    """How evidence turns into odds: even at `base`, more for each doubling of the query's terms and of the tools."""

    steepness: float
    base: float
    longer: float
    larger: float

    def of(self, evidence: Floats, terms: int, tools: int) -> Floats:
        """The log odds, written over the evidence."""
        even = self.base + self.longer * math.log1p(terms) + self.larger * math.log(max(tools, FEWEST))
        evidence -= np.float32(even)
        evidence *= np.float32(self.steepness)
        return evidence


WITH_MEANING = Odds(steepness=9.0, base=0.22, longer=0.05, larger=0.037)
BY_WORDS = Odds(steepness=0.8, base=-0.2, longer=0.7, larger=0.5)


def with_meaning(near: Floats, words: Floats, terms: int, tools: int) -> Floats:
    """The log odds of tools whose vectors are there."""
    evidence = words * np.float32(WORDS)
    evidence += near
    return WITH_MEANING.of(evidence, terms, tools)


def by_words(words: Floats, terms: int, tools: int) -> Floats:
    """The log odds of tools of which only the words are known."""
    return BY_WORDS.of(words.copy(), terms, tools)


def by_past(strength: float) -> float:
    """What past use adds to the log odds."""
    return WITH_MEANING.steepness * PAST * strength


def score(odds: float) -> float:
    """Log odds as a score. Only a tool that is called by its name has 100."""
    return 100.0 if odds >= EXACT / 2 else min(MOST, 100 / (1 + math.exp(-max(odds, -50.0))))
