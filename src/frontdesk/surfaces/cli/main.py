"""The frontdesk command: start it, look into it, hand out keys and tools, plan prompts, talk with agents."""

import os
import sys
from typing import NoReturn

from cyclopts import App as Command

from frontdesk import __version__
from frontdesk.app import App, running
from frontdesk.errors import ConfigurationError, FrontdeskError
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.cli import agents, doctor, journal, keys, letta, worker
from frontdesk.surfaces.cli.chat.command import talk
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.cli.schedule.command import command as schedule
from frontdesk.surfaces.cli.tools.command import command as tools

# What a shell sees: 2 for a setting to mend, 1 for anything else that did not work.
EXIT_CODES: tuple[tuple[type[FrontdeskError], int], ...] = ((ConfigurationError, 2), (FrontdeskError, 1))

command = Command(name="frontdesk", help="The front desk for stateful AI agents.", version=__version__)
command.command(keys.command)
command.command(agents.command)
command.command(tools)
command.command(schedule)
command.command(worker.work, name="worker")
command.command(talk, name="chat")
command.command(letta.command)
command.command(journal.read, name="journal")
command.command(doctor.examine, name="doctor")


@command.command
def up(*, host: str | None = None, port: int | None = None) -> None:
    """Start the server.

    Parameters
    ----------
    host
        Address to listen on, instead of FRONTDESK_HOST.
    port
        Port to listen on, instead of FRONTDESK_PORT.
    """
    # The web stack is slow to import, and the other commands do without.
    from frontdesk.surfaces.cli.serving import open_doors  # noqa: PLC0415

    open_doors(Settings.read().replaced(host=host, port=port))


@command.command
def mcp() -> None:
    """Serve MCP on standard input and output, for a client that starts Frontdesk itself."""
    # Only the process that started us can write to our standard input: that is as near as loopback.
    settings = Settings.read().replaced(host="127.0.0.1", public_url="", allowed_hosts=(), require_auth=False)
    logs.configure(settings)
    from frontdesk.surfaces.mcp import stdio  # noqa: PLC0415

    async def serve(app: App) -> None:
        async with running(app):
            await stdio.serve(app)

    with_app(serve, settings, fast=True)


def main() -> NoReturn:
    """Run the command and turn what went wrong into a line and an exit code."""
    try:
        command()
    except FrontdeskError as error:
        print(f"frontdesk: {error.in_full}", file=sys.stderr)
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read us has enough; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(0)
