"""Commands in an editor's terminals: made, watched and released, and killed when they are cancelled."""

import asyncio
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.requirements import shows
from tests.support.acp.client import Client
from tests.support.acp.schema import Json
from tests.support.acp.words import Refused, outcome
from tests.support.ready import Ready
from tests.support.waiting import until
from tests.surfaces.acp.showing import calling, folder, introduced, only_call

pytestmark = shows("ACP-CODING")
STEPS = ("terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release")


@dataclass(slots=True)
class Terminals:
    """An editor's terminals, in which commands really run; `did` is what the agent asked for, in order."""

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
class Desk:
    client: Client
    terminals: Terminals


@pytest.fixture(scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory, ready: Ready) -> AsyncGenerator[Desk]:
    data, terminals = ready.in_folder(tmp_path_factory.mktemp("terminals") / "data"), Terminals()
    answer = {
        "terminal/create": terminals.create,
        "terminal/wait_for_exit": terminals.wait,
        "terminal/output": terminals.output,
        "terminal/kill": terminals.kill,
        "terminal/release": terminals.release,
    }
    async with introduced(data, capabilities={"terminal": True}, answer=answer) as desk:
        yield Desk(desk.client, terminals)


@pytest.fixture
def desk(opened: Desk) -> Desk:
    opened.terminals.did, opened.terminals.closed = [], False
    return opened


async def test_a_command_runs_where_the_person_sees_it(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await desk.client.open_session(work)
    await desk.client.prompt(session, calling("run_command", command="echo $((6 * 7)); touch here"))
    assert desk.terminals.did == list(STEPS)
    assert (work / "here").exists()
    call = only_call(desk.client, session)
    assert call["status"] == "completed"
    assert {"type": "terminal", "terminalId": list(desk.terminals.made)[-1]} in call["content"]
    assert "42" in str(call["rawOutput"])
    asked = desk.client.asked("terminal/create")[-1]
    assert (asked["cwd"], asked["sessionId"]) == (str(work), session)


async def test_a_command_that_fails_is_told_with_what_it_said(desk: Desk, tmp_path: Path) -> None:
    session = await desk.client.open_session(folder(tmp_path))
    await desk.client.prompt(session, calling("run_command", command="echo no such thing; exit 3"))
    call = only_call(desk.client, session)
    assert call["status"] == "failed"
    assert "no such thing" in str(call["rawOutput"])
    assert "Exit code 3" in str(call["rawOutput"])


async def test_the_terminal_is_shown_before_its_command_ends(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session, since = await desk.client.open_session(work), len(desk.client.frames)
    under_way = await desk.client.begin(
        session, calling("run_command", command="while [ ! -e go ]; do sleep 0.1; done")
    )
    shown = await desk.client.until(
        lambda frame: "terminalId" in str(frame.json.get("params")) and "update" in frame.method, since=since
    )
    assert not under_way.done()
    assert shown.json["params"]["update"]["content"][0]["type"] == "terminal"
    (work / "go").touch()
    assert await outcome(under_way) == {"stopReason": "end_turn"}


async def test_a_cancelled_command_is_killed_in_its_terminal(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    session = await desk.client.open_session(work)
    under_way = await desk.client.begin(session, calling("run_command", command="touch begun; exec sleep 600"))
    await until((work / "begun").exists)
    await until(lambda: "terminal/wait_for_exit" in desk.terminals.did)
    await desk.client.notify("session/cancel", {"sessionId": session})
    assert await outcome(under_way) == {"stopReason": "cancelled"}
    assert desk.terminals.did == ["terminal/create", "terminal/wait_for_exit", "terminal/kill", "terminal/release"]
    process, _ = list(desk.terminals.made.values())[-1]
    assert process.returncode is not None
    assert only_call(desk.client, session)["status"] == "failed"


async def test_a_command_that_takes_too_long_is_killed_and_what_it_said_is_told(desk: Desk, tmp_path: Path) -> None:
    session = await desk.client.open_session(folder(tmp_path))
    slow = calling("run_command", command="echo so far; exec sleep 600", seconds=1)
    await desk.client.prompt(session, slow)
    assert desk.terminals.did[2:] == ["terminal/kill", "terminal/output", "terminal/release"]
    call = only_call(desk.client, session)
    assert call["status"] == "failed"
    assert "so far" in str(call["rawOutput"])


async def test_an_editor_that_opens_no_terminal_is_not_gone_around(desk: Desk, tmp_path: Path) -> None:
    work = folder(tmp_path)
    desk.terminals.closed = True
    session = await desk.client.open_session(work)
    await desk.client.prompt(session, calling("run_command", command="touch here"))
    assert desk.terminals.did == ["terminal/create"]
    assert "No more terminals" in str(only_call(desk.client, session))
    assert not (work / "here").exists()
