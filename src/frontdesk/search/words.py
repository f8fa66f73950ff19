"""Splits names and sentences into the terms that search compares: `getUserById` is "get user by id"."""

import re
from collections.abc import Iterator
from functools import lru_cache

WORD_CHARACTERS = re.compile(r"[^\W_]+")
WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]+")
# Scripts written without spaces: what two texts share shows in pairs of characters.
UNSPACED_SCRIPT = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
STEMS_CACHED = 50_000
# What people say around a wish. Descriptions are terse, so these would pass for rare words that tell tools apart.
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
    """The words in lower case, in order, as a reader would tell them apart."""
    return [word for run in WORD_CHARACTERS.findall(text) for word in _split_run(run)]


def terms(text: str) -> list[tuple[str, str]]:
    """What to compare by, and the word it stands for: "list", "lists" and "listing" are one term."""
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
        yield from _lower_case(run[at : unspaced.start()])
        yield from _character_pairs(unspaced[0])
        at = unspaced.end()
    yield from _lower_case(run[at:])


def _lower_case(run: str) -> Iterator[str]:
    if run:
        yield run.lower()


def _character_pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


@lru_cache(STEMS_CACHED)
def stem(word: str) -> str:
    """The word without plural, -ing and -ed: the first of Porter's steps, sparing short words."""
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
