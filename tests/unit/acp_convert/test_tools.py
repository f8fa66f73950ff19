"""What is said of a tool call before it runs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.surfaces.acp.convert import tools
from frontdesk.workspace.permissions.model import Diff, Kind, Place
from frontdesk.workspace.roots import Roots
from tests.unit.acp_convert.board import ROOTS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = sorted([*tools.KINDS, "unheard_of", ""])
KEYS = [
    *tools.PATHS,
    *tools.FIRST_LINES,
    *tools.QUERIES,
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
        ("open_file", Kind.READ),
        ("grep_file", Kind.SEARCH),
        ("search_file", Kind.SEARCH),
        ("run_code", Kind.EXECUTE),
        ("web_search", Kind.FETCH),
        ("edit_file", Kind.EDIT),
        ("delete_file", Kind.DELETE),
        ("move_file", Kind.MOVE),
        ("open_files", Kind.READ),
        ("grep_files", Kind.SEARCH),
        ("semantic_search_files", Kind.SEARCH),
        ("memory_insert", Kind.THINK),
        ("core_memory_append", Kind.THINK),
        ("update_plan", Kind.THINK),
        ("conversation_search", Kind.SEARCH),
        ("find_tools", Kind.SEARCH),
        ("fetch_webpage", Kind.FETCH),
        ("run_command", Kind.EXECUTE),
        ("send_message", Kind.OTHER),
    ],
)
def test_a_tool_is_of_a_kind(name: str, kind: Kind) -> None:
    assert tools.kind(name) is kind


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
    assert tools.title(name, arguments, ROOTS) == title


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_whatever_a_model_writes_its_title_is_one_short_line(name: str, arguments: dict[str, Any]) -> None:
    title = tools.title(name, arguments, ROOTS)
    assert 0 < len(title) <= 120
    assert title.splitlines() == [title]
    assert not tools.CONTROL.search(title)


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_whatever_a_model_writes_its_places_are_inside(name: str, arguments: dict[str, Any]) -> None:
    for place in tools.places(name, arguments, ROOTS):
        assert any(place.path.is_relative_to(root) for root in ROOTS.all)
        assert place.line is None or place.line >= 1


def test_places_are_absolute_and_only_those_in_the_roots() -> None:
    assert tools.places("read_file", {"path": "src/a", "line": 3}, ROOTS) == [Place(Path("/code/project/src/a"), 3)]
    assert tools.places("read_file", {"path": "/code/other/a", "line": 0}, ROOTS) == [Place(Path("/code/other/a"))]
    assert tools.places("read_file", {"path": "../secret"}, ROOTS) == []
    assert [place.path.name for place in tools.places("move_file", {"source": "a", "destination": "b"}, ROOTS)] == [
        "a",
        "b",
    ]


def test_the_files_of_a_hosts_own_tools_are_not_taken_for_ours() -> None:
    assert tools.places("open_files", {"file_requests": [{"file_name": "notes.txt"}]}, ROOTS) == []
    assert len(tools.places("open_file", {"file_name": "/code/project/a"}, ROOTS)) == 1


def test_a_link_that_leads_outside_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    assert tools.places("read_file", {"path": "link/x"}, Roots.of(tmp_path / "in")) == []


def test_the_change_of_an_edit_is_read_from_its_arguments() -> None:
    path = Path("/code/project/a")
    edit = {"path": "a", "old_string": "x", "new_string": "y"}
    assert tools.change("edit_file", edit, ROOTS) == Diff(path, "x", "y")
    assert tools.change("write_file", {"path": "a", "content": "y"}, ROOTS) == Diff(path, None, "y")
    assert tools.change("edit_file", {"path": "a", "new_string": "y"}, ROOTS) is None
    assert tools.change("write_file", {"path": "/etc/a", "content": "y"}, ROOTS) is None
    assert tools.change("delete_file", edit, ROOTS) is None


@given(st.text(alphabet="`a\n"))
def test_code_cannot_end_its_fence(text: str) -> None:
    first, *lines = tools.fenced(text).split("\n")
    assert len(first) >= 3
    assert set(first) == {"`"}
    assert [number for number, line in enumerate(lines, 1) if first in line] == [len(lines)]
