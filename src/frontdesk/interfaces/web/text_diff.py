"""Compares two texts by words or by lines, within bounds, for pages that show what changed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

WORD_PATTERN = re.compile(r"\s+|\w+|[^\w\s]")
# Comparing takes time in proportion to the product of both lengths. Larger differences are shown as a whole.
MOST_CHARACTERS = 100_000
# How much unchanged text is shown around changes.
SHOWN_AROUND_WORDS = 120


@dataclass(frozen=True, slots=True)
class ChangedWords:
    """Some words of the text: `same`, `gone` or `new`."""

    kind: str
    text: str


def diff_words(before: str, after: str) -> list[ChangedWords]:
    """The words that stayed, went and came, in order."""
    old, new = WORD_PATTERN.findall(before), WORD_PATTERN.findall(after)
    start = _shared_prefix(old, new)
    end = _shared_prefix(old[start:][::-1], new[start:][::-1])
    middle = _compare_words(old[start : len(old) - end], new[start : len(new) - end])
    pieces = [ChangedWords("same", "".join(old[:start])), *middle, ChangedWords("same", "".join(old[len(old) - end :]))]
    return [_cut_unchanged(piece) for piece in pieces if piece.text]


def _shared_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of words that both texts start with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (here, there) in pairs if here != there), min(len(one), len(other)))


def _compare_words(old: Sequence[str], new: Sequence[str]) -> list[ChangedWords]:
    if len(old) * len(new) > MOST_CHARACTERS:
        return [ChangedWords("gone", "".join(old)), ChangedWords("new", "".join(new))]
    pieces: list[ChangedWords] = []
    for kind, from_old, to_old, from_new, to_new in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(ChangedWords("same", "".join(old[from_old:to_old])))
        else:
            pieces += [
                ChangedWords("gone", "".join(old[from_old:to_old])),
                ChangedWords("new", "".join(new[from_new:to_new])),
            ]
    return pieces


def _cut_unchanged(piece: ChangedWords) -> ChangedWords:
    """Shorten unchanged text."""
    if piece.kind != "same" or len(piece.text) <= 3 * SHOWN_AROUND_WORDS:
        return piece
    return ChangedWords("same", f"{piece.text[:SHOWN_AROUND_WORDS]} … {piece.text[-SHOWN_AROUND_WORDS:]}")


SAME, GONE, NEW = "same", "gone", "new"
# Comparing takes time in proportion to the square of this.
MOST_COMPARED_LINES = 400
LINES_AROUND = 2


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line: `same`, `gone` or `new`."""

    kind: str
    text: str


def diff_lines(before: str, after: str) -> Sequence[ChangedLine]:
    """The changed lines with a few lines around them. Very long texts are shown as all gone and all new."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_COMPARED_LINES:
        return [ChangedLine(GONE, before), ChangedLine(NEW, after)]
    found: list[ChangedLine] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(LINES_AROUND):
        if found:
            found.append(ChangedLine(SAME, "…"))
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                found += [ChangedLine(SAME, text) for text in old[start:end]]
            else:
                found += [ChangedLine(GONE, text) for text in old[start:end]]
                found += [ChangedLine(NEW, text) for text in new[new_start:new_end]]
    return found


WORD_WITH_SPACE = re.compile(r"\S+\s*|\s+")
# Longer texts are compared by lines, up to the number above.
MOST_COMPARED_WORDS = 1_500
MOST_TEXT_LINES = 4_000
# How much unchanged text is shown around changes.
SHOWN_AROUND_TEXT = 200


@dataclass(frozen=True, slots=True)
class ChangedText:
    """A part of the text: `same` on both sides, `gone`, or `new`."""

    kind: str
    text: str


def diff_text(before: str, after: str) -> Sequence[ChangedText]:
    """The parts that change one text into the other."""
    old, new = _split_tokens(before, after)
    found: list[ChangedText] = []
    for kind, start, end, from_, to in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        if kind == "equal":
            found.append(ChangedText("same", _cut_unchanged_text("".join(old[start:end]))))
            continue
        if end > start:
            found.append(ChangedText("gone", "".join(old[start:end])))
        if to > from_:
            found.append(ChangedText("new", "".join(new[from_:to])))
    return found


def _split_tokens(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = WORD_WITH_SPACE.findall(before), WORD_WITH_SPACE.findall(after)
    if len(old) + len(new) <= MOST_COMPARED_WORDS:
        return old, new
    return before.splitlines(keepends=True)[:MOST_TEXT_LINES], after.splitlines(keepends=True)[:MOST_TEXT_LINES]


def _cut_unchanged_text(text: str) -> str:
    return text if len(text) <= 3 * SHOWN_AROUND_TEXT else f"{text[:SHOWN_AROUND_TEXT]} … {text[-SHOWN_AROUND_TEXT:]}"
