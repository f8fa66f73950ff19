"""Text as the token ids of BERT's uncased vocabulary, in plain Python: words first, then their longest known pieces."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

# Far more than the longest input holds; what lies behind it costs nothing.
LONGEST_TEXT = 8192
LONGEST_WORD = 100
# Words whose pieces are remembered. A catalogue has some thousands of different words.
REMEMBERED = 20_000

_ASCII_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_CONTROLS = dict.fromkeys((*range(32), 127)) | {ord(blank): " " for blank in "\t\n\r"}
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A vocabulary, one token a line. What looks like a special token in a text is text like any other."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._unknown = (self._ids["[UNK]"],)
        self._start, self._end = self._ids["[CLS]"], self._ids["[SEP]"]
        self._pieces_of: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> "WordPiece":
        return cls(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def ids(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids, the start and end marks among them."""
        found = [self._start]
        for word in words(text[:LONGEST_TEXT]):
            found += self._pieces(word)
            if len(found) >= limit:
                break
        del found[limit - 1 :]
        return [*found, self._end]

    def _pieces(self, word: str) -> tuple[int, ...]:
        known = self._pieces_of.get(word)
        if known is None:
            if len(self._pieces_of) >= REMEMBERED:
                self._pieces_of.clear()
            known = self._pieces_of[word] = self._split(word)
        return known

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return self._unknown
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown
            pieces.append(piece)
            start = end
        return tuple(pieces)


def words(text: str) -> Iterator[str]:
    """Lower-case words without accents; each sign of punctuation and each CJK character is a word of its own."""
    if text.isascii():
        lowered = text.lower() if text.isprintable() else text.translate(_ASCII_CONTROLS).lower()
        return (match.group() for match in _ASCII_WORD.finditer(lowered))
    cleaned = "".join(map(_cleaned, text))
    return iter("".join(map(_folded, unicodedata.normalize("NFD", cleaned))).split())


@lru_cache(maxsize=4096)
def _cleaned(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character).startswith("Z"):
        return " "
    # A lone surrogate is no character at all, and the vocabulary knows no private ones.
    if character == "\ufffd" or unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    return f" {character} " if any(first <= ord(character) <= last for first, last in _CJK) else character


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    # Of the ASCII signs, some that Unicode calls symbols count as punctuation here.
    mark = category.startswith("P") or (_ASCII_WORD.fullmatch(character) and not character.isalnum())
    return f" {character} " if mark else character.lower()
