"""Cuts names and sentences into the words that search compares: `getUserById` is "get user by id"."""

import re
from collections.abc import Iterator
from functools import lru_cache

RUN = re.compile(r"[^\W_]+")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]+")
# Scripts written without spaces: what two texts share shows in pairs of characters.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
REMEMBERED = 50_000
# What people say around a wish. Descriptions are terse, so these would pass for rare words that tell tools apart.
COMMON = frozenset(
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
DOUBLED = re.compile(r"([bdfgmnprt])\1$")


def split(text: str) -> list[str]:
    """The words in lower case, in order, as a reader would tell them apart."""
    return [word for run in RUN.findall(text) for word in _parts(run)]


def terms(text: str) -> list[tuple[str, str]]:
    """What to compare by, and the word it stands for: "list", "lists" and "listing" are one term."""
    return [(stem(word), word) for word in split(text) if word not in COMMON]


def _parts(run: str) -> Iterator[str]:
    if run.isascii():
        if run.islower() and run.isalpha():
            yield run
        else:
            yield from (part.lower() for part in PART.findall(run))
        return
    at = 0
    for unspaced in UNSPACED.finditer(run):
        yield from _spaced(run[at : unspaced.start()])
        yield from _pairs(unspaced[0])
        at = unspaced.end()
    yield from _spaced(run[at:])


def _spaced(run: str) -> Iterator[str]:
    if run:
        yield run.lower()


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


@lru_cache(REMEMBERED)
def stem(word: str) -> str:
    """The word without plural, -ing and -ed: the first of Porter's steps, sparing short words."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    found = _ending(_plural(word))
    return found[:-1] + "i" if found.endswith("y") and len(found) > 3 and found[-2] not in "aeiou" else found


def _plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _ending(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and VOWEL.search(root):
            return DOUBLED.sub(r"\1", root)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
