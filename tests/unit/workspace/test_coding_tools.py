"""The tools on files: what they answer, show, ask for and do, on real files behind an editor."""

from pathlib import Path

import anyio
import pytest

from frontdesk.coding.model import FileDiff, FileLocation, OperationKind, PermissionDecision, PermissionRequest
from frontdesk.coding.tools import READ_CHARACTERS, excerpt
from frontdesk.llm.tools import TOOL_SECONDS
from tests.requirements import shows
from tests.unit.workspace.coding_lab import Lab

pytestmark = pytest.mark.anyio
REFUSED = PermissionDecision(allowed=False, reason="not today")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@shows("ACP-CODING")
async def test_there_are_eight_tools_and_those_that_ask_have_time_for_a_person(lab: Lab) -> None:
    assert list(lab.tools) == [
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "edit_file",
        "delete_file",
        "move_file",
        "run_command",
    ]
    looking = {"read_file", "list_files", "search_files"}
    assert {lab.tools[name].seconds for name in looking} == {TOOL_SECONDS}
    assert all(lab.tools[name].seconds > 3600 for name in set(lab.tools) - looking)
    assert lab.tools["run_command"].seconds > 3600 + 600


async def test_an_editor_elsewhere_is_offered_what_it_can_do_itself(tmp_path: Path) -> None:
    assert list(Lab(tmp_path, away=True).tools) == ["read_file", "write_file", "edit_file"]


@shows("ACP-CODING")
async def test_a_file_is_read_with_what_is_not_saved_and_nobody_is_asked(lab: Lab) -> None:
    path = lab.put("src/a.py", "saved\n")
    assert await lab.told("read_file", path="src/a.py") == "saved\n"
    lab.editor.open[path] = "not saved\n"
    assert await lab.told("read_file", path=str(path), line=1) == "not saved\n"
    assert lab.shown == [("call-1", FileLocation(path, 1))] * 2
    assert lab.requests == []


async def test_some_lines_are_read_and_the_rest_is_pointed_to(lab: Lab) -> None:
    lab.put("a", "one\ntwo\nthree\nfour")
    text = await lab.told("read_file", path="a", line=2, limit=2)
    assert text == "two\nthree\n[Lines 2 to 3 of 4; read on with line 4]"
    assert await lab.told("read_file", path="a", line=4) == "four"
    assert "only 4 lines" in await lab.trouble("read_file", path="a", line=5)


def test_a_long_text_is_cut_between_lines_and_a_long_line_within() -> None:
    lines = "".join(f"{number:09}\n" for number in range(10_000))
    assert excerpt(lines, 1, 2000).endswith("000001999\n[Lines 1 to 2000 of 10000; read on with line 2001]")
    cut = excerpt(lines.replace("0\n", "0" * 100 + "\n"), 1, 10_000)
    assert len(cut) < 60_000
    assert "read on with line" in cut
    assert excerpt("x" * 100_000, 1, 2000).startswith("x" * READ_CHARACTERS + "\n[Line 1 of 1 is cut here")
    assert excerpt("a\x0cb\u2028c\r\nd", 2, 1) == "d"
    assert excerpt("", 1, 2000) == "(the file is empty)"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link/passwd", "", "a\0b"])
@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "delete_file", "list_files"])
async def test_nothing_outside_the_workspace_is_touched(lab: Lab, tool: str, path: str) -> None:
    lab.path("link").symlink_to("/etc")
    given = {"write_file": {"content": "x"}, "edit_file": {"old_string": "x", "new_string": "y"}}.get(tool, {})
    assert "workspace" in await lab.trouble(tool, path=path, **given)
    assert lab.requests == []


async def test_a_folder_is_listed_and_searched(lab: Lab) -> None:
    lab.put("src/a.py", "import x\nneedle = 1\n")
    lab.put("b.txt", "Needle.\n")
    assert {"src/", "src/a.py", "b.txt"} <= set((await lab.told("list_files")).splitlines())
    assert "src/a.py" not in (await lab.told("list_files", depth=1)).splitlines()
    found = await lab.told("search_files", query="needle")
    assert "src/a.py\n2: needle = 1\n" in found
    assert "b.txt\n1: Needle.\n" in found
    assert "b.txt" not in await lab.told("search_files", query="needle", case=True)
    assert "src/a.py" not in await lab.told("search_files", query="n.edle", regex=True, glob="*.txt")
    assert await lab.told("search_files", query="nowhere", path="src") == "Nothing was found.\n"
    assert lab.requests == []


@shows("ACP-CODING")
async def test_a_file_is_written_once_and_through_the_editor(lab: Lab) -> None:
    path = lab.path("new/a.py")
    assert await lab.told("write_file", path="new/a.py", content="x = 1\n") == "Made new/a.py."
    assert lab.text("new/a.py") == "x = 1\n"
    assert lab.editor.writes == [path]
    diff = FileDiff(path, None, "x = 1\n")
    assert lab.shown == [("call-1", FileLocation(path)), ("call-1", diff)]
    covers = "edits in this workspace"
    assert lab.requests == [
        PermissionRequest(
            "call-1",
            "write_file",
            OperationKind.EDIT,
            "Write new/a.py",
            (FileLocation(path),),
            (diff,),
            scope="edit",
            scope_text=covers,
        )
    ]


async def test_a_file_that_has_it_already_is_not_written(lab: Lab) -> None:
    lab.put("a", "same")
    assert "already" in await lab.told("write_file", path="a", content="same")
    assert lab.editor.writes == []
    assert lab.requests == []


@shows("ACP-CODING")
async def test_an_edit_shows_what_changes_and_where(lab: Lab) -> None:
    path = lab.put("a.py", "one\r\ntwo\r\nthree\r\n")
    said = await lab.told("edit_file", path="a.py", old_string="two\nthree", new_string="2\n3")
    assert said == "Edited a.py in 1 place, from line 2."
    assert lab.text("a.py") == "one\r\n2\r\n3\r\n"
    diff = FileDiff(path, "one\r\ntwo\r\nthree\r\n", "one\r\n2\r\n3\r\n")
    assert lab.shown == [("call-1", FileLocation(path, 2)), ("call-1", diff)]
    assert lab.requests[0].diffs == (diff,)


async def test_an_edit_that_does_not_fit_asks_nobody_and_changes_nothing(lab: Lab) -> None:
    lab.put("a", "x x")
    assert "2 times" in await lab.trouble("edit_file", path="a", old_string="x", new_string="y")
    assert "not in the file" in await lab.trouble("edit_file", path="a", old_string="z", new_string="y")
    assert "same" in await lab.trouble("edit_file", path="a", old_string="x", new_string="x")
    assert "old_string" in await lab.trouble("edit_file", path="a", old_string="", new_string="x")
    assert "There is no 'b'" in await lab.trouble("edit_file", path="b", old_string="x", new_string="y")
    assert lab.requests == []
    assert lab.text("a") == "x x"
    assert "2 places" in await lab.told("edit_file", path="a", old_string="x", new_string="y", replace_all=True)
    assert lab.text("a") == "y y"


async def test_two_edits_of_a_file_at_once_both_count(lab: Lab) -> None:
    lab.put("a", "one two")

    async def edit(old: str, new: str) -> None:
        await lab.told("edit_file", path="a", old_string=old, new_string=new)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(edit, "one", "1")
        tasks.start_soon(edit, "two", "2")
    assert lab.text("a") == "1 2"


async def test_what_the_person_changed_while_they_were_asked_is_not_overwritten(lab: Lab) -> None:
    path = lab.put("a", "one")

    async def types(_permission_request: PermissionRequest) -> None:
        lab.editor.open[path] = "one, and more"

    lab.meanwhile = types
    said = await lab.trouble("edit_file", path="a", old_string="one", new_string="1")
    assert said == "a was changed meanwhile; read it again before you change it"
    assert lab.editor.writes == []


@shows("ACP-CODING")
async def test_a_file_is_deleted_and_moved(lab: Lab) -> None:
    path = lab.put("a", "text")
    assert await lab.told("move_file", source="a", target="sub/b") == "Moved a to sub/b."
    assert lab.text("sub/b") == "text"
    assert await lab.told("delete_file", path="sub/b") == "Deleted sub/b."
    assert not lab.path("sub/b").exists()
    assert not path.exists()
    assert [(permission_request.kind, permission_request.scope) for permission_request in lab.requests] == [
        (OperationKind.MOVE, "move"),
        (OperationKind.DELETE, "delete"),
    ]
    assert lab.requests[0].locations == (FileLocation(path), FileLocation(lab.path("sub/b")))
    assert [shown for _, shown in lab.shown] == [*lab.requests[0].locations, *lab.requests[1].locations]


async def test_a_link_is_deleted_and_not_what_it_leads_to(lab: Lab) -> None:
    lab.put("a", "text")
    lab.path("link").symlink_to("a")
    lab.path("dangling").symlink_to("nowhere")
    await lab.told("delete_file", path="link")
    await lab.told("delete_file", path="dangling")
    assert lab.text("a") == "text"
    assert [one.name for one in lab.roots.cwd.iterdir()] == ["a"]


async def test_what_cannot_be_deleted_or_moved_is_told_before_anybody_is_asked(lab: Lab) -> None:
    lab.put("a", "1")
    lab.put("b", "2")
    assert "There is no c" in await lab.trouble("delete_file", path="c")
    assert "There is no c" in await lab.trouble("move_file", source="c", target="d")
    assert "there already" in await lab.trouble("move_file", source="a", target="b")
    assert lab.requests == []
    assert (lab.text("a"), lab.text("b")) == ("1", "2")


async def test_what_was_deleted_is_gone_although_the_editor_still_has_it_open(lab: Lab) -> None:
    lab.editor.open[lab.put("a", "text")] = "text"
    await lab.told("delete_file", path="a")
    assert "There is no 'a'" in await lab.trouble("read_file", path="a")
    await lab.told("write_file", path="a", content="new")
    assert await lab.told("read_file", path="a") == "new"


@shows("ACP-CODING")
async def test_what_is_refused_is_not_done_and_the_model_is_told_why(lab: Lab) -> None:
    lab.put("a", "text")
    lab.word = REFUSED
    assert await lab.trouble("write_file", path="a", content="x") == "not today"
    assert await lab.trouble("edit_file", path="a", old_string="text", new_string="x") == "not today"
    assert await lab.trouble("delete_file", path="a") == "not today"
    assert await lab.trouble("move_file", source="a", target="b") == "not today"
    assert await lab.trouble("run_command", command="rm a") == "not today"
    assert lab.text("a") == "text"
    assert lab.editor.writes == []
    assert len(lab.requests) == 5


async def test_arguments_that_do_not_fit_are_told_in_a_line(lab: Lab) -> None:
    assert "Invalid arguments: path" in await lab.trouble("read_file")
    assert "line" in await lab.trouble("read_file", path="a", line=0)
    assert "colour" in await lab.trouble("read_file", path="a", colour="red")
