"""A tool call as a person understands it: of what kind it is, what it does in one line, and which files it touches."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from frontdesk.errors import Invalid
from frontdesk.loop.text import one_line, storable
from frontdesk.workspace.permissions.model import Diff, Kind, Place
from frontdesk.workspace.roots import Roots

TITLE_CHARACTERS = 120
PART_CHARACTERS = 80
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("read_file", "list_files", "open_file", "open_files"), Kind.READ),
    **dict.fromkeys(("write_file", "edit_file"), Kind.EDIT),
    "delete_file": Kind.DELETE,
    "move_file": Kind.MOVE,
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
        Kind.SEARCH,
    ),
    **dict.fromkeys(("run_command", "run_code"), Kind.EXECUTE),
    **dict.fromkeys(("web_search", "fetch_webpage"), Kind.FETCH),
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
        Kind.THINK,
    ),
}
# Their paths are of the workspace; those of a host's own tools are of its own files, unless they are absolute.
CODING = frozenset(
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
PATHS = ("path", "file_path", "file_name", "source", "destination", "old_path", "new_path", "cwd")
FIRST_LINES = ("line", "start_line", "offset")
QUERIES = ("query", "pattern", "text", "regex")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
FENCE = re.compile(r"`+")
VERBS: Mapping[str, str] = {
    "read_file": "Read",
    "open_file": "Read",
    "open_files": "Read",
    "list_files": "List",
    "write_file": "Write",
    "edit_file": "Edit",
    "delete_file": "Delete",
}
SEARCHES: Mapping[str, str] = {
    "web_search": "Search the web for",
    "conversation_search": "Search what was said for",
    "archival_memory_search": "Search memory for",
    "find_tools": "Find tools for",
}
Arguments = Mapping[str, Any]


def kind(name: str) -> Kind:
    """In the protocol's words; what is not known here is of no kind."""
    return KINDS.get(name, Kind.OTHER)


def title(name: str, arguments: Arguments, roots: Roots) -> str:
    """What a call does, on one line; the tool's name where that is all that can be said."""
    told = _told(kind(name), name)(name, arguments, roots)
    return bounded(told or name) or "Tool call"


def bounded(text: str) -> str:
    """A title: one line, without what a terminal would obey."""
    return one_line(CONTROL.sub(" ", storable(text)), TITLE_CHARACTERS)


def places(name: str, arguments: Arguments, roots: Roots) -> Sequence[Place]:
    """The files of the workspace that a call is about; lines count from 1."""
    found: dict[str, Place] = {}
    for given, line in _paths(name, arguments):
        if (place := _place(name, given, line, roots)) is not None:
            found.setdefault(str(place.path), place)
    return list(found.values())


def change(name: str, arguments: Arguments, roots: Roots) -> Diff | None:
    """What a call has changed in a file, as far as its arguments tell; a fragment, for an edit."""
    if name not in ("edit_file", "write_file"):
        return None
    place = next(iter(places(name, arguments, roots)), None)
    before, after = ("old_string", "new_string") if name == "edit_file" else ("", "content")
    old, new = arguments.get(before), arguments.get(after)
    if place is None or not isinstance(new, str) or (before and not isinstance(old, str)):
        return None
    return Diff(place.path, cast("str | None", old) if before else None, new)


def code(text: str, most: int = PART_CHARACTERS) -> str:
    """A text as code within a line, whatever backticks are in it."""
    line = one_line(CONTROL.sub(" ", text), most)
    fence = "`" * (max((len(run) for run in FENCE.findall(line)), default=0) + 1)
    return f"{fence}{line}{fence}" if len(fence) == 1 else f"{fence} {line} {fence}"


def fenced(text: str) -> str:
    """A text as a block of code, whatever backticks are in it."""
    fence = "`" * max(3, max((len(run) for run in FENCE.findall(text)), default=0) + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _told(sort: Kind, name: str) -> Callable[[str, Arguments, Roots], str]:
    if name in VERBS:
        return _verb
    if sort is Kind.SEARCH or name in SEARCHES:
        return _search
    return {Kind.EXECUTE: _run, Kind.MOVE: _move, Kind.FETCH: _fetch, Kind.THINK: _think}.get(sort, _plain)


def _verb(name: str, arguments: Arguments, roots: Roots) -> str:
    files = [_shown(given, roots) for given, _ in _paths(name, arguments)]
    if name == "list_files":
        return f"List {files[0] if files else '.'}"
    if not files:
        return ""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{VERBS[name]} {files[0]}{more}{'' if more or name != 'read_file' else _lines(arguments)}"


def _lines(arguments: Arguments) -> str:
    first = _number(arguments, *FIRST_LINES)
    last, count = _number(arguments, "end_line"), _number(arguments, "limit", "length")
    last = last or (((first or 1) + count - 1) if count else None)
    if first is None and last is None:
        return ""
    return f" ({first or 1}–{last})" if last else f" (from {first})"  # noqa: RUF001 - how a range is written


def _search(name: str, arguments: Arguments, roots: Roots) -> str:
    query = next((text for key in QUERIES if (text := _text(arguments, key))), "")
    if not query:
        return ""
    wanted = one_line(CONTROL.sub(" ", query), PART_CHARACTERS)
    where = next((_shown(given, roots) for given, _ in _paths(name, arguments)), "")
    within = f" in {where}" if where and where != "." else ""
    return f'{SEARCHES.get(name, "Search for")} "{wanted}"{within}'


def _run(_name: str, arguments: Arguments, _roots: Roots) -> str:
    command = _text(arguments, "command") or _text(arguments, "code")
    return f"Run {code(command)}" if command else ""


def _move(name: str, arguments: Arguments, roots: Roots) -> str:
    files = [_shown(given, roots) for given, _ in _paths(name, arguments)]
    return f"Move {files[0]} to {files[1]}" if len(files) > 1 else ""


def _fetch(_name: str, arguments: Arguments, _roots: Roots) -> str:
    url = _text(arguments, "url")
    return f"Fetch {url}" if url else ""


def _think(name: str, arguments: Arguments, _roots: Roots) -> str:
    if name == "update_plan":
        return "Update the plan"
    label = _text(arguments, "label") or _text(arguments, "path")
    return f"Edit memory: {label}" if label else "Edit memory"


def _plain(name: str, _arguments: Arguments, _roots: Roots) -> str:
    return name


def _paths(name: str, arguments: Arguments) -> Iterator[tuple[str, int | None]]:
    """The paths that a call names, each with the line it begins at, if one is named."""
    if kind(name) in (Kind.THINK, Kind.OTHER, Kind.FETCH):
        return
    several: object = arguments.get("file_requests")
    asked = cast("list[object]", several) if isinstance(several, list) else [arguments]
    for one in asked:
        if isinstance(one, Mapping):
            given = cast("Arguments", one)
            for key in PATHS:
                if path := _text(given, key):
                    yield path, _number(given, *FIRST_LINES)


def _place(name: str, given: str, line: int | None, roots: Roots) -> Place | None:
    if name not in CODING and not given.startswith("/"):
        return None
    try:
        return Place(roots.inside(given), line)
    except Invalid:
        return None


def _shown(given: str, roots: Roots) -> str:
    try:
        return roots.shown(roots.inside(given))
    except Invalid:
        return given


def _text(arguments: Arguments, key: str) -> str:
    found = arguments.get(key)
    return found.strip() if isinstance(found, str) else ""


def _number(arguments: Arguments, *keys: str) -> int | None:
    """The first of these that counts lines from 1."""
    given = (arguments.get(key) for key in keys)
    return next((one for one in given if isinstance(one, int) and not isinstance(one, bool) and 0 < one < 2**31), None)
