"""The tool that runs a command, where the person sees it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic import Field

from frontdesk.errors import Invalid
from frontdesk.loop.text import one_line
from frontdesk.loop.tools import Given, Tool, ToolOutcome
from frontdesk.workspace.coding.called import PERSON_SECONDS, called_tool
from frontdesk.workspace.coding.deeds import get_leave
from frontdesk.workspace.coding.model import Bench, InTerminal
from frontdesk.workspace.coding.sight import Sight
from frontdesk.workspace.commands.output import shortened
from frontdesk.workspace.commands.port import Commands, Ran
from frontdesk.workspace.permissions.model import Deed, Kind
from frontdesk.workspace.permissions.scopes import of_command

SECONDS = 120
MOST_SECONDS = 600
# What opening and closing a terminal may take beyond the time of the command.
SPARE_SECONDS = 60
# A turn cuts what a tool answers at 60,000 characters, and with them the end, which says what became of it.
MOST_CHARACTERS = 50_000
TITLE = 200
DESCRIPTION = (
    "Run a command line in a shell, with nothing to read from, and see what it says. "
    "What it leaves in the background may end with it. Use the other tools to read, find and change files."
)


class RunCommand(Given):
    command: str = Field(min_length=1, max_length=100_000, description="The command line")
    cwd: str = Field(".", description="The folder to run it in: absolute, or from the working folder")
    seconds: int = Field(SECONDS, ge=1, le=MOST_SECONDS, description="How long it may take before it is stopped")


class Running:
    """The tool on one bench."""

    def __init__(self, bench: Bench, sight: Sight) -> None:
        self._bench = bench
        self._sight = sight

    def tools(self) -> Sequence[Tool]:
        if (commands := self._bench.commands) is None:
            return ()
        seconds = PERSON_SECONDS + MOST_SECONDS + SPARE_SECONDS
        return [called_tool("run_command", DESCRIPTION, RunCommand, partial(self.run, commands), seconds)]

    async def run(self, commands: Commands, call_id: str, given: RunCommand) -> ToolOutcome:
        if not given.command.strip() or "\0" in given.command:
            raise Invalid("Give a command line to run")
        cwd = self._bench.roots.inside(given.cwd)
        await get_leave(self._bench, await self._deed(call_id, given.command, cwd))

        async def opened(terminal_id: str) -> None:
            await self._bench.show(call_id, InTerminal(terminal_id))

        self._sight.command_begins()
        ran = await commands.run(given.command, cwd, given.seconds, opened)
        return ToolOutcome(told(ran, given.seconds), ok=ran.exit_code == 0)

    async def _deed(self, call_id: str, command: str, cwd: Path) -> Deed:
        roots, guard = self._bench.roots, self._bench.guard
        scope = of_command(command, "" if cwd == roots.cwd else roots.shown(cwd))
        return Deed(
            call_id,
            "run_command",
            Kind.EXECUTE,
            f"Run `{_printable(one_line(command, TITLE))}`",
            command=command,
            scope=scope.name,
            covers=scope.covers,
            warns=scope.warns,
            obeys=await guard.obeyed(command, cwd) if scope.name else (),
            why=(why := await guard.of_command(command, cwd)),
            each_time=bool(why),
        )


def _printable(text: str) -> str:
    """What a person is asked about must not look like something else."""
    return "".join(one if one.isprintable() else "?" for one in text)


def told(ran: Ran, seconds: float) -> str:
    """What a command said, and what became of it; no I/O."""
    output = shortened(ran.output, MOST_CHARACTERS)
    gap = "" if not output or output.endswith("\n") else "\n"
    cut = "[Its output was long, and some of it is left out]\n" if ran.truncated else ""
    return f"{output}{gap}{cut}[{_end(ran, seconds)}]"


def _end(ran: Ran, seconds: float) -> str:
    if ran.timed_out:
        return f"Stopped, as it took longer than {seconds:g} s"
    if ran.exit_code is not None:
        return f"Exit code {ran.exit_code}"
    return f"Ended by {ran.signal}" if ran.signal else "Ended, and nobody knows how"
