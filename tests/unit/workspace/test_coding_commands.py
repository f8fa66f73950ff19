"""The tool that runs commands, and how files are read after one."""

import os
from pathlib import Path

import pytest

from frontdesk.coding.commands import CommandResult, OnTerminalOpened
from frontdesk.coding.model import OperationKind, PermissionRequest, TerminalOutput
from frontdesk.coding.tools import COMMAND_CHARACTERS, describe_command_result
from tests.requirements import shows
from tests.unit.workspace.coding_lab import Lab

pytestmark = pytest.mark.anyio
LONG_AGO = 1_000_000_000


class InEditor:
    """A terminal of the editor's, which says what it ran."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Path, float]] = []

    async def run(self, command: str, cwd: Path, seconds: float, opened: OnTerminalOpened) -> CommandResult:
        await opened("terminal-7")
        self.ran.append((command, cwd, seconds))
        return CommandResult("done\n", exit_code=0)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


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
