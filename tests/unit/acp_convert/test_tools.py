"""How a tool call is described before it runs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.coding.model import FileDiff, FileLocation, OperationKind
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.interfaces.acp.markdown import fenced_block
from frontdesk.interfaces.acp.tool_calls import (
    CONTROL_CHARACTERS,
    LINE_ARGUMENTS,
    PATH_ARGUMENTS,
    QUERY_ARGUMENTS,
    TOOL_KINDS,
    call_locations,
    call_title,
    file_change,
    tool_kind,
)
from tests.unit.acp_convert.board import ROOTS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = sorted([*TOOL_KINDS, "unheard_of", ""])
KEYS = [
    *PATH_ARGUMENTS,
    *LINE_ARGUMENTS,
    *QUERY_ARGUMENTS,
    "command",
    "limit",
    "file_requests",
    "label",
    "url",
    "content",
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("open_file", OperationKind.READ),
        ("grep_file", OperationKind.SEARCH),
        ("search_file", OperationKind.SEARCH),
        ("run_code", OperationKind.EXECUTE),
        ("web_search", OperationKind.FETCH),
        ("edit_file", OperationKind.EDIT),
        ("delete_file", OperationKind.DELETE),
        ("move_file", OperationKind.MOVE),
        ("open_files", OperationKind.READ),
        ("grep_files", OperationKind.SEARCH),
        ("semantic_search_files", OperationKind.SEARCH),
        ("memory_insert", OperationKind.THINK),
        ("core_memory_append", OperationKind.THINK),
        ("update_plan", OperationKind.THINK),
        ("conversation_search", OperationKind.SEARCH),
        ("find_tools", OperationKind.SEARCH),
        ("fetch_webpage", OperationKind.FETCH),
        ("run_command", OperationKind.EXECUTE),
        ("send_message", OperationKind.OTHER),
    ],
)
def test_a_tool_is_of_a_kind(name: str, kind: OperationKind) -> None:
    assert tool_kind(name) is kind


@pytest.mark.parametrize(
    ("name", "arguments", "title"),
    [
        ("read_file", {"path": "src/app.py"}, "Read src/app.py"),
        ("read_file", {"path": "/code/project/src/app.py", "line": 10, "limit": 41}, "Read src/app.py (10–50)"),  # noqa: RUF001 - as shown
        ("read_file", {"path": "a", "start_line": 10}, "Read a (from 10)"),
        ("read_file", {"path": "a", "end_line": 9}, "Read a (1–9)"),  # noqa: RUF001 - as shown
        ("edit_file", {"path": "src/app.py"}, "Edit src/app.py"),
        ("write_file", {"path": "/etc/passwd"}, "Write /etc/passwd"),
        ("list_files", {}, "List ."),
        ("open_files", {"file_requests": [{"file_name": "a"}, {"file_name": "b"}]}, "Read a and 1 more"),
        ("move_file", {"source": "a", "destination": "b/c"}, "Move a to b/c"),
        ("delete_file", {"path": "a"}, "Delete a"),
        ("run_command", {"command": "git status"}, "Run `git status`"),
        ("run_command", {"command": "echo `date`"}, "Run `` echo `date` ``"),
        ("run_command", {"command": "a\n\x1b[31mb"}, "Run `a [31mb`"),
        ("search_files", {"pattern": "x", "path": "src"}, 'Search for "x" in src'),
        ("search_files", {"query": "x"}, 'Search for "x"'),
        ("web_search", {"query": "x"}, 'Search the web for "x"'),
        ("fetch_webpage", {"url": "https://a.example"}, "Fetch https://a.example"),
        ("memory_insert", {"label": "human"}, "Edit memory: human"),
        ("update_plan", {"steps": []}, "Update the plan"),
        ("github__create_issue", {"path": "x"}, "github__create_issue"),
        ("edit_file", {}, "edit_file"),
        ("run_command", {"command": 7}, "run_command"),
        ("", {}, "Tool call"),
    ],
)
def test_a_title_says_what_a_call_does(name: str, arguments: dict[str, Any], title: str) -> None:
    assert call_title(name, arguments, ROOTS) == title


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_whatever_a_model_writes_its_title_is_one_short_line(name: str, arguments: dict[str, Any]) -> None:
    title = call_title(name, arguments, ROOTS)
    assert 0 < len(title) <= 120
    assert title.splitlines() == [title]
    assert not CONTROL_CHARACTERS.search(title)


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_whatever_a_model_writes_its_places_are_inside(name: str, arguments: dict[str, Any]) -> None:
    for place in call_locations(name, arguments, ROOTS):
        assert any(place.path.is_relative_to(root) for root in ROOTS.all)
        assert place.line is None or place.line >= 1


def test_places_are_absolute_and_only_those_in_the_roots() -> None:
    assert call_locations("read_file", {"path": "src/a", "line": 3}, ROOTS) == [
        FileLocation(Path("/code/project/src/a"), 3)
    ]
    assert call_locations("read_file", {"path": "/code/other/a", "line": 0}, ROOTS) == [
        FileLocation(Path("/code/other/a"))
    ]
    assert call_locations("read_file", {"path": "../secret"}, ROOTS) == []
    assert [place.path.name for place in call_locations("move_file", {"source": "a", "destination": "b"}, ROOTS)] == [
        "a",
        "b",
    ]


def test_the_files_of_a_hosts_own_tools_are_not_taken_for_ours() -> None:
    assert call_locations("open_files", {"file_requests": [{"file_name": "notes.txt"}]}, ROOTS) == []
    assert len(call_locations("open_file", {"file_name": "/code/project/a"}, ROOTS)) == 1


def test_a_link_that_leads_outside_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    assert call_locations("read_file", {"path": "link/x"}, WorkspaceRoots.from_folders(tmp_path / "in")) == []


def test_the_change_of_an_edit_is_read_from_its_arguments() -> None:
    path = Path("/code/project/a")
    edit = {"path": "a", "old_string": "x", "new_string": "y"}
    assert file_change("edit_file", edit, ROOTS) == FileDiff(path, "x", "y")
    assert file_change("write_file", {"path": "a", "content": "y"}, ROOTS) == FileDiff(path, None, "y")
    assert file_change("edit_file", {"path": "a", "new_string": "y"}, ROOTS) is None
    assert file_change("write_file", {"path": "/etc/a", "content": "y"}, ROOTS) is None
    assert file_change("delete_file", edit, ROOTS) is None


@given(st.text(alphabet="`a\n"))
def test_code_cannot_end_its_fence(text: str) -> None:
    first, *lines = fenced_block(text).split("\n")
    assert len(first) >= 3
    assert set(first) == {"`"}
    assert [number for number, line in enumerate(lines, 1) if first in line] == [len(lines)]
