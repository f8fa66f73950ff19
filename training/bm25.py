"""Searches by words over a set's tools: the baseline that a model has to beat, and its partner in the mix."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.model import space_words
from training.sets import Tool

K1 = 1.2
B = 0.75
NAME, SERVER, DESCRIPTION, PARAMETERS = 3.0, 1.0, 1.0, 0.5

_WORD = re.compile(r"[a-z]+|[0-9]+")
_ENDINGS = ("ization", "ations", "ation", "ings", "ing", "ers", "er", "ies", "ed", "es", "ly", "s", "e", "y")


class Bm25f:
    """Scores every tool for a question; each field has its weight."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._size = len(tools)
        counts = [_weighted(tool) for tool in tools]
        lengths = np.array([sum(count.values()) for count in counts])
        norms = K1 * (1 - B + B * lengths / lengths.mean())
        postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for row, count in enumerate(counts):
            for word, weight in count.items():
                postings[word].append((row, weight * (K1 + 1) / (weight + norms[row])))
        self._postings = {word: _columns(found, self._size) for word, found in postings.items()}

    def scores(self, question: str) -> NDArray[np.float32]:
        found = np.zeros(self._size, dtype=np.float32)
        for word in set(words(question)):
            if word in self._postings:
                rows, weights = self._postings[word]
                found[rows] += weights
        return found


def words(text: str) -> list[str]:
    """Splits names, lower-cases, and stems lightly."""
    return [_stem(word) for word in _WORD.findall(space_words(text).lower())]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _weighted(tool: Tool) -> Counter[str]:
    count: Counter[str] = Counter()
    fields = (
        (NAME, tool.name),
        (SERVER, tool.server),
        (DESCRIPTION, tool.description),
        (PARAMETERS, " ".join(tool.parameters)),
    )
    for weight, text in fields:
        for word in words(text):
            count[word] += weight  # pyright: ignore[reportArgumentType]
    return count


def _columns(found: list[tuple[int, float]], size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rows = np.array([row for row, _ in found])
    rarity = np.log(1 + (size - len(found) + 0.5) / (len(found) + 0.5))
    return rows, np.array([weight for _, weight in found], dtype=np.float32) * np.float32(rarity)
