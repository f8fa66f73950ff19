"""Combines term weights, cosines and past use into one score from 0 to 100, by logistic regression.

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
TERMS_FACTOR = 0.05
PAST_USE_FACTOR = 1.0
# Some clause of a query is nearer to a tool than the whole by chance alone.
CLAUSE_FACTOR = 0.9
# Fewer tools are held to the same odds: a tool that stands alone must be as good a match as one of these.
FEWEST_DOCUMENTS = 20
EXACT_MATCH_ODDS = 1000.0
HIGHEST_SCORE = 99.9
ODDS_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """How evidence turns into odds: even at `base`, more for each doubling of the query's terms and of the tools."""

    steepness: float
    base: float
    per_term_doubling: float
    per_document_doubling: float

    def log_odds(self, evidence: Floats, terms: int, tools: int) -> Floats:
        """The log odds, written over the evidence."""
        even = (
            self.base
            + self.per_term_doubling * math.log1p(terms)
            + self.per_document_doubling * math.log(max(tools, FEWEST_DOCUMENTS))
        )
        evidence -= np.float32(even)
        evidence *= np.float32(self.steepness)
        return evidence


COSINE_MODEL = LogisticModel(steepness=9.0, base=0.22, per_term_doubling=0.05, per_document_doubling=0.037)
TERMS_MODEL = LogisticModel(steepness=0.8, base=-0.2, per_term_doubling=0.7, per_document_doubling=0.5)


def odds_with_cosines(near: Floats, words: Floats, terms: int, tools: int) -> Floats:
    """The log odds of tools whose vectors are there."""
    evidence = words * np.float32(TERMS_FACTOR)
    evidence += near
    return COSINE_MODEL.log_odds(evidence, terms, tools)


def odds_by_terms(words: Floats, terms: int, tools: int) -> Floats:
    """The log odds of tools of which only the words are known."""
    return TERMS_MODEL.log_odds(words.copy(), terms, tools)


def odds_of_past_use(strength: float) -> float:
    """What past use adds to the log odds."""
    return COSINE_MODEL.steepness * PAST_USE_FACTOR * strength


def score_from_odds(odds: float) -> float:
    """Log odds as a score. Only a tool that is called by its name has 100."""
    return 100.0 if odds >= EXACT_MATCH_ODDS / 2 else min(HIGHEST_SCORE, 100 / (1 + math.exp(-max(odds, -50.0))))
