"""Measures how many of the turns that answer a question each way finds among its first 5, 10 and 20."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, quantiles

import anyio

from bench.memory.locomo import CATEGORIES, Question, Talk, read_talks
from bench.memory.plain import as_written, best, bm25, mixed, nearness, stems
from bench.memory.shipped import Answer, ShippedAnswers, ask_frontdesk
from bench.retrieval.embeddings import SHIPPED, UNTUNED, Embeddings
from frontdesk.memory.model import SearchMode

DEPTHS = (5, 10, 20)
AS_WRITTEN, STEMS = "BM25", "BM25 of stems"
UNTUNED_MEANING, OUR_MEANING = "untuned model", "our model"
UNTUNED_BOTH, OUR_BOTH = "untuned model + BM25 of stems", "our model + BM25 of stems"
OUR_WORDS, OURS = "Frontdesk, words alone", "Frontdesk"
WAYS = {OUR_WORDS: SearchMode.FULL_TEXT, OURS: SearchMode.HYBRID}


@dataclass(frozen=True, slots=True)
class FoundShares:
    """The share of each question's evidence that a way found, by depth; and the cost, for Frontdesk's own way."""

    shares: Mapping[int, Sequence[float]]
    categories: Sequence[str]
    ms: Sequence[float] = ()
    tokens: Sequence[int] = ()

    def recall(self, depth: int, category: str | None = None) -> float:
        """In percent."""
        paired = zip(self.shares[depth], self.categories, strict=True)
        return 100 * mean(share for share, of in paired if category in (None, of))

    def ms_at(self, share: int) -> float:
        return quantiles(self.ms, n=100)[share - 1]


@dataclass(frozen=True, slots=True)
class QualityMeasured:
    """The results by way. `keep_ms`: the time to keep a memory (p50)."""

    found: Mapping[str, FoundShares]
    questions: Mapping[str, int]
    memories: int
    keep_ms: float


def measure_quality(folder: Path, at_most: int | None) -> QualityMeasured:
    """Measure with about `at_most` questions, or with all of them."""
    talks = read_talks(at_most)
    asked = [question for talk in talks for question in talk.questions]
    print(f"LoCoMo: {len(asked):,} questions about {len(talks)} talks", file=sys.stderr, flush=True)
    found = {way: _judged(asked, ranked) for way, ranked in _yardsticks(talks).items()}
    told = anyio.run(partial(ask_frontdesk, folder, talks, list(WAYS.values()), max(DEPTHS)))
    found |= {name: _of_answers(asked, told[way]) for name, way in WAYS.items()}
    questions = {category: sum(one.category == category for one in asked) for category in CATEGORIES.values()}
    return QualityMeasured(found, questions, sum(len(talk.turns) for talk in talks), told[SearchMode.HYBRID].keep_ms)


def _yardsticks(talks: Sequence[Talk]) -> dict[str, list[Sequence[str]]]:
    untuned, ours = Embeddings(UNTUNED), Embeddings(SHIPPED)
    found: dict[str, list[Sequence[str]]] = {}
    for talk in talks:
        words, near, our_near = bm25(talk, stems), nearness(talk, untuned), nearness(talk, ours)
        scores = {
            AS_WRITTEN: bm25(talk, as_written),
            STEMS: words,
            UNTUNED_MEANING: near,
            OUR_MEANING: our_near,
            UNTUNED_BOTH: mixed(words, near),
            OUR_BOTH: mixed(words, our_near),
        }
        for way, of_turns in scores.items():
            found.setdefault(way, []).extend(best(talk, of_turns, max(DEPTHS)))
    return found


def _of_answers(asked: Sequence[Question], told: ShippedAnswers) -> FoundShares:
    answers: list[Answer] = [answer for talk in told.answers for answer in talk]
    return _judged(
        asked,
        [answer.ids for answer in answers],
        [answer.ms for answer in answers],
        [answer.tokens for answer in answers],
    )


def _judged(
    asked: Sequence[Question],
    ranked: Sequence[Sequence[str]],
    ms: Sequence[float] = (),
    tokens: Sequence[int] = (),
) -> FoundShares:
    paired = list(zip(asked, ranked, strict=True))
    shares = {
        depth: [len(question.right & set(ids[:depth])) / len(question.right) for question, ids in paired]
        for depth in DEPTHS
    }
    return FoundShares(shares, [question.category for question in asked], ms, tokens)
