"""Makes the shipped model from trained weights: integers, chosen by the real inputs of each matrix."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from frontdesk.embedding.builtin import WordPieceTokenizer
from training.graph import build
from training.pairs import Pair
from training.weights import Weights

# The number of pairs whose texts are used, evenly spread.
PAIRS = 150
# Prevents a division by zero for a column that was always zero.
SMALLEST = 1e-3


def quantised(weights: Weights, words: WordPieceTokenizer, pairs: Sequence[Pair], longest: int) -> bytes:
    """The ONNX file."""
    some = pairs[:: max(1, len(pairs) // PAIRS)]
    texts = chain.from_iterable((pair.question, pair.right) for pair in some)
    largest = _largest(weights, (words.ids(text, longest) for text in texts), longest)
    return build(weights, longest, largest)


def _largest(weights: Weights, texts: Iterable[Sequence[int]], longest: int) -> dict[str, NDArray[np.float32]]:
    runtime: Any = onnxruntime
    session = runtime.InferenceSession(build(weights, longest), providers=["CPUExecutionProvider"])
    names: list[str] = [output.name for output in session.get_outputs() if output.name != "vectors"]
    found: dict[str, NDArray[np.float32]] = {}
    for ids in texts:
        states: list[NDArray[np.float32]] = session.run(names, {"ids": np.array([ids], dtype=np.int64)})
        for name, seen in zip(names, states, strict=True):
            found[name] = np.maximum(found.get(name, np.float32(SMALLEST)), np.abs(seen).max(axis=(0, 1)))
    return found
