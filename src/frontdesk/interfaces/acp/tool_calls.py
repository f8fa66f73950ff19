"""Describes tool calls for an editor, and keeps what an editor has been shown of each; no I/O."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from frontdesk.coding.model import FileDiff, FileLocation, OperationKind, TerminalOutput
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.errors import Invalid
from frontdesk.interfaces.acp import convert
from frontdesk.interfaces.acp.convert import CallStatus
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.interfaces.acp.markdown import code_span
from frontdesk.text import one_line, storable

TITLE_CHARACTERS = 120
PART_CHARACTERS = 80
TOOL_KINDS: Mapping[str, OperationKind] = {
    **dict.fromkeys(("read_file", "list_files", "open_file", "open_files"), OperationKind.READ),
    **dict.fromkeys(("write_file", "edit_file"), OperationKind.EDIT),
    "delete_file": OperationKind.DELETE,
    "move_file": OperationKind.MOVE,
    **dict.fromkeys(
        (
            "search_files",
            "search_file",
            "grep_file",
            "grep_files",
            "semantic_search_files",
            "conversation_search",
            "archival_memory_search",
            "find_tools",
        ),
        OperationKind.SEARCH,
    ),
    **dict.fromkeys(("run_command", "run_code"), OperationKind.EXECUTE),
    **dict.fromkeys(("web_search", "fetch_webpage"), OperationKind.FETCH),
    **dict.fromkeys(
        (
            "update_plan",
            "memory",
            "memory_insert",
            "memory_replace",
            "memory_rethink",
            "memory_apply_patch",
            "core_memory_append",
            "core_memory_replace",
            "archival_memory_insert",
        ),
        OperationKind.THINK,
    ),
}
# Paths of these tools are in the workspace; other tools name files of their host, unless a path is absolute.
CODING_TOOLS = frozenset(
    {
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "edit_file",
        "delete_file",
        "move_file",
        "run_command",
    }
)
PATH_ARGUMENTS = ("path", "file_path", "file_name", "source", "destination", "old_path", "new_path", "cwd")
LINE_ARGUMENTS = ("line", "start_line", "offset")
QUERY_ARGUMENTS = ("query", "pattern", "text", "regex")
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
VERBS: Mapping[str, str] = {
    "read_file": "Read",
    "open_file": "Read",
    "open_files": "Read",
    "list_files": "List",
    "write_file": "Write",
    "edit_file": "Edit",
    "delete_file": "Delete",
}
SEARCH_VERBS: Mapping[str, str] = {
    "web_search": "Search the web for",
    "conversation_search": "Search what was said for",
    "archival_memory_search": "Search memory for",
    "find_tools": "Find tools for",
}
CallArguments = Mapping[str, Any]


def tool_kind(name: str) -> OperationKind:
    """The protocol's kind for a tool; OTHER for an unknown tool."""
    return TOOL_KINDS.get(name, OperationKind.OTHER)


def call_title(name: str, arguments: CallArguments, roots: WorkspaceRoots) -> str:
    """What a call does, on one line; the tool's name where nothing else is known."""
    title = _title_builder(tool_kind(name), name)(name, arguments, roots)
    return bounded_title(title or name) or "Tool call"


def bounded_title(text: str) -> str:
    """A title on one line, without control characters."""
    return one_line(CONTROL_CHARACTERS.sub(" ", storable(text)), TITLE_CHARACTERS)


def call_locations(name: str, arguments: CallArguments, roots: WorkspaceRoots) -> Sequence[FileLocation]:
    """The files of the workspace that a call names; lines count from 1."""
    found: dict[str, FileLocation] = {}
    for given, line in _named_paths(name, arguments):
        if (place := _location_of(name, given, line, roots)) is not None:
            found.setdefault(str(place.path), place)
    return list(found.values())


def file_change(name: str, arguments: CallArguments, roots: WorkspaceRoots) -> FileDiff | None:
    """The change that a call made to a file, as far as its arguments tell; for an edit, only the passage."""
    if name not in ("edit_file", "write_file"):
        return None
    place = next(iter(call_locations(name, arguments, roots)), None)
    before, after = ("old_string", "new_string") if name == "edit_file" else ("", "content")
    old, new = arguments.get(before), arguments.get(after)
    if place is None or not isinstance(new, str) or (before and not isinstance(old, str)):
        return None
    return FileDiff(place.path, cast("str | None", old) if before else None, new)


def _title_builder(sort: OperationKind, name: str) -> Callable[[str, CallArguments, WorkspaceRoots], str]:
    if name in VERBS:
        return _file_title
    if sort is OperationKind.SEARCH or name in SEARCH_VERBS:
        return _search_title
    return {
        OperationKind.EXECUTE: _run_title,
        OperationKind.MOVE: _move_title,
        OperationKind.FETCH: _fetch_title,
        OperationKind.THINK: _memory_title,
    }.get(sort, _plain_title)


def _file_title(name: str, arguments: CallArguments, roots: WorkspaceRoots) -> str:
    files = [_shown_path(given, roots) for given, _ in _named_paths(name, arguments)]
    if name == "list_files":
        return f"List {files[0] if files else '.'}"
    if not files:
        return ""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{VERBS[name]} {files[0]}{more}{'' if more or name != 'read_file' else _line_range(arguments)}"


def _line_range(arguments: CallArguments) -> str:
    first = _number_argument(arguments, *LINE_ARGUMENTS)
    last, count = _number_argument(arguments, "end_line"), _number_argument(arguments, "limit", "length")
    last = last or (((first or 1) + count - 1) if count else None)
    if first is None and last is None:
        return ""
    return f" ({first or 1}–{last})" if last else f" (from {first})"  # noqa: RUF001 - how a range is written


def _search_title(name: str, arguments: CallArguments, roots: WorkspaceRoots) -> str:
    query = next((text for key in QUERY_ARGUMENTS if (text := _text_argument(arguments, key))), "")
    if not query:
        return ""
    wanted = one_line(CONTROL_CHARACTERS.sub(" ", query), PART_CHARACTERS)
    where = next((_shown_path(given, roots) for given, _ in _named_paths(name, arguments)), "")
    within = f" in {where}" if where and where != "." else ""
    return f'{SEARCH_VERBS.get(name, "Search for")} "{wanted}"{within}'


def _run_title(_name: str, arguments: CallArguments, _roots: WorkspaceRoots) -> str:
    command = _text_argument(arguments, "command") or _text_argument(arguments, "code")
    return f"Run {code_span(CONTROL_CHARACTERS.sub(' ', command), PART_CHARACTERS)}" if command else ""


def _move_title(name: str, arguments: CallArguments, roots: WorkspaceRoots) -> str:
    files = [_shown_path(given, roots) for given, _ in _named_paths(name, arguments)]
    return f"Move {files[0]} to {files[1]}" if len(files) > 1 else ""


def _fetch_title(_name: str, arguments: CallArguments, _roots: WorkspaceRoots) -> str:
    url = _text_argument(arguments, "url")
    return f"Fetch {url}" if url else ""


def _memory_title(name: str, arguments: CallArguments, _roots: WorkspaceRoots) -> str:
    if name == "update_plan":
        return "Update the plan"
    label = _text_argument(arguments, "label") or _text_argument(arguments, "path")
    return f"Edit memory: {label}" if label else "Edit memory"


def _plain_title(name: str, _arguments: CallArguments, _roots: WorkspaceRoots) -> str:
    return name


def _named_paths(name: str, arguments: CallArguments) -> Iterator[tuple[str, int | None]]:
    """The paths that a call names, each with its first line where the call names one."""
    if tool_kind(name) in (OperationKind.THINK, OperationKind.OTHER, OperationKind.FETCH):
        return
    several: object = arguments.get("file_requests")
    asked = cast("list[object]", several) if isinstance(several, list) else [arguments]
    for one in asked:
        if isinstance(one, Mapping):
            given = cast("CallArguments", one)
            for key in PATH_ARGUMENTS:
                if path := _text_argument(given, key):
                    yield path, _number_argument(given, *LINE_ARGUMENTS)


def _location_of(name: str, text: str, line: int | None, roots: WorkspaceRoots) -> FileLocation | None:
    if name not in CODING_TOOLS and not text.startswith("/"):
        return None
    try:
        return FileLocation(roots.resolve(text), line)
    except Invalid:
        return None


def _shown_path(text: str, roots: WorkspaceRoots) -> str:
    try:
        return roots.display(roots.resolve(text))
    except Invalid:
        return text


def _text_argument(arguments: CallArguments, key: str) -> str:
    found = arguments.get(key)
    return found.strip() if isinstance(found, str) else ""


def _number_argument(arguments: CallArguments, *keys: str) -> int | None:
    """The first of these arguments that is a line number."""
    given = (arguments.get(key) for key in keys)
    return next((one for one in given if isinstance(one, int) and not isinstance(one, bool) and 0 < one < 2**31), None)


@dataclass(slots=True)
class ShownToolCall:
    """A call as the editor has it; `status` is None until it is shown."""

    sent_id: str
    status: CallStatus | None = None
    awaits_approval: bool = False
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    locations_by_path: dict[str, FileLocation] = field(default_factory=dict[str, FileLocation])
    diffs: dict[str, FileDiff] = field(default_factory=dict[str, FileDiff])
    terminals: list[str] = field(default_factory=list[str])
    shown: anyio.Event = field(default_factory=anyio.Event)

    @property
    def has_ended(self) -> bool:
        return self.status in ("completed", "failed")

    @property
    def is_open(self) -> bool:
        return self.status is not None and not self.has_ended

    def put(self, part: FileDiff | FileLocation | TerminalOutput) -> None:
        """Add a part; it replaces an earlier part for the same file."""
        match part:
            case FileLocation():
                self.locations_by_path[str(part.path)] = part
            case FileDiff():
                self.diffs[str(part.path)] = part
            case TerminalOutput(terminal_id) if terminal_id not in self.terminals:
                self.terminals.append(terminal_id)
            case TerminalOutput():
                pass

    def locate(self, places: Sequence[FileLocation]) -> None:
        """Add the files that the arguments name; locations that the tool itself showed stay."""
        for place in places:
            self.locations_by_path.setdefault(str(place.path), place)

    def content(self, *more: Json) -> Sequence[Json]:
        """The whole content of the call, since an update replaces all of it."""
        diffs = [convert.call_diff(one) for one in self.diffs.values()]
        return [*diffs, *(convert.call_terminal(one) for one in self.terminals), *more]

    def locations(self) -> Sequence[Json]:
        return [convert.call_location(one) for one in self.locations_by_path.values()]


class ShownToolCalls:
    """The newest call for each of the host's ids; a model may use an id again once its call has ended."""

    def __init__(self, waiting: Mapping[str, str]) -> None:
        self._newest = {
            call_id: ShownToolCall(sent_id, "pending", awaits_approval=True) for call_id, sent_id in waiting.items()
        }
        self._all = list(self._newest.values())
        self._used = set(waiting.values())
        for call in self._all:
            call.shown.set()

    def find(self, call_id: str) -> ShownToolCall | None:
        return self._newest.get(call_id)

    def reserve(self, turn_id: str, call_id: str) -> ShownToolCall:
        """The newest call with this id, or a new one that is shown later."""
        return self._newest.get(call_id) or self._add(turn_id, call_id)

    def take(self, turn_id: str, call_id: str) -> ShownToolCall:
        """The open call with this id, or a new one."""
        found = self._newest.get(call_id)
        return self._add(turn_id, call_id) if found is None or found.has_ended else found

    def unused(self, wanted: str) -> str:
        """This id, or a similar one where it is used; the same calls in the same order get the same ids."""
        found, number = wanted, 1
        while found in self._used:
            number += 1
            found = f"{wanted}-{number}"
        self._used.add(found)
        return found

    def open(self) -> Iterator[ShownToolCall]:
        return (call for call in self._all if call.is_open)

    def waiting(self) -> Mapping[str, str]:
        """The calls that wait for approval: the host's id, and the id that the editor has."""
        return {
            call_id: call.sent_id for call_id, call in self._newest.items() if call.is_open and call.awaits_approval
        }

    def _add(self, turn_id: str, call_id: str) -> ShownToolCall:
        call = self._newest[call_id] = ShownToolCall(self.unused(f"{turn_id}-{call_id}"))
        self._all.append(call)
        return call
