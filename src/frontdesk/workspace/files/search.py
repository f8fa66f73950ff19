"""Searches the files of the workspace; whatever the pattern, it ends in time.

Plain text is looked for in a thread. A regular expression can take for ever on a single line, with no way in to stop
it, so it runs in a process of its own that is killed when its time is up; what it found till then counts.
"""

import json
import math
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from frontdesk.errors import Invalid, NotFound
from frontdesk.workspace.files.scan import Line, Query, scan
from frontdesk.workspace.files.walk import OutOfTime
from frontdesk.workspace.roots import Roots

SECONDS = 20.0
LONGEST_PATTERN = 1000
MOST_LINES = 1000
MOST_CONTEXT = 10
LONGEST_ANSWER = 100_000


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found. `cut`: there are more; `timed_out`: not everything was looked through."""

    lines: tuple[Line, ...]
    cut: bool = False
    timed_out: bool = False


async def search(roots: Roots, query: Query, path: Path | None = None, seconds: float = SECONDS) -> Hits:
    """The lines that match in a file or a folder, or in all of the workspace, without what git ignores."""
    asked = _bounded(query)
    paths = roots.all if path is None else (path,)
    if query.plain:
        until = time.monotonic() + seconds
        return await to_thread.run_sync(_here, roots, paths, asked, until, abandon_on_cancel=True)
    return await _apart(roots, paths, asked, seconds)


def _bounded(query: Query) -> Query:
    if not query.pattern or len(query.pattern) > LONGEST_PATTERN:
        raise Invalid(f"Give something to look for, of {LONGEST_PATTERN} characters at most")
    if len(query.glob) > LONGEST_PATTERN:
        raise Invalid(f"Give a glob of {LONGEST_PATTERN} characters at most")
    context = min(max(query.context, 0), MOST_CONTEXT)
    return replace(query, context=context, limit=min(max(query.limit, 1), MOST_LINES))


def _here(roots: Roots, paths: Sequence[Path], query: Query, until: float) -> Hits:
    lines: list[Line] = []
    try:
        lines.extend(scan(roots, paths, query, until))
    except OutOfTime:
        return _hits(lines, query, timed_out=True)
    return _hits(lines, query)


def _hits(lines: Sequence[Line], query: Query, *, timed_out: bool = False) -> Hits:
    """No more matches than were asked for; one more was looked for, to know whether there is one."""
    matched = [index for index, line in enumerate(lines) if line.matched]
    cut = len(matched) > query.limit
    return Hits(tuple(lines[: matched[query.limit]] if cut else lines), cut, timed_out)


async def _apart(roots: Roots, paths: Sequence[Path], query: Query, seconds: float) -> Hits:
    asked = {
        "cwd": str(roots.cwd),
        "others": [str(one) for one in roots.others],
        "paths": [str(one) for one in paths],
        "query": asdict(query),
        "seconds": math.ceil(seconds),
    }
    lines: list[Line] = []
    with anyio.move_on_after(seconds):
        async with _scanner() as process:
            finished = await _converse(process, json.dumps(asked).encode(), lines)
            return _hits(lines, query, timed_out=not finished)
    return _hits(lines, query, timed_out=True)


@asynccontextmanager
async def _scanner() -> AsyncGenerator[Process]:
    """A process that scans; gone at the end. It starts at the top folder, so that no module comes from a workspace."""
    command = [sys.executable, "-P", "-m", scan.__module__]
    top = Path(sys.executable).anchor
    process = await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=top)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _converse(process: Process, asked: bytes, lines: list[Line]) -> bool:
    """Take in what it finds, as it comes; whether it got to the end."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process was opened without its pipes")
    await process.stdin.send(asked)
    await process.stdin.aclose()
    answers = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.IncompleteRead):
        while True:
            match json.loads(await answers.receive_until(b"\n", LONGEST_ANSWER)):
                case [str(path), int(number), str(text), bool(matched)]:
                    lines.append(Line(path, number, text, matched))
                case [kind, str(message)]:
                    raise NotFound(message) if kind == NotFound.__name__ else Invalid(message)
                case [bool(finished)]:
                    return finished
                case _:
                    raise RuntimeError("the scan answered with what is no line")
    return False
