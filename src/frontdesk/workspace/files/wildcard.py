"""Turns git's wildcards into a regular expression over bytes; what can match nothing at all gives none."""

import re
import string
from collections.abc import Mapping
from itertools import pairwise

# What stars become: `*`, `**/` and `**` at the end. A pattern with more of the second than is sane matches nothing.
STAR = b"[^/]*"
FOLDERS = b"(?:[^/]*/)*"
ANYTHING = b".*"
MOST_FOLDERS = 4
STARS = re.compile(rb"\*+")
CLASSES: Mapping[bytes, frozenset[int]] = {
    b"alnum": frozenset((string.ascii_letters + string.digits).encode()),
    b"alpha": frozenset(string.ascii_letters.encode()),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset([*range(32), 127]),
    b"digit": frozenset(string.digits.encode()),
    b"graph": frozenset(range(33, 127)),
    b"lower": frozenset(string.ascii_lowercase.encode()),
    b"print": frozenset(range(32, 127)),
    b"punct": frozenset(string.punctuation.encode()),
    b"space": frozenset(b" \t\n\v\f\r"),
    b"upper": frozenset(string.ascii_uppercase.encode()),
    b"xdigit": frozenset(string.hexdigits.encode()),
}


class _Nothing(ValueError):
    """A pattern that is cut off or names a class that is none: git lets it match nothing."""


def as_expression(pattern: bytes) -> bytes | None:
    """The same as an expression; `*`, `?` and sets stop at a slash, `**` between slashes does not."""
    parts: list[bytes] = []
    at = 0
    try:
        while at < len(pattern):
            part, at = _part(pattern, at)
            parts.append(part)
    except _Nothing:
        return None
    return None if parts.count(FOLDERS) > MOST_FOLDERS else _joined(parts)


def _joined(parts: list[bytes]) -> bytes:
    """What follows a star is found where it comes first, for good, if a star comes after it: no pattern takes long."""
    stars = [index for index, part in enumerate(parts) if part in {STAR, FOLDERS, ANYTHING}]
    joined = parts[: stars[0]] if stars else parts
    for star, following in pairwise([*stars, len(parts)]):
        run = b"".join(parts[star + 1 : following])
        lasting = parts[star] == STAR and following < len(parts)
        joined.append(b"(?>[^/]*?" + run + b")" if lasting else parts[star] + run)
    return b"".join(joined)


def _part(pattern: bytes, at: int) -> tuple[bytes, int]:
    match pattern[at : at + 1]:
        case b"*":
            return _stars(pattern, at)
        case b"?":
            return b"[^/]", at + 1
        case b"[":
            return _set(pattern, at + 1)
        case b"\\":
            return re.escape(_char(pattern, at + 1)), at + 2
        case char:
            return re.escape(char), at + 1


def _stars(pattern: bytes, at: int) -> tuple[bytes, int]:
    end = STARS.match(pattern, at).end()  # pyright: ignore[reportOptionalMemberAccess] - there is one at `at`
    opens = at == 0 or pattern[at - 1 : at] == b"/"
    rest = pattern[end : end + 2]
    if end - at < 2 or not opens or not (rest == b"" or rest[:1] == b"/" or rest == b"\\/"):
        return STAR, end
    return (FOLDERS, end + 1) if rest[:1] == b"/" else (ANYTHING, end)


def _set(pattern: bytes, at: int) -> tuple[bytes, int]:
    """A set in brackets, as git reads it: the first member may be `]`, and a range may end in an escaped one."""
    negated = pattern[at : at + 1] in {b"!", b"^"}
    at += negated
    members: set[int] = set()
    before: int | None = None
    first = True
    while first or _char(pattern, at) != b"]":
        first = False
        found, before, at = _member(pattern, at, before)
        members |= found
    kept = (set(range(256)) - members if negated else members) - set(b"/")
    return (b"[" + b"".join(b"\\x%02x" % one for one in sorted(kept)) + b"]" if kept else b"(?!)"), at + 1


def _member(pattern: bytes, at: int, before: int | None) -> tuple[frozenset[int], int | None, int]:
    """What is added, what a range could begin with, and where to go on."""
    char = _char(pattern, at)
    if char == b"\\":
        one = _char(pattern, at + 1)[0]
        return frozenset([one]), one, at + 2
    if char == b"-" and before is not None and pattern[at + 1 : at + 2] not in {b"", b"]"}:
        at += 2 if pattern[at + 1 : at + 2] == b"\\" else 1
        return frozenset(range(before, _char(pattern, at)[0] + 1)), None, at + 1
    if pattern[at : at + 2] == b"[:":
        end = pattern.find(b"]", at + 2)
        if end < 0:
            raise _Nothing
        # Without a colon before the bracket it is a plain set that has a `[` in it.
        if end > at + 2 and pattern[end - 1 : end] == b":":
            return _named(pattern[at + 2 : end - 1]), None, end + 1
    return frozenset(char), char[0], at + 1


def _named(name: bytes) -> frozenset[int]:
    if name not in CLASSES:
        raise _Nothing
    return CLASSES[name]


def _char(pattern: bytes, at: int) -> bytes:
    if at >= len(pattern):
        raise _Nothing
    return pattern[at : at + 1]
