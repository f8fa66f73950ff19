"""Measures how well a model finds tools: NDCG at 10 by meaning alone, by words alone and by both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.model import tool_text
from training.bm25 import Bm25f
from training.sets import SEEN, UNSEEN, RetrievalSet, Tool, read_set

DEPTH = 10
# The share of meaning in the mix; words have the rest.
MEANING = 0.7

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class SetScore:
    """NDCG at 10 in percent for one set."""

    words: float
    meaning: float
    both: float


def judge(embed: Embed, sets: Sequence[RetrievalSet]) -> dict[str, SetScore]:
    """Every set's figures, by its name."""
    return {one.name: _judge_one(embed, one) for one in sets}


@cache
def read_sets(data: Path, at_most: int | None = None) -> tuple[RetrievalSet, ...]:
    return tuple(read_set(data, name, at_most) for name in (*UNSEEN, *SEEN))


def lost(before: Mapping[str, SetScore], after: Mapping[str, SetScore]) -> float:
    """The loss in points, by meaning and by both, in the mean of all sets."""
    return _mean(before) - _mean(after)


def table(columns: Mapping[str, Mapping[str, SetScore]]) -> str:
    """Sets as rows, models as columns: words, then meaning and both for each model."""
    names = list(next(iter(columns.values())))
    lines = ["| set | words | " + " | ".join(f"{model}, meaning | {model}, both" for model in columns) + " |"]
    lines.append("|---|---|" + "---|---|" * len(columns))
    rows = {name: [column[name] for column in columns.values()] for name in names}
    rows["**mean, unseen**"] = [_average([column[name] for name in UNSEEN]) for column in columns.values()]
    for name, cells in rows.items():
        figures = " | ".join(f"{cell.meaning:.1f} | {cell.both:.1f}" for cell in cells)
        lines.append(f"| {name} | {cells[0].words:.1f} | {figures} |")
    return "\n".join(lines)


def _judge_one(embed: Embed, one: RetrievalSet) -> SetScore:
    tools = embed([_text(tool) for tool in one.tools])
    meaning = embed([question.text for question in one.questions]) @ tools.T
    words = _word_scores(one)
    both = MEANING * _spread(meaning) + (1 - MEANING) * _spread(words)
    return SetScore(*(_ndcg(scores, one) for scores in (words, meaning, both)))


@cache
def _word_scores(one: RetrievalSet) -> NDArray[np.float32]:
    index = Bm25f(one.tools)
    return np.array([index.scores(question.text) for question in one.questions])


def _spread(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    return (scores - low) / np.maximum(high - low, 1e-9)


def _ndcg(scores: NDArray[np.float32], one: RetrievalSet) -> float:
    some = np.argpartition(-scores, DEPTH, axis=1)[:, :DEPTH]
    best = np.take_along_axis(some, np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1), axis=1)
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    gained = [
        float(discounts[np.isin(row, question.right)].sum() / discounts[: len(question.right)].sum())
        for row, question in zip(best, one.questions, strict=True)
    ]
    return 100 * float(np.mean(gained))


def _mean(found: Mapping[str, SetScore]) -> float:
    return float(np.mean([(one.meaning + one.both) / 2 for one in found.values()]))


def _average(cells: Sequence[SetScore]) -> SetScore:
    return SetScore(
        *(float(np.mean([getattr(cell, field) for cell in cells])) for field in ("words", "meaning", "both"))
    )


def _text(tool: Tool) -> str:
    return tool_text(tool.server, tool.name, tool.description, tool.parameters)
