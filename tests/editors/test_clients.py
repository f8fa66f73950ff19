"""Tests Frontdesk as the agent of published Agent Client Protocol clients, and checks the tests' own editor."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from acp.schema import ClientCapabilities, FileSystemCapabilities, TextContentBlock

from tests.editors import node
from tests.editors.running import Exchange, acpx, running
from tests.requirements import shows
from tests.support.acp import process
from tests.support.acp.client import FILES, FORMS, TERMINALS, Files, editor, filling, open_terminals, sdk_editor
from tests.support.acp.process import FRONTDESK
from tests.support.acp.schema import ALLOW, GOING_ON, PERMISSION, Json, Refused, outcome, script
from tests.support.desk import ROOT, STOP_SECONDS

# acpx, a client for the command line


WRITING: Json = {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent\n"}}
READING: Json = {"tool": "read_file", "args": {"path": "old.txt"}}
RUNNING: Json = {"tool": "run_command", "args": {"command": "echo $((6 * 7))"}}
PLANNING: Json = {"tool": "update_plan", "args": {"steps": [{"text": "look", "status": "in_progress"}]}}
DONE: Json = {"text": "all done"}


def statuses(exchange: Exchange) -> list[str]:
    """How each call ended."""
    told = [update.get("status") for update in exchange.updates("tool_call_update")]
    return [status for status in told if status in ("completed", "failed")]


@shows("ACP-CLIENTS")
def test_acpx_works_with_files_terminals_plans_and_permissions(work: Path, home: Path) -> None:
    steps = script(PLANNING, READING, WRITING, RUNNING, DONE)
    with acpx(work, home, "--approve-all", "exec", steps) as exchange:
        assert exchange.finish() == 0
    assert exchange.stop == "end_turn"
    assert exchange.said() == "all done"
    assert statuses(exchange) == ["completed"] * 4
    assert [entry["content"] for entry in exchange.updates("plan")[-1]["entries"]] == ["look"]
    assert [asked["path"] for asked in exchange.asked("fs/write_text_file")] == [str(work / "new.txt")]
    assert (work / "new.txt").read_text() == "by the agent\n"
    assert [asked["toolCall"]["kind"] for asked in exchange.asked(PERMISSION)] == ["edit", "execute"]
    assert len(exchange.asked("terminal/create")) == len(exchange.asked("terminal/release")) == 1
    assert "42" in str(exchange.updates("tool_call_update"))


@shows("ACP-CLIENTS")
def test_acpx_denies_what_is_then_not_done(work: Path, home: Path) -> None:
    with acpx(work, home, "--deny-all", "exec", script(READING, WRITING, RUNNING, DONE)) as exchange:
        exchange.finish()
    assert exchange.stop == "end_turn"
    assert exchange.said() == "all done"
    assert statuses(exchange) == ["completed", "failed", "failed"]
    assert not (work / "new.txt").exists()
    assert exchange.asked("terminal/create") == []


@pytest.mark.slow
@shows("ACP-CLIENTS")
def test_acpx_without_files_and_terminals_has_them_done_here(work: Path, home: Path) -> None:
    steps = script(READING, WRITING, RUNNING, DONE)
    with acpx(work, home, "--no-fs", "--no-terminal", "--approve-all", "exec", steps) as exchange:
        assert exchange.finish() == 0
    assert statuses(exchange) == ["completed"] * 3
    assert (work / "new.txt").read_text() == "by the agent\n"
    assert "42" in str(exchange.updates("tool_call_update"))
    assert not [frame for frame in exchange.frames if frame.get("method", "").startswith(("fs/", "terminal/"))]


@pytest.mark.slow
@shows("ACP-CLIENTS")
def test_acpx_is_not_asked_in_a_mode_that_allows(work: Path, home: Path) -> None:
    steps = script(WRITING, RUNNING, DONE)
    with acpx(work, home, "--approve-all", "exec", "--config-option", "mode=auto", steps) as exchange:
        assert exchange.finish() == 0
    assert statuses(exchange) == ["completed"] * 2
    assert exchange.asked(PERMISSION) == []
    assert (work / "new.txt").exists()


@pytest.mark.slow
@shows("ACP-CLIENTS")
def test_acpx_has_nothing_changed_in_the_plan_mode(work: Path, home: Path) -> None:
    steps = script(READING, WRITING, RUNNING, DONE)
    with acpx(work, home, "--approve-all", "exec", "--config-option", "mode=plan", steps) as exchange:
        assert exchange.finish() == 0
    assert statuses(exchange) == ["completed", "failed", "failed"]
    assert exchange.asked(PERMISSION) == []
    assert not (work / "new.txt").exists()


@pytest.mark.slow
@shows("ACP-CLIENTS")
def test_acpx_cancels_a_turn(work: Path, home: Path) -> None:
    with acpx(work, home, "--approve-all", "exec", script(*GOING_ON)) as exchange:
        exchange.until(lambda frame: frame.get("params", {}).get("update", {}).get("status") == "completed")
        exchange.interrupt()
        exchange.finish()
    assert exchange.asked("session/cancel")
    assert exchange.stop == "cancelled"


# The client of the Python SDK


def text(words: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=words)


@shows("ACP-CLIENTS")
async def test_the_python_client_edits_a_file_and_loads_its_session(work: Path, home: Path) -> None:
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    async with sdk_editor(home / "data") as (agent, editor):
        told = await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities(fs=files))
        assert told.protocol_version == 1
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        writing = {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent"}}
        answer = await agent.prompt(session_id=session, prompt=[text(script(writing, {"text": "all done"}))])
        assert answer.stop_reason == "end_turn"
        assert editor.said() == "all done"
        assert editor.written == {str(work / "new.txt"): "by the agent"}
        assert [call.kind for call in editor.permitted] == ["edit"]
        editor.told.clear()
        await agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert editor.said() == "all done"
        assert [update.status for update in editor.updates("tool_call_update")][-1] == "completed"


# The published example client of the TypeScript SDK


# The example's only prompt, and the path from which it loads its agent.
SAYS = "Hello, agent!"
LAUNCHER = "npx"
TYPESCRIPT_WRITING: Json = {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent"}}


def surroundings(home: Path, says: str) -> dict[str, str]:
    """Makes the client start Frontdesk instead of its own example, with another prompt."""
    words = re.sub(r"([\\/&])", r"\\\1", json.dumps(says)[1:-1])
    instead = f"sed -u {shlex.quote(f's/{SAYS}/{words}/')} | " if says != SAYS else ""
    launcher = home / LAUNCHER
    launcher.write_text(f"#!/bin/sh\n{instead}exec {shlex.join(FRONTDESK)}\n")
    launcher.chmod(0o755)
    return {"PATH": f"{home}:/usr/bin:/bin"}


def printed(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    told = process.stdout.read()
    assert process.wait(STOP_SECONDS) == 0
    return told


@shows("ACP-CLIENTS")
def test_the_example_client_has_a_conversation(work: Path, home: Path) -> None:
    around = surroundings(home, SAYS)
    with running([str(node.example_client())], work, home, around) as process:
        told = printed(process)
    assert "Connected to agent (protocol v1)" in told
    assert "Created session: sess_" in told
    assert "stand-in" in told
    assert "Agent completed with: end_turn" in told


@pytest.mark.slow
@shows("ACP-CLIENTS")
@pytest.mark.parametrize(("choice", "ended"), [("1", "completed"), ("3", "failed")])
def test_the_example_client_asks_its_person(work: Path, home: Path, choice: str, ended: str) -> None:
    around = surroundings(home, script(TYPESCRIPT_WRITING, {"text": "all done"}))
    with running([str(node.example_client())], work, home, around) as process:
        assert process.stdin is not None
        process.stdin.write(f"{choice}\n")
        process.stdin.flush()
        told = printed(process)
    assert "Permission requested: Write new.txt" in told
    assert f"updated: {ended}" in told
    assert "Agent completed with: end_turn" in told


# An editor with all abilities performs everything itself


LONG: Json = {"tool": "run_command", "args": {"command": "sleep 600 & sleep 600"}}


@shows("ACP-CODING")
async def test_files_terminals_and_forms_are_the_editors_where_it_has_them(work: Path, home: Path) -> None:
    files = Files({str(work / "old.txt"): "typed, not saved"})
    steps = (
        {"tool": "read_file", "args": {"path": "old.txt"}},
        {"tool": "write_file", "args": {"path": "new.txt", "content": "by the agent"}},
        {"tool": "run_command", "args": {"command": "echo $((6 * 7))"}},
        {"tool": "ask_person", "args": {"question": "Which colour?"}},
        {"text": "all done"},
    )
    async with open_terminals() as terminals:
        answers = {**files.answers, **terminals.answers, **filling(answer="blue"), PERMISSION: ALLOW}
        async with editor(home / "data", capabilities={**FILES, **TERMINALS, **FORMS}, answer=answers) as client:
            await client.initialize()
            session = await client.open_session(work)
            assert await client.prompt(session, script(*steps)) == {"stopReason": "end_turn"}
            told = str([update.get("rawOutput") for update in client.updates("tool_call_update")])
        assert all(word in told for word in ("typed, not saved", "42", "blue"))
        assert files.written == [str(work / "new.txt")]
        assert len(terminals.created) == 1


@shows("ACP-LEAKS")
async def test_a_terminal_that_opens_while_its_turn_is_cancelled_is_released(work: Path, home: Path) -> None:
    cancelled = asyncio.Event()
    async with open_terminals() as terminals:

        async def create_late(params: Json) -> Json:
            await cancelled.wait()
            return await terminals.create(params)

        answers = {**terminals.answers, "terminal/create": create_late, PERMISSION: ALLOW}
        async with editor(home / "data", capabilities=TERMINALS, answer=answers) as client:
            await client.initialize()
            session = await client.open_session(work)
            under_way = await client.begin(session, script(LONG, {"text": "never"}))
            await client.until(lambda frame: frame.method == "terminal/create")
            await client.notify("session/cancel", {"sessionId": session})
            cancelled.set()
            assert await outcome(under_way) == {"stopReason": "cancelled"}
            await client.until(lambda frame: frame.method == "terminal/release", seconds=10)


@shows("ACP-LEAKS")
async def test_a_terminal_at_work_is_released_when_its_turn_is_cancelled(work: Path, home: Path) -> None:
    async with open_terminals() as terminals:
        answers = {**terminals.answers, PERMISSION: ALLOW}
        async with editor(home / "data", capabilities=TERMINALS, answer=answers) as client:
            await client.initialize()
            session = await client.open_session(work)
            under_way = await client.begin(session, script(LONG, {"text": "never"}))
            await client.until(lambda frame: frame.method == "terminal/wait_for_exit")
            await client.notify("session/cancel", {"sessionId": session})
            assert await outcome(under_way) == {"stopReason": "cancelled"}
            assert terminals.open == {}


# The tests' own editor notices an agent's mistakes


RUDE_AGENT = ROOT / "tests" / "support" / "acp" / "rude_agent.py"
NOTICED = {
    "greeting": "Welcome",
    "unknown kind": "no such update",
    "wrong type": "content",
    "further key": "mood",
    "wrong answer": "protocolVersion",
    "two lines": "several lines",
    "uninvited": "does not offer",
    "twice": "an answer to nothing",
    "half a line": "left without an answer",
    "death": "left without an answer",
    "child": "left behind",
}


async def talk(data: Path, manner: str) -> str:
    """A whole conversation with an agent that makes this mistake; gives the reported mistakes."""
    async with editor(data, command=(sys.executable, str(RUDE_AGENT), manner)) as client:
        await client.initialize()
        await client.prompt("s", "hello")
        with pytest.raises(Refused):
            await client.request("no/such")
    return client.said()


async def test_nothing_is_said_against_an_agent_that_does_nothing_wrong(tmp_path: Path) -> None:
    assert await talk(tmp_path / "data", "polite") == "hello"


@pytest.mark.parametrize("manner", NOTICED)
async def test_an_agent_that_does_something_wrong_fails_its_test(
    tmp_path: Path, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Shorter than the lifetime of the process that the agent leaves behind.
    monkeypatch.setattr(process, "STOP_SECONDS", 1)
    with pytest.raises(AssertionError, match=NOTICED[manner]):
        await talk(tmp_path / "data", manner)
