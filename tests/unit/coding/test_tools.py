"""Tests the coding tools on real files and processes: edits, files and commands, as an editor shows them."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.coding.commands import CommandResult, CommandRunner, LocalCommands, OnTerminalOpened
from frontdesk.coding.files import FileView, LocalFiles
from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import (
    FileDiff,
    FileLocation,
    OperationKind,
    PermissionDecision,
    PermissionRequest,
    ShownItem,
    TerminalOutput,
)
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.coding.tools import (
    COMMAND_CHARACTERS,
    READ_CHARACTERS,
    CodingContext,
    TextEdit,
    coding_tools,
    describe_command_result,
    excerpt,
    replace_text,
)
from frontdesk.errors import Invalid, NotFound
from frontdesk.llm.tools import TOOL_SECONDS, Tool, ToolOutcome, run_tool
from tests.requirements import shows

# The tools on real files and real processes, with an editor with unsaved files and a person who answers


@dataclass
class Buffers:
    """An editor's files: an open file's text counts, and is saved on a write; other files are on the disk."""

    disk: LocalFiles
    open: dict[Path, str] = field(default_factory=dict[Path, str])
    writes: list[Path] = field(default_factory=list[Path])
    keeps_unsaved: bool = False

    async def read(self, path: Path) -> str:
        return self.open[path] if path in self.open else await self.disk.read(path)

    async def write(self, path: Path, text: str) -> None:
        self.writes.append(path)
        self.open[path] = text
        if not self.keeps_unsaved:
            await self.disk.write(path, text)


async def _nothing(_permission_request: PermissionRequest) -> None:
    pass


class Lab:
    """The tools, their updates, their permission requests, and the person's answers."""

    def __init__(
        self, folder: Path, *, commands: CommandRunner | None = None, other: Path | None = None, away: bool = False
    ) -> None:
        self.roots = WorkspaceRoots.from_folders(folder, [other] if other else ())
        self.disk = LocalFiles(self.roots)
        self.editor = Buffers(self.disk)
        self.word = PermissionDecision(allowed=True)
        self.meanwhile: Callable[[PermissionRequest], Awaitable[None]] = _nothing
        self.requests: list[PermissionRequest] = []
        self.shown: list[tuple[str, ShownItem]] = []
        runs = None if away else commands or LocalCommands(0.1)
        guard = PathGuard(self.roots, local=not away)
        disk = None if away else self.disk
        files = FileView(self.editor, disk)
        bench = CodingContext(self.roots, files, runs, self.leave, self.show, disk, guard)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in coding_tools(bench)}

    async def leave(self, permission_request: PermissionRequest) -> PermissionDecision:
        self.requests.append(permission_request)
        await self.meanwhile(permission_request)
        return self.word

    async def show(self, call_id: str, shown: ShownItem) -> None:
        self.shown.append((call_id, shown))

    async def use(self, name: str, **given: Any) -> ToolOutcome:
        return await run_tool(self.tools[name], given, "call-1")

    async def told(self, name: str, **given: Any) -> str:
        """The text of a successful tool call."""
        outcome = await self.use(name, **given)
        assert outcome.ok, outcome.text
        return outcome.text

    async def trouble(self, name: str, **given: Any) -> str:
        """The text of a failed tool call."""
        outcome = await self.use(name, **given)
        assert not outcome.ok, outcome.text
        return outcome.text

    def path(self, name: str) -> Path:
        return self.roots.cwd / name

    def put(self, name: str, text: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def text(self, name: str) -> str:
        """The text on the disk, with its line ends."""
        try:
            return self.path(name).read_bytes().decode()
        except FileNotFoundError as error:
            raise NotFound(name) from error


# Replacing one piece of a text by another


def test_the_only_place_is_replaced() -> None:
    assert replace_text("one\ntwo\nthree\n", "two", "2") == TextEdit("one\n2\nthree\n", 2, 1)


def test_what_is_there_more_than_once_is_replaced_only_when_asked() -> None:
    with pytest.raises(Invalid, match="is there 3 times"):
        replace_text("a b a b a", "a", "c")
    assert replace_text("a b a b a", "a", "c", every=True) == TextEdit("c b c b c", 1, 3)


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(Invalid, match="is not in the file"):
        replace_text("one", "two", "three")


def test_an_edit_that_changes_nothing_is_refused() -> None:
    with pytest.raises(Invalid, match="nothing would change"):
        replace_text("one\ntwo", "one", "one")
    with pytest.raises(Invalid, match="line ends alone"):
        replace_text("one\ntwo", "one\ntwo", "one\r\ntwo")


@pytest.mark.parametrize("sent", ["\n", "\r\n"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_text_keeps_its_line_ends_whichever_are_sent(ends: str, sent: str) -> None:
    text = f"one{ends}two{ends}three{ends}"
    done = replace_text(text, f"one{sent}two", f"1{sent}2{sent}2.5")
    assert done == TextEdit(f"1{ends}2{ends}2.5{ends}three{ends}", 1, 1)
    assert replace_text(text, "two", f"2{sent}2.5").text == f"one{ends}2{ends}2.5{ends}three{ends}"


def test_the_odd_lines_of_a_mixed_text_can_be_edited() -> None:
    text = "one\r\ntwo\r\nthree\nfour\r\n"
    assert replace_text(text, "three\nfour", "3\n4").text == "one\r\ntwo\r\n3\n4\r\n"
    assert replace_text(text, "one\ntwo", "1\n2").text == "1\r\n2\r\nthree\nfour\r\n"


SOME = st.text("ab\n", max_size=8)


@given(SOME, SOME, SOME, SOME, SOME)
def test_an_edit_of_a_windows_text_is_that_of_a_plain_one_with_other_line_ends(
    before: str, start: str, end: str, after: str, new: str
) -> None:
    # The X makes it unique.
    old, text = f"{start}X{end}", f"{before}{start}X{end}{after}\n"
    plain = replace_text(text, old, new)
    windows = replace_text(text.replace("\n", "\r\n"), old, new)
    assert plain == TextEdit(f"{before}{new}{after}\n", before.count("\n") + 1, 1)
    assert windows == TextEdit(plain.text.replace("\n", "\r\n"), plain.line, 1)


# The tools on files: their answers, updates, permission requests and effects, on real files behind an editor


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


# The tool that runs commands, and reading files after a command


LONG_AGO = 1_000_000_000


class InEditor:
    """A terminal of the editor's, which records the command."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Path, float]] = []

    async def run(self, command: str, cwd: Path, seconds: float, opened: OnTerminalOpened) -> CommandResult:
        await opened("terminal-7")
        self.ran.append((command, cwd, seconds))
        return CommandResult("done\n", exit_code=0)


@shows("ACP-CODING")
async def test_a_command_runs_when_it_may_and_says_how_it_ended(lab: Lab) -> None:
    lab.put("sub/a", "")
    assert await lab.told("run_command", command="ls", cwd="sub") == "a\n[Exit code 0]"
    assert await lab.trouble("run_command", command="printf no; exit 3") == "no\n[Exit code 3]"
    assert await lab.trouble("run_command", command="kill -9 $$") == "[Ended by SIGKILL]"
    assert lab.requests[0] == PermissionRequest(
        "call-1",
        "run_command",
        OperationKind.EXECUTE,
        "Run `ls`",
        command="ls",
        scope="run ls in sub",
        scope_text="every `ls …` in sub",
    )
    assert [permission_request.scope for permission_request in lab.requests[1:]] == ["", "run kill"]


async def test_a_command_that_takes_too_long_is_told_so(lab: Lab) -> None:
    assert await lab.trouble("run_command", command="exec sleep 100", seconds=1) == (
        "[Stopped, as it took longer than 1 s]"
    )


@shows("ACP-CODING")
async def test_a_command_is_shown_in_the_editors_terminal(tmp_path: Path) -> None:
    terminal = InEditor()
    lab = Lab(tmp_path, commands=terminal)
    assert await lab.told("run_command", command="make test", seconds=600) == "done\n[Exit code 0]"
    assert lab.shown == [("call-1", TerminalOutput("terminal-7"))]
    assert terminal.ran == [("make test", lab.roots.cwd, 600)]


@pytest.mark.parametrize(
    "given",
    [
        {"command": ""},
        {"command": "  "},
        {"command": "ls\0"},
        {"command": "ls", "seconds": 601},
        {"command": "ls", "cwd": ".."},
    ],
)
async def test_what_cannot_be_run_asks_nobody(lab: Lab, given: dict[str, str | int]) -> None:
    await lab.trouble("run_command", **given)
    assert lab.requests == []


async def test_what_a_person_is_asked_about_shows_no_tricks(lab: Lab) -> None:
    await lab.use("run_command", command="echo a\u202eb\x1b[2K\n" + "x" * 500)
    title = lab.requests[0].title
    assert title.startswith("Run `echo a?b?[2K xxx")
    assert title.isprintable()
    assert len(title) < 220


def test_a_long_output_leaves_room_for_how_it_ended() -> None:
    text = describe_command_result(CommandResult("x" * 200_000, exit_code=1, truncated=True), 5)
    assert len(text) < COMMAND_CHARACTERS + 200
    assert text.endswith("x\n[Its output was long, and some of it is left out]\n[Exit code 1]")
    assert "150000 characters were left out" in text
    assert describe_command_result(CommandResult(""), 5) == "[Ended, and nobody knows how]"


@shows("ACP-CODING")
async def test_what_a_command_changed_is_read_from_the_disk_and_the_rest_from_the_editor(lab: Lab) -> None:
    changed, other = lab.put("changed", "old"), lab.put("other", "saved")
    for path in (changed, other):
        os.utime(path, (LONG_AGO, LONG_AGO))
    lab.editor.open |= {changed: "old", other: "not saved"}
    await lab.told("run_command", command="printf new > changed")
    assert await lab.told("read_file", path="changed") == "new"
    assert await lab.told("read_file", path="other") == "not saved"
    await lab.told("edit_file", path="changed", old_string="new", new_string="newer")
    assert lab.text("changed") == "newer"


async def test_what_a_command_deleted_is_gone_although_the_editor_still_has_it_open(lab: Lab) -> None:
    lab.editor.open[lab.put("a", "text")] = "text"
    await lab.told("run_command", command="rm a")
    assert "There is no 'a'" in await lab.trouble("read_file", path="a")
    assert await lab.told("write_file", path="a", content="again") == "Made a."


async def test_what_the_editor_was_given_since_counts_until_the_next_command(lab: Lab) -> None:
    lab.editor.keeps_unsaved = True
    path = lab.put("a", "old")
    await lab.told("run_command", command="printf new > a")
    await lab.told("write_file", path="a", content="mine, not saved")
    assert await lab.told("read_file", path="a") == "mine, not saved"
    os.utime(path, (LONG_AGO, LONG_AGO))
    await lab.told("run_command", command="true")
    assert await lab.told("read_file", path="a") == "mine, not saved"
    await lab.told("run_command", command="printf newest > a")
    assert await lab.told("read_file", path="a") == "newest"
