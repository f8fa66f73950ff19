"""Lists of items as bytes: so many numbers to a block, three bytes an item."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int32]
Weights: TypeAlias = NDArray[np.uint8]

# A block is a row for each of its words, and a search reads some blocks. Larger ones are fewer to read and more to
# write again with each item.
BLOCK = 16_384
_ENTRY = struct.Struct("<HB")
ENTRY = np.dtype([("at", "<u2"), ("weight", "u1")])


@dataclass(frozen=True, slots=True)
class Posting:
    """The items that hold a term, and how many there are of them in all, as far as can be told from those read."""

    term: str
    numbers: Numbers
    weights: Weights
    held_by: float


def block_of(n: int) -> int:
    return n // BLOCK


def entry(n: int, weight: int) -> bytes:
    return _ENTRY.pack(n % BLOCK, weight)


def entries(blocks: Sequence[tuple[int, bytes]]) -> tuple[Numbers, Weights]:
    """The items' numbers, and what the word weighs in each."""
    found = np.frombuffer(b"".join([docs for _, docs in blocks]), ENTRY)
    starts = np.array([block * BLOCK for block, _ in blocks], np.int32)
    counts = np.array([len(docs) for _, docs in blocks], np.intp) // ENTRY.itemsize
    return found["at"] + np.repeat(starts, counts), found["weight"]


def without(docs: bytes, n: int) -> bytes:
    found = np.frombuffer(docs, ENTRY)
    return found[found["at"] != n % BLOCK].tobytes()


def said(weights: Mapping[str, int]) -> str:
    """The terms of an item that is not in any block yet, each with its weight."""
    return " ".join(f"{term} {weight}" for term, weight in weights.items())


def listed(words: str) -> tuple[list[str], list[str]]:
    """The terms, and their weights, as they were said."""
    parts = words.split(" ") if words else []
    return parts[::2], parts[1::2]
