"""Defines the coding tools: read, list, search, write, edit, delete, move, run a command."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from pydantic import Field

from frontdesk.coding.command_scopes import scope_of_command, scope_of_kind
from frontdesk.coding.commands import CommandResult, CommandRunner, shorten
from frontdesk.coding.files import FileSearchResults, FileView, LocalFiles, list_files, search_files
from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import (
    ASK_SECONDS,
    AskPermission,
    FileDiff,
    FileLocation,
    OperationKind,
    PermissionRequest,
    ShowItem,
    TerminalOutput,
)
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.scan import FileLine, FileQuery
from frontdesk.errors import Conflict, Denied, Invalid, NotFound
from frontdesk.llm.tools import TOOL_SECONDS, Tool, ToolInput, ToolOutcome, typed_tool
from frontdesk.text import one_line

# The time that a person may take to answer, and the time for the work before and after it.
PERSON_SECONDS = ASK_SECONDS + TOOL_SECONDS

G = TypeVar("G", bound=ToolInput)


@dataclass(frozen=True, slots=True)
class CodingContext:
    """What the tools of one prompt need.

    `files` lasts as long as the session. `disk` and `commands` are None where the editor is on another machine and does
    not do this for us; then the tools that need them are not offered. `guard` knows which files need an answer of the
    person each time.
    """

    roots: WorkspaceRoots
    files: FileView
    commands: CommandRunner | None
    ask_permission: AskPermission
    show: ShowItem
    disk: LocalFiles | None
    guard: PathGuard


def called_tool(
    name: str,
    description: str,
    arguments: type[G],
    run: Callable[[str, G], Awaitable[ToolOutcome]],
    seconds: float = TOOL_SECONDS,
    *,
    reads_only: bool = False,
) -> Tool:
    """Like `typed_tool`, for a function that takes the id of the call first."""

    def within(call_id: str) -> Tool:
        return typed_tool(name, description, arguments, partial(run, call_id), reads_only=reads_only)

    async def run_call(call_id: str, given: Mapping[str, Any]) -> ToolOutcome:
        return await within(call_id).run(given)

    return replace(within(""), run_call=run_call, seconds=seconds)


DEFAULT_REFUSAL = "This was refused; ask the person what to do instead"


async def require_permission(context: CodingContext, request: PermissionRequest) -> None:
    """Return when the request is allowed; the reason in `Denied` is in words for the model."""
    for shown in (*request.locations, *request.diffs):
        await context.show(request.call_id, shown)
    decision = await context.ask_permission(request)
    if not decision.allowed:
        raise Denied(decision.reason or DEFAULT_REFUSAL)


READ_LINES = 2000
# A turn cuts a tool's result at 60,000 characters, and must not cut off our own note about a cut.
READ_CHARACTERS = 60_000 - 500
FOUND_LINE_SHOWN = 300
# Line ends as editors count them; Python knows more line ends.
LINE_PATTERN = re.compile(r"[^\n]*\n|[^\n]+")


class ReadFile(ToolInput):
    path: str = Field(description="The file: absolute, or from the working folder")
    line: int = Field(1, ge=1, description="The first line to read, counted from 1")
    limit: int = Field(READ_LINES, ge=1, le=READ_LINES, description="How many lines to read at most")


class ListFiles(ToolInput):
    path: str = Field(".", description="The folder: absolute, or from the working folder")
    depth: int = Field(3, ge=1, le=20, description="How many levels down")


class SearchFiles(ToolInput):
    query: str = Field(description="What to look for in each line")
    path: str | None = Field(None, description="A file or folder to look in; without it, everywhere")
    glob: str = Field("", description="Which files, such as *.py or src/**/*.{ts,tsx}")
    regex: bool = Field(False, description="Whether the query is a regular expression")
    case: bool = Field(False, description="Whether upper and lower case differ")


class ReadingTools:
    """Read, list and search."""

    def __init__(self, context: CodingContext) -> None:
        self._context = context

    def tools(self) -> Sequence[Tool]:
        """The tools; listing and searching folders need a disk."""
        reading = "Read a text file, or so many of its lines, with what is not saved yet in the editor."
        read = called_tool("read_file", reading, ReadFile, self.read, reads_only=True)
        if self._context.disk is None:
            return [read]
        listing = "List the files and folders of a folder, without those that git ignores."
        searching = "Find the lines with a text in the files of the workspace, without those that git ignores."
        return [
            read,
            called_tool("list_files", listing, ListFiles, self.list, reads_only=True),
            called_tool("search_files", searching, SearchFiles, self.search, reads_only=True),
        ]

    async def read(self, call_id: str, given: ReadFile) -> ToolOutcome:
        path = self._context.roots.resolve(given.path)
        await self._context.show(call_id, FileLocation(path, given.line))
        return ToolOutcome(excerpt(await self._context.files.read(path), given.line, given.limit))

    async def list(self, call_id: str, given: ListFiles) -> ToolOutcome:
        path = self._context.roots.resolve(given.path)
        await self._context.show(call_id, FileLocation(path))
        listing = await list_files(self._context.roots, path, given.depth)
        names = list(listing.names) or ["(nothing is in there)"]
        more = ["[There is more; name a folder in there, or a smaller depth]"] if listing.cut else []
        return ToolOutcome("\n".join(names + more))

    async def search(self, call_id: str, given: SearchFiles) -> ToolOutcome:
        path = None if given.path is None else self._context.roots.resolve(given.path)
        await self._context.show(call_id, FileLocation(path or self._context.roots.cwd))
        query = FileQuery(given.query, plain=not given.regex, any_case=not given.case, glob=given.glob)
        return ToolOutcome(describe_search_results(await search_files(self._context.roots, query, path)))


def excerpt(text: str, line: int, limit: int) -> str:
    """Some lines of a text, unchanged, and how to get the rest; no I/O."""
    lines = LINE_PATTERN.findall(text)
    if not lines:
        return "(the file is empty)"
    if line > len(lines):
        raise Invalid(f"The file has only {len(lines)} lines; ask for one of those")
    shown = _take_fitting(lines[line - 1 : line - 1 + limit])
    last = line - 1 + len(shown)
    if len(shown[0]) < len(lines[line - 1]):
        return f"{shown[0]}\n[Line {line} of {len(lines)} is cut here; use a command to see the rest of it]"
    if last < len(lines):
        return f"{''.join(shown)}[Lines {line} to {last} of {len(lines)}; read on with line {last + 1}]"
    return "".join(shown)


def _take_fitting(lines: Sequence[str]) -> Sequence[str]:
    """As many whole lines as fit in a result; at least the beginning of the first."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line)
        if size > READ_CHARACTERS:
            return lines[:count] or [line[:READ_CHARACTERS]]
    return lines


def describe_search_results(hits: FileSearchResults) -> str:
    """Format search results, by file; no I/O."""
    parts = [_lines_of_file(path, list(lines)) for path, lines in groupby(hits.lines, key=lambda line: line.path)]
    shown = _take_fitting(parts) if parts else ["Nothing was found.\n"]
    if hits.timed_out:
        return "".join(shown) + "[Time was up before everything was looked through; look in a folder, or for less]"
    if hits.cut or len(shown) < len(parts):
        return "".join(shown) + "[There is more; look in a folder, or for something rarer]"
    return "".join(shown)


def _lines_of_file(path: str, lines: Sequence[FileLine]) -> str:
    return f"{path}\n" + "".join(f"{line.number}: {line.text[:FOUND_LINE_SHOWN]}\n" for line in lines) + "\n"


LF, CRLF = "\n", "\r\n"


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The whole new text, the line of the first change (counted from 1), and the number of changes."""

    text: str
    line: int
    count: int


def replace_text(text: str, old: str, new: str, *, every: bool = False) -> TextEdit:
    """Replace `old` with `new`; raises `Invalid` where that changes nothing, or the place is ambiguous."""
    if old == new:
        raise Invalid("old_string and new_string are the same, so nothing would change")
    for wanted, given in _line_end_variants(text, old, new):
        count = text.count(wanted)
        if count > 1 and not every:
            raise Invalid(
                f"old_string is there {count} times; give more of the lines around the one you mean, or set replace_all"
            )
        if count:
            changed = text.replace(wanted, given)
            if changed == text:
                raise Invalid("old_string and new_string differ in their line ends alone, so nothing would change")
            return TextEdit(changed, text.count(LF, 0, text.index(wanted)) + 1, count)
    raise Invalid("old_string is not in the file; read it again, and copy what is there with its spaces and line ends")


def _line_end_variants(text: str, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Both texts with the line ends that most of the text has, then with the other line ends, then unchanged."""
    crlf = text.count(CRLF)
    usual = crlf > text.count(LF) - crlf
    for ends in (CRLF, LF) if usual else (LF, CRLF):
        yield _with_line_ends(old, ends), _with_line_ends(new, ends)
    yield old, new


def _with_line_ends(text: str, ends: str) -> str:
    return text.replace(CRLF, LF).replace(LF, ends)


PATH_DESCRIPTION = "The file: absolute, or from the working folder"


class WriteFile(ToolInput):
    path: str = Field(description=PATH_DESCRIPTION)
    content: str = Field(description="All that shall be in the file")


class EditFile(ToolInput):
    path: str = Field(description=PATH_DESCRIPTION)
    old_string: str = Field(min_length=1, description="What is in the file now, to the letter, with its spaces")
    new_string: str = Field(description="What shall be there instead")
    replace_all: bool = Field(False, description="Replace it wherever it is; otherwise it must be there once")


class DeleteFile(ToolInput):
    path: str = Field(description=PATH_DESCRIPTION)


class MoveFile(ToolInput):
    source: str = Field(description="The file or folder: absolute, or from the working folder")
    target: str = Field(description="Its new path, where nothing is yet")


class EditingTools:
    """Makes one change at a time: a model may send two changes of the same file together, and neither may be lost."""

    def __init__(self, context: CodingContext) -> None:
        self._context = context
        self._roots = context.roots
        self._lock = anyio.Lock()

    def tools(self) -> Sequence[Tool]:
        """The tools; deleting and moving files need a disk."""
        writing = "Make a file, or replace all that is in it. To change a part of a file, use edit_file."
        editing = "Replace a piece of a file by another. Read the file first, and copy what is there exactly."
        written = [
            called_tool("write_file", writing, WriteFile, self.write, PERSON_SECONDS),
            called_tool("edit_file", editing, EditFile, self.edit, PERSON_SECONDS),
        ]
        if (disk := self._context.disk) is None:
            return written
        delete, move = partial(self.delete, disk), partial(self.move, disk)
        return [
            *written,
            called_tool("delete_file", "Delete a file.", DeleteFile, delete, PERSON_SECONDS),
            called_tool("move_file", "Move or rename a file or a folder.", MoveFile, move, PERSON_SECONDS),
        ]

    async def write(self, call_id: str, given: WriteFile) -> ToolOutcome:
        path = self._roots.resolve(given.path)
        shown = self._roots.display(path)
        async with self._lock:
            before = await self._context.files.read_if_exists(path)
            if before == given.content:
                return ToolOutcome(f"{shown} has exactly this in it already.")
            done = f"{'Made' if before is None else 'Wrote'} {shown}."
            request = _edit_request(call_id, "write_file", f"Write {shown}", FileDiff(path, before, given.content))
            return await self._write_shown(
                _ask_once(request, await self._context.guard.check_file(given.path, path)), done
            )

    async def edit(self, call_id: str, given: EditFile) -> ToolOutcome:
        path = self._roots.resolve(given.path)
        shown = self._roots.display(path)
        async with self._lock:
            before = await self._context.files.read(path)
            after = replace_text(before, given.old_string, given.new_string, every=given.replace_all)
            request = _edit_request(
                call_id, "edit_file", f"Edit {shown}", FileDiff(path, before, after.text), after.line
            )
            places = "in 1 place" if after.count == 1 else f"in {after.count} places"
            request = _ask_once(request, await self._context.guard.check_file(given.path, path))
            return await self._write_shown(request, f"Edited {shown} {places}, from line {after.line}.")

    async def delete(self, disk: LocalFiles, call_id: str, given: DeleteFile) -> ToolOutcome:
        path = self._roots.resolve_entry(given.path)
        shown = self._roots.display(path)
        async with self._lock:
            await self._require_existing(path)
            request = _file_request(call_id, "delete_file", OperationKind.DELETE, f"Delete {shown}", FileLocation(path))
            await require_permission(
                self._context, _ask_once(request, await self._context.guard.check_file(given.path, path))
            )
            await disk.delete(path)
            self._context.files.note_removal(path)
        return ToolOutcome(f"Deleted {shown}.")

    async def move(self, disk: LocalFiles, call_id: str, given: MoveFile) -> ToolOutcome:
        source, target = self._roots.resolve_entry(given.source), self._roots.resolve_entry(given.target)
        title = f"{self._roots.display(source)} to {self._roots.display(target)}"
        async with self._lock:
            await self._require_existing(source)
            if await _exists(target):
                raise Invalid(
                    f"{self._roots.display(target)} is there already; choose another name, or delete it first"
                )
            request = _file_request(
                call_id, "move_file", OperationKind.MOVE, f"Move {title}", FileLocation(source), FileLocation(target)
            )
            why = await self._context.guard.check_move((given.source, source), (given.target, target))
            await require_permission(self._context, _ask_once(request, why))
            await disk.move(source, target)
            self._context.files.note_removal(source)
        return ToolOutcome(f"Moved {title}.")

    async def _write_shown(self, request: PermissionRequest, done: str) -> ToolOutcome:
        """Write the change that was shown to the person; raises `Conflict` where the file was changed meanwhile."""
        [diff] = request.diffs
        await require_permission(self._context, request)
        if await self._context.files.read_if_exists(diff.path) != diff.before:
            raise Conflict(
                f"{self._roots.display(diff.path)} was changed meanwhile; read it again before you change it"
            )
        await self._context.files.write(diff.path, diff.after)
        return ToolOutcome(done)

    async def _require_existing(self, path: Path) -> None:
        if not await _exists(path):
            raise NotFound(f"There is no {self._roots.display(path)}; list the files to see what there is")


def _ask_once(request: PermissionRequest, why: str) -> PermissionRequest:
    """The request, with a flag to ask each time where there is a reason for that."""
    return replace(request, reason=why, only_once=True) if why else request


async def _exists(path: Path) -> bool:
    """Whether the path exists; a link exists even if its target does not."""
    return await to_thread.run_sync(os.path.lexists, path, abandon_on_cancel=True)


def _edit_request(call_id: str, tool: str, title: str, diff: FileDiff, line: int | None = None) -> PermissionRequest:
    scope = scope_of_kind(OperationKind.EDIT)
    places = (FileLocation(diff.path, line),)
    return PermissionRequest(
        call_id, tool, OperationKind.EDIT, title, places, (diff,), scope=scope.name, scope_text=scope.text
    )


def _file_request(call_id: str, tool: str, kind: OperationKind, title: str, *places: FileLocation) -> PermissionRequest:
    scope = scope_of_kind(kind)
    return PermissionRequest(call_id, tool, kind, title, places, scope=scope.name, scope_text=scope.text)


COMMAND_SECONDS = 120
MAX_COMMAND_SECONDS = 600
# The time for opening and closing a terminal, beyond the time of the command.
SPARE_SECONDS = 60
# A turn cuts a tool's result at 60,000 characters, and would cut off the end, which has the command's outcome.
COMMAND_CHARACTERS = 50_000
TITLE_LENGTH = 200
RUN_COMMAND_DESCRIPTION = (
    "Run a command line in a shell, with nothing to read from, and see what it says. "
    "What it leaves in the background may end with it. Use the other tools to read, find and change files."
)


class RunCommand(ToolInput):
    command: str = Field(min_length=1, max_length=100_000, description="The command line")
    cwd: str = Field(".", description="The folder to run it in: absolute, or from the working folder")
    seconds: int = Field(
        COMMAND_SECONDS, ge=1, le=MAX_COMMAND_SECONDS, description="How long it may take before it is stopped"
    )


class CommandTool:
    """Run a command."""

    def __init__(self, context: CodingContext) -> None:
        self._context = context

    def tools(self) -> Sequence[Tool]:
        if (commands := self._context.commands) is None:
            return ()
        seconds = PERSON_SECONDS + MAX_COMMAND_SECONDS + SPARE_SECONDS
        return [called_tool("run_command", RUN_COMMAND_DESCRIPTION, RunCommand, partial(self.run, commands), seconds)]

    async def run(self, commands: CommandRunner, call_id: str, given: RunCommand) -> ToolOutcome:
        if not given.command.strip() or "\0" in given.command:
            raise Invalid("Give a command line to run")
        cwd = self._context.roots.resolve(given.cwd)
        await require_permission(self._context, await self._request(call_id, given.command, cwd))

        async def opened(terminal_id: str) -> None:
            await self._context.show(call_id, TerminalOutput(terminal_id))

        self._context.files.note_command()
        ran = await commands.run(given.command, cwd, given.seconds, opened)
        return ToolOutcome(describe_command_result(ran, given.seconds), ok=ran.exit_code == 0)

    async def _request(self, call_id: str, command: str, cwd: Path) -> PermissionRequest:
        roots, guard = self._context.roots, self._context.guard
        scope = scope_of_command(command, "" if cwd == roots.cwd else roots.display(cwd))
        return PermissionRequest(
            call_id,
            "run_command",
            OperationKind.EXECUTE,
            f"Run `{_printable(one_line(command, TITLE_LENGTH))}`",
            command=command,
            scope=scope.name,
            scope_text=scope.text,
            warning=scope.warning,
            defining_files=await guard.defining_files(command, cwd) if scope.name else (),
            reason=(why := await guard.check_command(command, cwd)),
            only_once=bool(why),
        )


def _printable(text: str) -> str:
    """Replace characters that do not print, so that a person who approves a text is not misled."""
    return "".join(one if one.isprintable() else "?" for one in text)


def describe_command_result(ran: CommandResult, seconds: float) -> str:
    """Format the output and the outcome of a command; no I/O."""
    output = shorten(ran.output, COMMAND_CHARACTERS)
    gap = "" if not output or output.endswith("\n") else "\n"
    cut = "[Its output was long, and some of it is left out]\n" if ran.truncated else ""
    return f"{output}{gap}{cut}[{_describe_end(ran, seconds)}]"


def _describe_end(ran: CommandResult, seconds: float) -> str:
    if ran.timed_out:
        return f"Stopped, as it took longer than {seconds:g} s"
    if ran.exit_code is not None:
        return f"Exit code {ran.exit_code}"
    return f"Ended by {ran.signal}" if ran.signal else "Ended, and nobody knows how"


def coding_tools(context: CodingContext) -> Sequence[Tool]:
    """The tools of one prompt."""
    return [*ReadingTools(context).tools(), *EditingTools(context).tools(), *CommandTool(context).tools()]
