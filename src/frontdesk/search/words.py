"""Splits names and sentences into the terms that search compares: `getUserById` becomes "get user by id".

Search in tools and search in memories both use this tokeniser.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

WORD_CHARACTERS = re.compile(r"[^\W_]+")
WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]+")
# Scripts without spaces between words: pairs of characters are compared instead.
UNSPACED_SCRIPT = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
STEMS_CACHED = 50_000
# Words that people add to a request. Descriptions are terse, so these would count as rare words there.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about after again all also am an and any are as at be because been before being between both but by can could
        d did do does don down during each few for from had has have he hello help her here hi him his how i if in into
        is it its just let like ll m may me might more most must my need no not now of off on only or other our out over
        own please re s same shall she should so some such t than thank thanks that the their them then there these they
        this those through to too trying under up us ve very want was we were what when where which while who whom why
        will with would you your
        """,
    )
)
VOWEL = re.compile(r"[aeiouy]")
DOUBLED_CONSONANT = re.compile(r"([bdfgmnprt])\1$")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case and in order, split where a reader would split them."""
    return [word for run in WORD_CHARACTERS.findall(text) for word in _split_run(run)]


def terms(text: str) -> list[tuple[str, str]]:
    """The terms of a text, each with its word: "list", "lists" and "listing" are one term. Stop words are left out."""
    return [(stem(word), word) for word in split_words(text) if word not in STOP_WORDS]


def _split_run(run: str) -> Iterator[str]:
    if run.isascii():
        if run.islower() and run.isalpha():
            yield run
        else:
            yield from (part.lower() for part in WORD_PART.findall(run))
        return
    at = 0
    for unspaced in UNSPACED_SCRIPT.finditer(run):
        if at < unspaced.start():
            yield run[at : unspaced.start()].lower()
        pairs = unspaced[0]
        yield from (pairs[place : place + 2] for place in range(max(1, len(pairs) - 1)))
        at = unspaced.end()
    if run[at:]:
        yield run[at:].lower()


@lru_cache(STEMS_CACHED)
def stem(word: str) -> str:
    """The word without plural, -ing and -ed: the first step of Porter's stemmer. Short words are not changed."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    found = _strip_ending(_strip_plural(word))
    return found[:-1] + "i" if found.endswith("y") and len(found) > 3 and found[-2] not in "aeiou" else found


def _strip_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _strip_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and VOWEL.search(root):
            return DOUBLED_CONSONANT.sub(r"\1", root)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
