"""Tests commands on this machine with real processes: their output, and that none of them remains."""

import os
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import anyio
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from frontdesk.coding.commands import (
    MAX_OUTPUT,
    CommandResult,
    LocalCommands,
    OutputBuffer,
    command_environment,
    shorten,
)
from frontdesk.errors import Invalid
from frontdesk.settings import Settings
from frontdesk.settings.model import variable_names
from tests.support.waiting import until

SECONDS = 20
# Ignores SIGTERM, and writes its process id.
DEAF = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"


async def opened(_terminal: str) -> None:
    raise AssertionError("no terminal is opened here")


async def ran(command: str, cwd: Path, seconds: float = SECONDS, patience: float = 0.1) -> CommandResult:
    with anyio.fail_after(SECONDS * 2):
        return await LocalCommands(patience).run(command, cwd, seconds, opened)


def is_gone(pid_file: Path) -> bool:
    """Not running; a zombie counts as gone."""
    try:
        return psutil.Process(int(pid_file.read_text())).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_what_a_command_says_on_both_its_outputs_comes_back_in_order(tmp_path: Path) -> None:
    done = await ran("echo one; echo two >&2; echo three; exit 3", tmp_path)
    assert done == CommandResult("one\ntwo\nthree\n", exit_code=3)


async def test_a_command_runs_in_its_folder_and_has_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    assert await ran("ls; cat; echo read", tmp_path) == CommandResult("here\nread\n", exit_code=0)


async def test_a_command_that_a_signal_ends_says_which(tmp_path: Path) -> None:
    assert await ran("kill -USR1 $$", tmp_path) == CommandResult("", signal="SIGUSR1")


async def test_long_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    done = await ran("echo first; yes | head -c 1000000; echo last", tmp_path)
    assert done.truncated
    assert done.output.startswith("first\ny\n")
    assert done.output.endswith("y\nlast\n")
    assert f"[{1_000_000 + len('first last ') - MAX_OUTPUT} bytes were left out here]" in done.output
    assert len(done.output) < MAX_OUTPUT + 100


async def test_what_is_no_text_is_replaced_and_control_characters_stay(tmp_path: Path) -> None:
    done = await ran(r"printf 'a\000b\377c\033[1m\007'", tmp_path)
    assert done.output == "ab\ufffdc\x1b[1m\x07"


async def test_a_command_that_takes_too_long_is_stopped_and_what_it_said_is_kept(tmp_path: Path) -> None:
    done = await ran("echo begun; exec sleep 1000", tmp_path, seconds=1.5)
    assert done == CommandResult("begun\n", timed_out=True)


async def test_a_command_that_is_told_to_leave_has_time_to_clean_up(tmp_path: Path) -> None:
    tidy = "trap 'echo cleaned; exit' TERM; echo begun; while :; do sleep 0.01; done"
    done = await ran(tidy, tmp_path, 1.5, patience=SECONDS)
    assert done.timed_out
    assert done.output.startswith("begun\n")
    assert done.output.endswith("cleaned\n")


async def test_a_command_that_does_not_leave_is_killed(tmp_path: Path) -> None:
    done = await ran(DEAF, tmp_path, seconds=1.5)
    assert done.timed_out
    assert is_gone(tmp_path / "pid")


@pytest.mark.parametrize("kept", ["", ">/dev/null 2>&1"])
async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path, kept: str) -> None:
    (tmp_path / "deaf.sh").write_text(DEAF)
    done = await ran(f"sh deaf.sh {kept} & while ! test -s pid; do sleep 0.01; done; echo done", tmp_path)
    assert done == CommandResult("done\n", exit_code=0)
    assert is_gone(tmp_path / "pid")


async def test_one_that_leaves_the_group_and_holds_the_output_keeps_nobody_waiting(tmp_path: Path) -> None:
    away = "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while ! test -s pid; do sleep 0.01; done; echo done"
    done = await ran(away, tmp_path)
    assert done == CommandResult("done\n", exit_code=0)
    psutil.Process(int((tmp_path / "pid").read_text())).kill()


async def test_a_run_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pid", tmp_path / "behind"
    (tmp_path / "deaf.sh").write_text(DEAF)
    (tmp_path / "behind.sh").write_text(DEAF.replace("pid", "behind"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ran, "sh behind.sh & sh deaf.sh", tmp_path)
        await until(lambda: all(pid.exists() and pid.read_text() for pid in pids))
        tasks.cancel_scope.cancel()
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.parametrize(("command", "folder"), [("ls", "nowhere"), ("ls \0", ".")])
async def test_what_cannot_be_started_is_told_in_a_line(tmp_path: Path, command: str, folder: str) -> None:
    with pytest.raises(Invalid, match="cannot be started"):
        await ran(command, tmp_path / folder)


async def test_a_command_sees_none_of_our_secrets_and_no_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTDESK_WEBHOOK_SECRET", "hidden-one")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-two")
    monkeypatch.setenv("letta_api_key", "hidden-three")
    monkeypatch.setenv("PAGER", "less")
    monkeypatch.setenv("MY_API_KEY", "seen")
    done = await ran("env", tmp_path)
    assert "hidden" not in done.output
    assert {"PAGER=cat", "GIT_PAGER=cat", "TERM=dumb", "MY_API_KEY=seen"} <= set(done.output.splitlines())
    assert "FRONTDESK_WEBHOOK_SECRET" in os.environ


def _holds_a_secret(kind: Any) -> bool:
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if issubclass(kind, BaseModel):
            return any(_holds_a_secret(field.annotation) for field in kind.model_fields.values())
        return issubclass(kind, SecretStr)
    return any(map(_holds_a_secret, get_args(kind)))


def test_every_setting_that_holds_a_secret_is_kept_from_commands() -> None:
    secret = [name for name, field in Settings.model_fields.items() if _holds_a_secret(field.annotation)]
    assert {"letta_api_key", "oauth_clients", "zmemory_api_key", "mcp_servers"} <= set(secret)
    found = command_environment({variable: "value" for name in secret for variable in variable_names(name)})
    assert set(found) == {"PAGER", "GIT_PAGER", "TERM"}


def _fed(pieces: Iterable[bytes], most: int) -> OutputBuffer:
    kept = OutputBuffer(most)
    for piece in pieces:
        kept.feed(piece)
    return kept


@given(st.lists(st.text("abc", max_size=30).map(str.encode), max_size=30), st.integers(1, 40))
def test_what_is_kept_is_the_beginning_and_the_end(pieces: list[bytes], half: int) -> None:
    whole = b"".join(pieces).decode()
    kept = _fed(pieces, 2 * half)
    assert kept.truncated == (len(whole) > 2 * half)
    assert kept.text() == shorten(whole, 2 * half).replace("characters", "bytes")


@given(st.text("abc", max_size=100), st.integers(1, 20))
def test_a_shortened_text_says_how_much_is_missing(text: str, half: int) -> None:
    shown = shorten(text, 2 * half)
    if len(text) <= 2 * half:
        assert shown == text
    else:
        missing = len(text) - 2 * half
        assert shown == f"{text[:half]}\n[{missing} characters were left out here]\n{text[-half:]}"
