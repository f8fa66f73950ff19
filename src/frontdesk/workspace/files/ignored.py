"""What git ignores, told from the text of its ignore files alone; git's own reading of the format, to the byte.

Source: git's dir.c and wildmatch.c, where the manual (gitignore(5)) leaves things open.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from frontdesk.workspace.files.wildcard import as_expression

BOM = b"\xef\xbb\xbf"
OURS = b".git"
# Git knows no such limit; a file made to keep us busy does.
MOST_LINES = 5000
SPECIAL = re.compile(rb"[*?[\\]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file. `anchored` ones speak of the path from the file's folder, the others of a name."""

    expression: re.Pattern[bytes]
    anchored: bool
    folders_only: bool
    negated: bool

    def fits(self, path: bytes, *, folder: bool) -> bool:
        if self.folders_only and not folder:
            return False
        return self.expression.fullmatch(path if self.anchored else path.rpartition(b"/")[2]) is not None


@dataclass(frozen=True, slots=True)
class Level:
    """The rules of one file; `folder` is where they count, as names from the root."""

    folder: str
    rules: tuple[Rule, ...]

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """Whether to ignore; None where no rule says anything. The last one that does wins."""
        own = os.fsencode(path)[len(os.fsencode(self.folder)) + 1 if self.folder else 0 :]
        for rule in reversed(self.rules):
            if rule.fits(own, folder=folder):
                return not rule.negated
        return None


@dataclass(frozen=True, slots=True)
class Ignored:
    """All rules that count in a folder, from the root's down to its own."""

    levels: tuple[Level, ...] = ()

    def and_in(self, folder: str, text: bytes) -> "Ignored":
        """These, and those of an ignore file in a folder; `folder` is empty for the root."""
        rules = rules_of(text)
        return Ignored((*self.levels, Level(folder, rules))) if rules else self

    def has(self, path: str, *, folder: bool) -> bool:
        """Whether a path is ignored by itself; what is in an ignored folder is too, so do not look in there."""
        if path.rpartition("/")[2] == os.fsdecode(OURS):
            return True
        for level in reversed(self.levels):
            verdict = level.verdict(path, folder=folder)
            if verdict is not None:
                return verdict
        return False


def rules_of(text: bytes) -> tuple[Rule, ...]:
    """The rules in the text of a .gitignore, or of .git/info/exclude."""
    found = (_rule(line) for line in text.removeprefix(BOM).split(b"\n", MOST_LINES)[:MOST_LINES])
    return tuple(rule for rule in found if rule is not None)


@lru_cache(4096)
def _rule(line: bytes) -> Rule | None:
    if line.startswith(b"#"):
        return None
    pattern = _trimmed(line.removesuffix(b"\r").partition(b"\0")[0])
    negated = pattern.startswith(b"!")
    pattern = pattern[negated:]
    folders_only = pattern.endswith(b"/")
    pattern = pattern.removesuffix(b"/")
    expression = _expression(pattern.removeprefix(b"/"))
    if expression is None:
        return None
    return Rule(expression, b"/" in pattern, folders_only, negated)


def _trimmed(line: bytes) -> bytes:
    """Without the spaces at its end, unless the first of them is escaped."""
    bare = line.rstrip(b" ")
    if len(bare) == len(line):
        return line
    slashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if slashes % 2 else bare


def _expression(pattern: bytes) -> re.Pattern[bytes] | None:
    """Git compares what comes before the first wildcard by itself, so the pattern proper begins there."""
    first = SPECIAL.search(pattern)
    literal = pattern[: first.start()] if first else pattern
    rest = as_expression(pattern[len(literal) :])
    return None if rest is None or not pattern else re.compile(re.escape(literal) + rest, re.DOTALL)


def picks(globs: Sequence[Rule], path: str) -> bool:
    """Whether a file is meant by globs that read like rules: it or a folder it is in fits, and no negated one does."""
    wanted = [rule for rule in globs if not rule.negated]
    unwanted = [rule for rule in globs if rule.negated]
    return (not wanted or _any_fits(wanted, path)) and not _any_fits(unwanted, path)


def _any_fits(rules: Sequence[Rule], path: str) -> bool:
    names = os.fsencode(path).split(b"/")
    ways = [b"/".join(names[:count]) for count in range(1, len(names) + 1)]
    return any(rule.fits(way, folder=way is not ways[-1]) for rule in rules for way in ways)
