"""Computes NDCG, recall and reciprocal rank over queries whose right answers are known."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

NDCG_DEPTH = 10


@dataclass(frozen=True, slots=True)
class RankingQuality:
    """Means over all queries, from 0 to 1."""

    ndcg: float
    recall_1: float
    recall_5: float
    recall_10: float
    mrr: float


def measure_ranking(answers: Sequence[tuple[Sequence[str], Collection[str]]]) -> RankingQuality:
    """Measure rankings, each given with the ids of its right answers. There must be at least one."""
    count = len(answers)
    among = {
        depth: sum(compute_recall(ranked, gold, depth) for ranked, gold in answers) / count for depth in (1, 5, 10)
    }
    return RankingQuality(
        sum(compute_ndcg(ranked, gold) for ranked, gold in answers) / count,
        among[1],
        among[5],
        among[10],
        sum(reciprocal_rank(ranked, gold) for ranked, gold in answers) / count,
    )


def compute_ndcg(ranked: Sequence[str], gold: Collection[str], depth: int = NDCG_DEPTH) -> float:
    """Right answers count more the higher they are; 1 where all of them come first."""
    gain = sum(1 / math.log2(place + 1) for place, found in enumerate(ranked[:depth], 1) if found in gold)
    best = sum(1 / math.log2(place + 1) for place in range(1, min(depth, len(gold)) + 1))
    return gain / best


def compute_recall(ranked: Sequence[str], gold: Collection[str], depth: int) -> float:
    """The share of the right answers that are among the first."""
    return len(set(ranked[:depth]) & set(gold)) / len(gold)


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 if the first answer is right, 1/2 if the second is the first right one, and so on."""
    return next((1 / place for place, found in enumerate(ranked, 1) if found in gold), 0.0)
