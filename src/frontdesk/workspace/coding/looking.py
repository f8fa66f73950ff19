"""The tools that look: at a file, at what is in a folder, and for a text in many files. Nobody is asked for these."""

import re
from collections.abc import Sequence
from itertools import groupby

from pydantic import Field

from frontdesk.errors import Invalid
from frontdesk.loop.tools import Given, Tool, ToolOutcome
from frontdesk.workspace.coding.called import called_tool
from frontdesk.workspace.coding.model import Bench
from frontdesk.workspace.coding.sight import Sight
from frontdesk.workspace.files.listing import list_files
from frontdesk.workspace.files.scan import Line, Query
from frontdesk.workspace.files.search import Hits, search
from frontdesk.workspace.permissions.model import Place

MOST_LINES = 2000
# A turn cuts what a tool answers at 60,000, and what we say of a cut of our own must not fall to that.
MOST_CHARACTERS = 60_000 - 500
LONGEST_LINE = 300
# As editors count them; Python knows more ends of lines than they do.
LINE = re.compile(r"[^\n]*\n|[^\n]+")


class ReadFile(Given):
    path: str = Field(description="The file: absolute, or from the working folder")
    line: int = Field(1, ge=1, description="The first line to read, counted from 1")
    limit: int = Field(MOST_LINES, ge=1, le=MOST_LINES, description="How many lines to read at most")


class ListFiles(Given):
    path: str = Field(".", description="The folder: absolute, or from the working folder")
    depth: int = Field(3, ge=1, le=20, description="How many levels down")


class SearchFiles(Given):
    query: str = Field(description="What to look for in each line")
    path: str | None = Field(None, description="A file or folder to look in; without it, everywhere")
    glob: str = Field("", description="Which files, such as *.py or src/**/*.{ts,tsx}")
    regex: bool = Field(False, description="Whether the query is a regular expression")
    case: bool = Field(False, description="Whether upper and lower case differ")


class Looking:
    """The three tools on one bench."""

    def __init__(self, bench: Bench, sight: Sight) -> None:
        self._bench = bench
        self._sight = sight

    def tools(self) -> Sequence[Tool]:
        """Folders can be looked through only where there is a disk."""
        reading = "Read a text file, or so many of its lines, with what is not saved yet in the editor."
        read = called_tool("read_file", reading, ReadFile, self.read, reads_only=True)
        if self._bench.disk is None:
            return [read]
        listing = "List the files and folders of a folder, without those that git ignores."
        searching = "Find the lines with a text in the files of the workspace, without those that git ignores."
        return [
            read,
            called_tool("list_files", listing, ListFiles, self.list, reads_only=True),
            called_tool("search_files", searching, SearchFiles, self.search, reads_only=True),
        ]

    async def read(self, call_id: str, given: ReadFile) -> ToolOutcome:
        path = self._bench.roots.inside(given.path)
        await self._bench.show(call_id, Place(path, given.line))
        return ToolOutcome(excerpt(await self._sight.read(path), given.line, given.limit))

    async def list(self, call_id: str, given: ListFiles) -> ToolOutcome:
        path = self._bench.roots.inside(given.path)
        await self._bench.show(call_id, Place(path))
        listing = await list_files(self._bench.roots, path, given.depth)
        names = list(listing.names) or ["(nothing is in there)"]
        more = ["[There is more; name a folder in there, or a smaller depth]"] if listing.cut else []
        return ToolOutcome("\n".join(names + more))

    async def search(self, call_id: str, given: SearchFiles) -> ToolOutcome:
        path = None if given.path is None else self._bench.roots.inside(given.path)
        await self._bench.show(call_id, Place(path or self._bench.roots.cwd))
        query = Query(given.query, plain=not given.regex, any_case=not given.case, glob=given.glob)
        return ToolOutcome(findings(await search(self._bench.roots, query, path)))


def excerpt(text: str, line: int, limit: int) -> str:
    """Some lines of a text as they are, and what to do about the rest; no I/O."""
    lines = LINE.findall(text)
    if not lines:
        return "(the file is empty)"
    if line > len(lines):
        raise Invalid(f"The file has only {len(lines)} lines; ask for one of those")
    shown = _fitting(lines[line - 1 : line - 1 + limit])
    last = line - 1 + len(shown)
    if len(shown[0]) < len(lines[line - 1]):
        return f"{shown[0]}\n[Line {line} of {len(lines)} is cut here; use a command to see the rest of it]"
    if last < len(lines):
        return f"{''.join(shown)}[Lines {line} to {last} of {len(lines)}; read on with line {last + 1}]"
    return "".join(shown)


def _fitting(lines: Sequence[str]) -> Sequence[str]:
    """As many whole lines as an answer holds; at least the first, as far as it goes."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line)
        if size > MOST_CHARACTERS:
            return lines[:count] or [line[:MOST_CHARACTERS]]
    return lines


def findings(hits: Hits) -> str:
    """What a search found, by file; no I/O."""
    parts = [_in_file(path, list(lines)) for path, lines in groupby(hits.lines, key=lambda line: line.path)]
    shown = _fitting(parts) if parts else ["Nothing was found.\n"]
    if hits.timed_out:
        return "".join(shown) + "[Time was up before everything was looked through; look in a folder, or for less]"
    if hits.cut or len(shown) < len(parts):
        return "".join(shown) + "[There is more; look in a folder, or for something rarer]"
    return "".join(shown)


def _in_file(path: str, lines: Sequence[Line]) -> str:
    return f"{path}\n" + "".join(f"{line.number}: {line.text[:LONGEST_LINE]}\n" for line in lines) + "\n"
