"""What one text has that another has not, by words; bounded, whatever the texts are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
# Comparing takes time with the one's words times the other's; beyond this what differs is shown as a whole.
MOST = 100_000
# Of what is the same, so much stands around what is not.
AROUND = 120


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the text: `same`, `gone` or `new`."""

    kind: str
    text: str


def diff(before: str, after: str) -> list[Piece]:
    """The pieces in order."""
    old, new = WORDS.findall(before), WORDS.findall(after)
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    middle = _compared(old[start : len(old) - end], new[start : len(new) - end])
    pieces = [Piece("same", "".join(old[:start])), *middle, Piece("same", "".join(old[len(old) - end :]))]
    return [_cut(piece) for piece in pieces if piece.text]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many words both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (here, there) in pairs if here != there), min(len(one), len(other)))


def _compared(old: Sequence[str], new: Sequence[str]) -> list[Piece]:
    if len(old) * len(new) > MOST:
        return [Piece("gone", "".join(old)), Piece("new", "".join(new))]
    pieces: list[Piece] = []
    for kind, from_old, to_old, from_new, to_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(Piece("same", "".join(old[from_old:to_old])))
        else:
            pieces += [Piece("gone", "".join(old[from_old:to_old])), Piece("new", "".join(new[from_new:to_new]))]
    return pieces


def _cut(piece: Piece) -> Piece:
    """A long stretch of what is the same tells nothing."""
    if piece.kind != "same" or len(piece.text) <= 3 * AROUND:
        return piece
    return Piece("same", f"{piece.text[:AROUND]} … {piece.text[-AROUND:]}")
