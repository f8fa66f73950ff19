"""Measures how well each way finds the tools of every set, before any use, and ours after some use."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from bench.retrieval.data import SETS, USED, RetrievalSet, chatter, read_sets
from bench.retrieval.embeddings import SHIPPED, UNTUNED, Embeddings
from bench.retrieval.learning import taught
from bench.retrieval.methods import Ranking, Shipped, plain
from bench.retrieval.peer import peer
from frontdesk.search.evaluation import RankingQuality, measure_ranking

FASTMCP, WORDS, UNTUNED_MEANING, HYBRID = "FastMCP 4.1 search", "BM25F", "untuned model", "untuned model + BM25F"
OUR_WORDS, OURS = "Frontdesk, words alone", "Frontdesk"
USES = (1, 5, 20)
CHATTER = 300


@dataclass(frozen=True, slots=True)
class QualityMeasured:
    """By way and set. `told_apart`: how well the score separates a set's questions from those that no tool answers."""

    found: Mapping[str, Mapping[str, RankingQuality]]
    told_apart: Mapping[str, float]
    questions: Mapping[str, int]

    def ndcg(self, way: str, names: Sequence[str] = SETS) -> float:
        """The mean of the sets, in percent."""
        return 100 * mean(self.found[way][name].ndcg for name in names)

    def gain(self, other: str, names: Sequence[str] = SETS) -> float:
        return self.ndcg(OURS, names) - self.ndcg(other, names)


def measure_quality(at_most: int | None) -> QualityMeasured:
    """`at_most` questions of each set, or all of them."""
    sets = read_sets(at_most)
    untuned, shipped = Embeddings(UNTUNED), Embeddings(SHIPPED)
    found: dict[str, dict[str, RankingQuality]] = {}
    told_apart: dict[str, float] = {}
    for one in sets:
        print(f"{one.name}: {len(one.tools):,} tools, {len(one.questions):,} questions", file=sys.stderr, flush=True)
        for way, rankings in _zero_shot(one, untuned, shipped).items():
            found.setdefault(way, {})[one.name] = _judged(one, rankings)
        told_apart[one.name] = _told_apart(one, shipped)
    for one in (one for one in sets if one.name in USED):
        ours = Shipped(one, shipped)
        for uses in USES:
            rankings = ours.rankings(taught(one, shipped, uses))
            found.setdefault(after(uses), {})[one.name] = _judged(one, rankings)
    return QualityMeasured(found, told_apart, {one.name: len(one.questions) for one in sets})


def after(uses: int) -> str:
    return f"Frontdesk, after {uses} use{'s' if uses > 1 else ''} a tool"


def _zero_shot(one: RetrievalSet, untuned: Embeddings, shipped: Embeddings) -> dict[str, list[Ranking]]:
    yardsticks = plain(one, untuned)
    with peer(one.tools) as fastmcp:
        theirs = [fastmcp.ask(question.text).ids for question in one.questions]
    return {
        FASTMCP: theirs,
        WORDS: yardsticks.words,
        UNTUNED_MEANING: yardsticks.meaning,
        HYBRID: yardsticks.both,
        OUR_WORDS: Shipped(one, None).rankings(),
        OURS: Shipped(one, shipped).rankings(),
    }


def _judged(one: RetrievalSet, rankings: Sequence[Ranking]) -> RankingQuality:
    return measure_ranking([(ranked, question.right) for ranked, question in zip(rankings, one.questions, strict=True)])


def _told_apart(one: RetrievalSet, shipped: Embeddings) -> float:
    """The chance that a question of the set has a best score above that of a question no tool answers (AUROC)."""
    ours = Shipped(one, shipped)
    step = max(1, len(one.questions) // CHATTER)
    inside = ours.best_scores([question.text for question in one.questions[::step]])
    outside = ours.best_scores(chatter(CHATTER))
    above = sum((a > b) + 0.5 * (a == b) for a in inside for b in outside)
    return above / (len(inside) * len(outside))
