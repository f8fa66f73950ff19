"""Scans files line by line; as a program of its own (`-m`), it can be killed in the middle of a line.

The program reads one JSON object from its input, and writes one JSON list for each line that it shows. At the end it
writes whether it finished in time.
"""

import json
import os
import re
import signal
import stat
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontdesk.coding.disk import FolderEntryKind, WalkTimeout, read_contents, walk_folder
from frontdesk.coding.gitignore import IgnoreRule, matches_globs, parse_rules
from frontdesk.coding.paths import OpenPath, WorkspaceRoots, open_path
from frontdesk.errors import FrontdeskError, Invalid

LONGEST_LINE = 2000
BRACES = re.compile(r"\{([^{}]*)\}")
MOST_GLOBS = 64


@dataclass(frozen=True, slots=True)
class FileQuery:
    """A search. `glob` selects files as git's patterns do, and may have braces; `context` is the number of lines
    around."""

    pattern: str
    plain: bool = False
    any_case: bool = False
    glob: str = ""
    context: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file, with its path from the working folder; `matched` is False for a line of context."""

    path: str
    number: int
    text: str
    matched: bool


LineMatcher = Callable[[str], object]


def scan_files(roots: WorkspaceRoots, paths: Iterable[Path], query: FileQuery, until: float) -> Generator[FileLine]:
    """Yield lines as they are found, one match more than the limit at most; `WalkTimeout` when the clock passes
    `until`."""
    found, count = _line_matcher(query), 0
    needle = query.pattern if query.plain and not query.any_case else ""
    for path, at in _files(roots, paths, _parse_globs(query.glob), until):
        text = _readable_text(at)
        if needle not in text:
            continue
        for number, line, matched in _matching_lines(text, found, query.context, until):
            yield FileLine(roots.display(path), number, line, matched)
            count += matched
            if count > query.limit:
                return


def _line_matcher(query: FileQuery) -> LineMatcher:
    try:
        written = re.escape(query.pattern) if query.plain else query.pattern
        return re.compile(written, re.IGNORECASE if query.any_case else 0).search
    except (re.error, RecursionError, OverflowError) as error:
        raise Invalid(f"That is no regular expression of Python's: {error}; search for plain text instead") from error


def _parse_globs(glob: str) -> tuple[IgnoreRule, ...]:
    written = [glob.removeprefix("./")]
    while len(written) < MOST_GLOBS and (braces := next(filter(None, map(BRACES.search, written)), None)):
        whole = braces.string
        written.remove(whole)
        written += [whole[: braces.start()] + choice + whole[braces.end() :] for choice in braces[1].split(",")]
    return parse_rules("\n".join(written).encode(errors="replace"))


def _files(
    roots: WorkspaceRoots, paths: Iterable[Path], globs: tuple[IgnoreRule, ...], until: float
) -> Generator[tuple[Path, OpenPath]]:
    """Yield each file once, even if one root is inside another."""
    seen: set[Path] = set()
    for path in paths:
        for found, name, at in _files_at(roots, path, until):
            if found not in seen and matches_globs(globs, name):
                seen.add(found)
                yield found, at


def _files_at(roots: WorkspaceRoots, path: Path, until: float) -> Generator[tuple[Path, str, OpenPath]]:
    with open_path(roots, path) as at:
        if not stat.S_ISDIR(os.stat(at.name, dir_fd=at.folder, follow_symlinks=False).st_mode):
            yield path, "/".join(roots.split(path)[1]), at
            return
    for entry in walk_folder(roots, path, until):
        if entry.kind is FolderEntryKind.FILE:
            yield entry.path, entry.name, entry.at


def _readable_text(at: OpenPath) -> str:
    """The text of a file; empty where the file is too large, is not text, or cannot be read."""
    try:
        data = read_contents(at, at.name)
    except (OSError, FrontdeskError):
        return ""
    return "" if b"\0" in data else data.decode(errors="replace")


def _matching_lines(text: str, found: LineMatcher, context: int, until: float) -> Generator[tuple[int, str, bool]]:
    before: deque[tuple[int, str, bool]] = deque(maxlen=context)
    after = 0
    for number, whole in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        if time.monotonic() > until:
            raise WalkTimeout
        line = whole.removesuffix("\r")[:LONGEST_LINE]
        if found(line):
            yield from before
            before.clear()
            yield number, line, True
            after = context
        elif after:
            after -= 1
            yield number, line, False
        else:
            before.append((number, line, False))


def _answer_request(arguments: dict[str, Any]) -> Generator[list[object]]:
    roots = WorkspaceRoots(Path(arguments["cwd"]), tuple(map(Path, arguments["others"])))
    until = time.monotonic() + arguments["seconds"]
    try:
        for line in scan_files(roots, map(Path, arguments["paths"]), FileQuery(**arguments["query"]), until):
            yield [line.path, line.number, line.text, line.matched]
        yield [True]
    except WalkTimeout:
        yield [False]
    except FrontdeskError as error:
        yield [type(error).__name__, str(error)]


def main() -> None:
    arguments: dict[str, Any] = json.load(sys.stdin)
    # Normally the process that started us stops us; this is for the case that it has died.
    if hasattr(signal, "alarm"):
        signal.alarm(int(arguments["seconds"]) + 5)
    for one in _answer_request(arguments):
        sys.stdout.write(json.dumps(one) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
