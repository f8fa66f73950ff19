"""acpx, a client for the command line, with Frontdesk as its agent."""

from pathlib import Path

import pytest

from tests.editors.running import Exchange, acpx
from tests.requirements import shows
from tests.support.acp.schema import Json
from tests.support.acp.words import GOING_ON, PERMISSION, script

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
