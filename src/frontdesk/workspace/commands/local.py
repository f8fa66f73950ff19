"""Runs commands on this machine."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import anyio

from frontdesk.errors import Invalid
from frontdesk.workspace.commands.environment import for_command
from frontdesk.workspace.commands.group import Group
from frontdesk.workspace.commands.port import Opened, Ran

# How long a command may take to leave when it is told to.
TERM_SECONDS = 2.0


class LocalCommands:
    """Each command has a group of processes of its own, which is gone when its run ends, however that comes about."""

    def __init__(self, patience: float = TERM_SECONDS) -> None:
        self._patience = patience

    async def run(self, command: str, cwd: Path, seconds: float, opened: Opened) -> Ran:  # noqa: ARG002 - the port's
        """There is no terminal here that could be shown."""
        group = await _started(command, cwd)
        try:
            with anyio.move_on_after(seconds) as limit:
                await group.ended.wait()
        finally:
            await group.end(self._patience)
        return _ran(group, timed_out=limit.cancelled_caught)


async def _started(command: str, cwd: Path) -> Group:
    group, loop = Group(), asyncio.get_running_loop()
    try:
        # Cut off midway, it could run without anybody who knows of it.
        with anyio.CancelScope(shield=True):
            await loop.subprocess_shell(
                lambda: group,
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=for_command(os.environ),
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise Invalid(f"The command cannot be started in {cwd} ({type(error).__name__}); check both") from error
    return group


def _ran(group: Group, *, timed_out: bool) -> Ran:
    text, truncated, status = group.output.text(), group.output.truncated, group.status
    if timed_out or status is None:
        return Ran(text, truncated=truncated, timed_out=timed_out)
    if status < 0:
        return Ran(text, signal=_name(-status), truncated=truncated)
    return Ran(text, exit_code=status, truncated=truncated)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
