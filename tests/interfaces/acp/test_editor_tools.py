"""Tests files and terminals of an editor that offers them: each change and command goes through the editor."""

import asyncio
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.interfaces.acp.conftest import calling, folder, introduced, only_call
from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json, Refused, outcome, script
from tests.support.postgres import Ready
from tests.support.waiting import until

pytestmark = shows("ACP-CODING")


# Files through the editor: unsaved text is read, and only the editor writes each change, once


NOT_THERE = -32002


@dataclass(slots=True)
class Buffers:
    """The editor's open files, saved or not; nothing is written to the disk here."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    writes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    broken: bool = False

    async def read(self, params: Json) -> Json:
        if params["path"] not in self.texts:
            raise Refused(NOT_THERE, "Not open")
        return {"content": self.texts[params["path"]]}

    async def write(self, params: Json) -> Json:
        self.writes.append((params["path"], params["content"]))
        if self.broken:
            raise Refused(-32603, "The disk is full")
        self.texts[params["path"]] = params["content"]
        return {}


@dataclass(frozen=True, slots=True)
class Desk:
    client: Client
    buffers: Buffers


@pytest.fixture(scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    data, buffers = ready.in_folder(tmp_path_factory.mktemp("files") / "data"), Buffers()
    offered = {"fs": {"readTextFile": True, "writeTextFile": True}}
    answer = {"fs/read_text_file": buffers.read, "fs/write_text_file": buffers.write}
    async with introduced(data, capabilities=offered, answer=answer) as desk:
        yield Desk(desk.client, buffers)


@pytest.fixture
def desk(opened: Desk) -> Desk:
    opened.buffers.texts, opened.buffers.writes, opened.buffers.broken = {}, [], False
    return opened


async def test_what_is_not_saved_yet_is_what_is_read(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    (work / "a.txt").write_text("as saved")
    desk.buffers.texts[str(work / "a.txt")] = "as typed"
    session = await desk.client.open_session(work)
    await desk.client.prompt(session, calling("read_file", path="a.txt"))
    assert "as typed" in str(only_call(desk.client, session))
    assert "as saved" not in str(only_call(desk.client, session))


async def test_what_the_editor_cannot_open_is_read_from_the_disk(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    (work / "a.txt").write_text("as saved")
    session = await desk.client.open_session(work)
    await desk.client.prompt(session, calling("read_file", path="a.txt"))
    assert "as saved" in str(only_call(desk.client, session))


async def test_a_change_is_written_once_and_by_the_editor_alone(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await desk.client.open_session(work)
    await desk.client.prompt(session, calling("write_file", path="new.txt", content="by the editor\n"))
    assert desk.buffers.writes == [(str(work / "new.txt"), "by the editor\n")]
    # The editor has not saved it, and nothing else has written it.
    assert not (work / "new.txt").exists()
    call = only_call(desk.client, session)
    assert call["status"] == "completed"
    [diff] = [part for part in call["content"] if part["type"] == "diff"]
    assert (diff["path"], diff.get("oldText"), diff["newText"]) == (str(work / "new.txt"), None, "by the editor\n")


async def test_what_is_not_saved_is_what_is_edited(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    path = str(work / "a.txt")
    (work / "a.txt").write_text("one\n")
    desk.buffers.texts[path] = "one\ntwo\n"
    session = await desk.client.open_session(work)
    edit = calling("edit_file", path="a.txt", old_string="two", new_string="three")
    await desk.client.prompt(session, edit)
    assert desk.buffers.writes == [(path, "one\nthree\n")]
    assert (work / "a.txt").read_text() == "one\n"


async def test_an_editor_that_does_not_write_is_not_gone_around(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    desk.buffers.broken = True
    session = await desk.client.open_session(work)
    await desk.client.prompt(session, calling("write_file", path="new.txt", content="x"))
    call = only_call(desk.client, session)
    assert call["status"] == "failed"
    assert "The disk is full" in str(call)
    assert len(desk.buffers.writes) == 1
    assert not (work / "new.txt").exists()


async def test_what_a_command_has_changed_is_read_from_the_disk(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    desk.buffers.texts[str(work / "a.txt")] = "as the editor has it"
    session, since = await desk.client.open_session(work), len(desk.client.frames)
    run = {"tool": "run_command", "args": {"command": "echo by the command > a.txt"}}
    read = {"tool": "read_file", "args": {"path": "a.txt"}}
    await desk.client.prompt(session, script(run, read, {"text": "done"}))
    assert "by the command" in str(only_call(desk.client, session, since, tool="read_file"))


async def test_the_editor_is_not_asked_for_what_is_outside(desk: Desk, tmp_path: Path) -> None:
    work, outside = folder(tmp_path), folder(tmp_path, "outside")
    desk.buffers.texts[str(outside / "secret.txt")] = "secret"
    session, asked = await desk.client.open_session(work), len(desk.client.asked("fs/read_text_file"))
    await desk.client.prompt(session, calling("read_file", path=str(outside / "secret.txt")))
    await desk.client.prompt(session, calling("write_file", path=str(outside / "secret.txt"), content="x"))
    assert len(desk.client.asked("fs/read_text_file")) == asked
    assert desk.buffers.writes == []


# Commands in an editor's terminals: created, watched and released, and killed on cancellation


STEPS = ("terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release")


@dataclass(slots=True)
class Terminals:
    """An editor's terminals, in which commands really run; `did` are the agent's requests, in order."""

    did: list[str] = field(default_factory=list[str])
    made: dict[str, tuple[Process, asyncio.Task[bytes]]] = field(
        default_factory=dict[str, "tuple[Process, asyncio.Task[bytes]]"]
    )
    closed: bool = False

    async def create(self, params: Json) -> Json:
        self.did.append("terminal/create")
        if self.closed:
            raise Refused(-32603, "No more terminals")
        process = await asyncio.create_subprocess_exec(
            params["command"], *params["args"], cwd=params["cwd"], stdout=PIPE, stderr=STDOUT, start_new_session=True
        )
        assert process.stdout is not None
        number = f"terminal-{len(self.made)}"
        self.made[number] = (process, asyncio.create_task(process.stdout.read()))
        return {"terminalId": number}

    async def wait(self, params: Json) -> Json:
        self.did.append("terminal/wait_for_exit")
        return {"exitCode": await self.made[params["terminalId"]][0].wait()}

    async def output(self, params: Json) -> Json:
        self.did.append("terminal/output")
        return {"output": (await self.made[params["terminalId"]][1]).decode(), "truncated": False}

    async def kill(self, params: Json) -> Json:
        self.did.append("terminal/kill")
        self.made[params["terminalId"]][0].kill()
        return {}

    async def release(self, params: Json) -> Json:
        self.did.append("terminal/release")
        process, reading = self.made[params["terminalId"]]
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
        return {}


@dataclass(frozen=True, slots=True)
class TerminalDesk:
    client: Client
    terminals: Terminals


@pytest.fixture(scope="module")
async def opened_terminals(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[TerminalDesk]:
    data, terminals = ready.in_folder(tmp_path_factory.mktemp("terminals") / "data"), Terminals()
    answer = {
        "terminal/create": terminals.create,
        "terminal/wait_for_exit": terminals.wait,
        "terminal/output": terminals.output,
        "terminal/kill": terminals.kill,
        "terminal/release": terminals.release,
    }
    async with introduced(data, capabilities={"terminal": True}, answer=answer) as desk:
        yield TerminalDesk(desk.client, terminals)


@pytest.fixture
def terminal_desk(opened_terminals: TerminalDesk) -> TerminalDesk:
    opened_terminals.terminals.did, opened_terminals.terminals.closed = [], False
    return opened_terminals


async def test_a_command_runs_where_the_person_sees_it(terminal_desk: TerminalDesk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await terminal_desk.client.open_session(work)
    await terminal_desk.client.prompt(session, calling("run_command", command="echo $((6 * 7)); touch here"))
    assert terminal_desk.terminals.did == list(STEPS)
    assert (work / "here").exists()
    call = only_call(terminal_desk.client, session)
    assert call["status"] == "completed"
    assert {"type": "terminal", "terminalId": list(terminal_desk.terminals.made)[-1]} in call["content"]
    assert "42" in str(call["rawOutput"])
    asked = terminal_desk.client.asked("terminal/create")[-1]
    assert (asked["cwd"], asked["sessionId"]) == (str(work), session)


async def test_a_command_that_fails_is_told_with_what_it_said(terminal_desk: TerminalDesk, tmp_path: Path) -> None:
    session = await terminal_desk.client.open_session(folder(tmp_path))
    await terminal_desk.client.prompt(session, calling("run_command", command="echo no such thing; exit 3"))
    call = only_call(terminal_desk.client, session)
    assert call["status"] == "failed"
    assert "no such thing" in str(call["rawOutput"])
    assert "Exit code 3" in str(call["rawOutput"])


async def test_the_terminal_is_shown_before_its_command_ends(terminal_desk: TerminalDesk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session, since = await terminal_desk.client.open_session(work), len(terminal_desk.client.frames)
    under_way = await terminal_desk.client.begin(
        session, calling("run_command", command="while [ ! -e go ]; do sleep 0.1; done")
    )
    shown = await terminal_desk.client.until(
        lambda frame: "terminalId" in str(frame.json.get("params")) and "update" in frame.method, since=since
    )
    assert not under_way.done()
    assert shown.json["params"]["update"]["content"][0]["type"] == "terminal"
    (work / "go").touch()
    assert await outcome(under_way) == {"stopReason": "end_turn"}


async def test_a_cancelled_command_is_killed_in_its_terminal(terminal_desk: TerminalDesk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await terminal_desk.client.open_session(work)
    under_way = await terminal_desk.client.begin(session, calling("run_command", command="touch begun; exec sleep 600"))
    await until((work / "begun").exists)
    await until(lambda: "terminal/wait_for_exit" in terminal_desk.terminals.did)
    await terminal_desk.client.notify("session/cancel", {"sessionId": session})
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    assert terminal_desk.terminals.did == [
        "terminal/create",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
    ]
    process, _ = list(terminal_desk.terminals.made.values())[-1]
    assert process.returncode is not None
    assert only_call(terminal_desk.client, session)["status"] == "failed"


async def test_a_command_that_takes_too_long_is_killed_and_what_it_said_is_told(
    terminal_desk: TerminalDesk, tmp_path: Path
) -> None:
    session = await terminal_desk.client.open_session(folder(tmp_path))
    slow = calling("run_command", command="echo so far; exec sleep 600", seconds=1)
    await terminal_desk.client.prompt(session, slow)
    assert terminal_desk.terminals.did[2:] == ["terminal/kill", "terminal/output", "terminal/release"]
    call = only_call(terminal_desk.client, session)
    assert call["status"] == "failed"
    assert "so far" in str(call["rawOutput"])


async def test_an_editor_that_opens_no_terminal_is_not_gone_around(terminal_desk: TerminalDesk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    terminal_desk.terminals.closed = True
    session = await terminal_desk.client.open_session(work)
    await terminal_desk.client.prompt(session, calling("run_command", command="touch here"))
    assert terminal_desk.terminals.did == ["terminal/create"]
    assert "No more terminals" in str(only_call(terminal_desk.client, session))
    assert not (work / "here").exists()
