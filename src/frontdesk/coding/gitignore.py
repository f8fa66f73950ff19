"""Tells what git ignores from the text of its ignore files, byte for byte as git reads them.

Source: git's dir.c and wildmatch.c, where the manual (gitignore(5)) leaves things open.
"""

import os
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

# The regular expressions for stars: `*`, `**/`, and `**` at the end. A pattern with too many `**/` matches nothing.
STAR = b"[^/]*"
FOLDERS = b"(?:[^/]*/)*"
ANYTHING = b".*"
MOST_FOLDERS = 4
STARS = re.compile(rb"\*+")
CHARACTER_CLASSES: Mapping[bytes, frozenset[int]] = {
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


class _MatchesNothing(ValueError):
    """A pattern that is incomplete or names an unknown class: git lets it match nothing."""


def wildcard_to_regex(pattern: bytes) -> bytes | None:
    """The regular expression of a pattern; `*`, `?` and sets stop at a slash, `**` between slashes does not."""
    parts: list[bytes] = []
    at = 0
    try:
        while at < len(pattern):
            part, at = _part(pattern, at)
            parts.append(part)
    except _MatchesNothing:
        return None
    return None if parts.count(FOLDERS) > MOST_FOLDERS else _join_parts(parts)


def _join_parts(parts: list[bytes]) -> bytes:
    """Join the parts. What follows a star is matched at its first place for good if another star comes later, so that
    no pattern takes long."""
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
    """Parse a set in brackets as git does: the first member may be `]`, and a range may end in an escaped character."""
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
    """The text to add, the character that could begin a range, and the next position."""
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
            raise _MatchesNothing
        # Without a colon before the bracket, this is a plain set that contains a `[`.
        if end > at + 2 and pattern[end - 1 : end] == b":":
            return _character_class(pattern[at + 2 : end - 1]), None, end + 1
    return frozenset(char), char[0], at + 1


def _character_class(name: bytes) -> frozenset[int]:
    if name not in CHARACTER_CLASSES:
        raise _MatchesNothing
    return CHARACTER_CLASSES[name]


def _char(pattern: bytes, at: int) -> bytes:
    if at >= len(pattern):
        raise _MatchesNothing
    return pattern[at : at + 1]


BOM = b"\xef\xbb\xbf"
GIT_FOLDER = b".git"
# Git has no such limit; this one protects against a file that is made to keep us busy.
MAX_RULES = 5000
WILDCARD_START = re.compile(rb"[*?[\\]")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of an ignore file. `anchored` rules match the path from the file's folder, the others a name."""

    expression: re.Pattern[bytes]
    anchored: bool
    folders_only: bool
    negated: bool

    def matches(self, path: bytes, *, folder: bool) -> bool:
        if self.folders_only and not folder:
            return False
        return self.expression.fullmatch(path if self.anchored else path.rpartition(b"/")[2]) is not None


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The rules of one file; `folder` is the folder where they apply, as names from the root."""

    folder: str
    rules: tuple[IgnoreRule, ...]

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """Whether to ignore a path; None where no rule matches. The last matching rule wins."""
        own = os.fsencode(path)[len(os.fsencode(self.folder)) + 1 if self.folder else 0 :]
        for rule in reversed(self.rules):
            if rule.matches(own, folder=folder):
                return not rule.negated
        return None


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """All rules that apply in a folder, from the root's down to its own."""

    levels: tuple[IgnoreFile, ...] = ()

    def with_file(self, folder: str, text: bytes) -> "IgnoreRules":
        """Add the rules of an ignore file in a folder; `folder` is empty for the root."""
        rules = parse_rules(text)
        return IgnoreRules((*self.levels, IgnoreFile(folder, rules))) if rules else self

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Whether a path is ignored by itself; the content of an ignored folder is too, so do not walk into it."""
        if path.rpartition("/")[2] == os.fsdecode(GIT_FOLDER):
            return True
        for level in reversed(self.levels):
            verdict = level.verdict(path, folder=folder)
            if verdict is not None:
                return verdict
        return False


def parse_rules(text: bytes) -> tuple[IgnoreRule, ...]:
    """The rules in the text of a .gitignore, or of .git/info/exclude."""
    found = (_parse_rule(line) for line in text.removeprefix(BOM).split(b"\n", MAX_RULES)[:MAX_RULES])
    return tuple(rule for rule in found if rule is not None)


@lru_cache(4096)
def _parse_rule(line: bytes) -> IgnoreRule | None:
    if line.startswith(b"#"):
        return None
    pattern = _trim(line.removesuffix(b"\r").partition(b"\0")[0])
    negated = pattern.startswith(b"!")
    pattern = pattern[negated:]
    folders_only = pattern.endswith(b"/")
    pattern = pattern.removesuffix(b"/")
    expression = _pattern_to_regex(pattern.removeprefix(b"/"))
    if expression is None:
        return None
    return IgnoreRule(expression, b"/" in pattern, folders_only, negated)


def _trim(line: bytes) -> bytes:
    """Remove the spaces at the end of a line, unless the first of them is escaped."""
    bare = line.rstrip(b" ")
    if len(bare) == len(line):
        return line
    slashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if slashes % 2 else bare


def _pattern_to_regex(pattern: bytes) -> re.Pattern[bytes] | None:
    """Git compares the text before the first wildcard literally, so the pattern proper begins there."""
    first = WILDCARD_START.search(pattern)
    literal = pattern[: first.start()] if first else pattern
    rest = wildcard_to_regex(pattern[len(literal) :])
    return None if rest is None or not pattern else re.compile(re.escape(literal) + rest, re.DOTALL)


def matches_globs(globs: Sequence[IgnoreRule], path: str) -> bool:
    """Whether gitignore-style globs select a file: one matches it or a folder around it, and no negated one does."""
    wanted = [rule for rule in globs if not rule.negated]
    unwanted = [rule for rule in globs if rule.negated]
    return (not wanted or _any_matches(wanted, path)) and not _any_matches(unwanted, path)


def _any_matches(rules: Sequence[IgnoreRule], path: str) -> bool:
    names = os.fsencode(path).split(b"/")
    ways = [b"/".join(names[:count]) for count in range(1, len(names) + 1)]
    return any(rule.matches(way, folder=way is not ways[-1]) for rule in rules for way in ways)
