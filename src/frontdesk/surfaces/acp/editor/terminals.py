"""Commands in a terminal of the editor's, where the person sees them run."""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from frontdesk.errors import Invalid
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.wire.model import Gone, Json, RpcError
from frontdesk.surfaces.acp.wire.words import (
    CreateTerminalResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    parsed,
)
from frontdesk.workspace.commands.environment import PLAIN
from frontdesk.workspace.commands.port import Opened, Ran

SECONDS = 30.0
TIDY_SECONDS = 5.0
OUTPUT_BYTES = 200_000
SHELL = "/bin/sh"


@dataclass(frozen=True, slots=True)
class EditorCommands:
    """`Commands` by `terminal/*`; each terminal is released, and killed before that where it still runs."""

    editor: Editor
    session_id: str

    async def run(self, command: str, cwd: Path, seconds: float, opened: Opened) -> Ran:
        terminal: Json = {}
        # Not to be cut off: nobody would know the id of a terminal that is opened after all.
        with anyio.CancelScope(shield=True):
            terminal = await self._create(command, cwd)
        try:
            await opened(terminal["terminalId"])
            return await self._follow(terminal, seconds)
        except (RpcError, Gone) as error:
            raise Invalid(f"The editor's terminal failed: {error}") from error
        finally:
            with anyio.move_on_after(TIDY_SECONDS, shield=True):
                await _quietly(self._ask("terminal/release", terminal))

    async def _create(self, command: str, cwd: Path) -> Json:
        asked = {
            "command": SHELL,
            "args": ["-c", command],
            "cwd": str(cwd),
            "env": [{"name": name, "value": value} for name, value in PLAIN.items()],
            "outputByteLimit": OUTPUT_BYTES,
        }
        try:
            made = parsed(CreateTerminalResponse, await self._ask("terminal/create", asked))
        except (RpcError, TimeoutError, Gone) as error:
            raise Invalid(f"The editor opened no terminal: {error}") from error
        return {"terminalId": made.terminal_id}

    async def _follow(self, terminal: Json, seconds: float) -> Ran:
        exited, timed_out = WaitForTerminalExitResponse(), False
        try:
            exited = parsed(WaitForTerminalExitResponse, await self._ask("terminal/wait_for_exit", terminal, seconds))
        except TimeoutError:
            timed_out = True
            await self._kill(terminal)
        except BaseException:
            await self._kill(terminal)
            raise
        shown = parsed(TerminalOutputResponse, await self._ask("terminal/output", terminal))
        return Ran(shown.output, exited.exit_code, exited.signal, shown.truncated, timed_out)

    async def _kill(self, terminal: Json) -> None:
        with anyio.move_on_after(TIDY_SECONDS, shield=True):
            await _quietly(self._ask("terminal/kill", terminal))

    async def _ask(self, method: str, params: Json, seconds: float = SECONDS) -> Json:
        return await self.editor.ask(method, self.session_id, params, seconds)


async def _quietly(work: Awaitable[object]) -> None:
    """An editor that has closed the terminal already says so, which is as good."""
    with suppress(RpcError, TimeoutError, Gone):
        await work
