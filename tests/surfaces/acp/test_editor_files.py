"""Files through an editor that offers them: what is not saved is read, and each change is written once, by it alone."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import Refused, script
from tests.support.ready import Ready
from tests.surfaces.acp.showing import calling, folder, introduced, only_call

pytestmark = shows("ACP-CODING")
NOT_THERE = -32002


@dataclass(slots=True)
class Buffers:
    """What the editor has open, saved or not; nothing of it is written to the disk here."""

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
    # It has not saved it, and nobody else has written it.
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
