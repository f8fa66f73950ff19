"""Defines the `frontdesk` command; each group is imported when it is called, since imports take seconds."""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk import __version__
from frontdesk.errors import ConfigurationError, FrontdeskError, IdentityError, Invalid
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.interfaces.cli.output import number_up_to, printable_line

# The exit code is 2 if the command has to be written differently, and 1 for any other error.
EXIT_CODES: tuple[tuple[type[FrontdeskError], int], ...] = (
    (ConfigurationError, 2),
    (Invalid, 2),
    (IdentityError, 2),
    (FrontdeskError, 1),
)
HELP = """The front desk for stateful AI agents.

First steps: frontdesk agents create Clerk, then frontdesk chat Clerk. To find problems: frontdesk doctor.
"""
CHAT_HELP = """Talk with an agent.

frontdesk chat Clerk

echo 'Sum this up' | frontdesk chat Clerk
"""
# Modules by name, because their imports take seconds: only the module of the command that runs is loaded.
COMMANDS = (
    (
        "keys",
        "keys:command",
        "Create, import, list, rotate and revoke API keys. A key acts for an agent, a person, or both.",
    ),
    (
        "agents",
        "agents:command",
        "Create, show, equip and delete agents. AGENT is an id, or a name that only one agent has.",
    ),
    (
        "tools",
        "tools:command",
        "Find, call and review tools, and their servers. TOOL is an id (server::tool), or a name that only one has.",
    ),
    ("schedule", "schedule:command", "Prompt agents later: once, by a cron rule, or at an interval."),
    (
        "tasks",
        "tasks:command",
        "Manage a person's tasks, their time, and agents' work on them. TASK_ID is an id, or its first characters.",
    ),
    (
        "memory",
        "memory:command",
        "Store, find, export and erase a person's memories. MEMORY_ID is an id, or its first characters.",
    ),
    (
        "platform",
        "platform:command",
        "Run the Agent 365 tooling platform on this machine, and check a ToolingManifest.json.",
    ),
    (
        "worker",
        "serve:work",
        "Deliver due prompts until stopped, without serving anybody; any number of workers may share a database.",
    ),
    ("chat", "chat:talk", CHAT_HELP),
    (
        "letta",
        "letta:command",
        "Connect agents of the Letta server LETTA_BASE_URL, and set which people each of them serves.",
    ),
    (
        "journal",
        "journal:read",
        "Show calls with their callers and outcomes: the newest entries, oldest first.",
    ),
    ("demo", "demo:fill", "Fill an empty installation with a day of sample data."),
    (
        "doctor",
        "doctor:examine",
        "Show every setting with its source, then every problem; exit 1 if there is any.",
    ),
)

command = Command(name="frontdesk", help=HELP, version=__version__)
for name, place, words in COMMANDS:
    command.command(f"frontdesk.interfaces.cli.{place}", name=name, help=words)

# Objects between two garbage collections while the program loads: what is created then stays until the end.
GC_THRESHOLD_WHILE_LOADING = 200_000

Port = Annotated[int | None, number_up_to(65_535, least=0)]


@command.command
def up(*, host: str | None = None, port: Port = None) -> None:
    """Start the server, with a worker inside.

    Parameters
    ----------
    host
        Address to listen on; FRONTDESK_HOST, or 127.0.0.1, when left out.
    port
        Port to listen on, 0 for a free one; FRONTDESK_PORT, or 3020, when left out.
    """
    from frontdesk.interfaces.cli.serve import serve_http  # noqa: PLC0415
    from frontdesk.settings import Settings  # noqa: PLC0415

    serve_http(Settings.read().with_values(host=host, port=port))


@command.command
def mcp(*, endpoint: Annotated[Literal["tools", "schedule", "memory"] | None, Parameter(name="--door")] = None) -> None:
    """Serve MCP on standard input and output, for a client that starts Frontdesk itself.

    Parameters
    ----------
    endpoint
        Serve the tools of one capability alone; memory is for the person whose key ZMEMORY_API_KEY is.
    """
    from frontdesk.interfaces.mcp.stdio import run_stdio_server  # noqa: PLC0415

    run_stdio_server(endpoint or "")


@command.command(help="Serve the Agent Client Protocol: your agent, with its memory, in every code editor.")
def acp(
    *, agent: str | None = None, user: str = LOCAL_USER, listen: str | None = None, root: Path | None = None
) -> None:
    """Serve the Agent Client Protocol on standard input and output, for the editor that starts it.

    Parameters
    ----------
    agent
        The agent for every folder, by id or name. Without it, each folder has an agent of its own.
    user
        The person who uses the editor.
    listen
        Serve editors by WebSocket at this HOST:PORT instead. They authenticate with a key of this installation.
    root
        With --listen: the folder on this machine whose files and commands remote editors may use.
    """
    if not user.strip():
        raise Invalid("--user names a person by 1 to 200 printable characters, as frontdesk keys list shows them")
    if listen is not None:
        from frontdesk.interfaces.acp.websocket import serve_websocket  # noqa: PLC0415

        serve_websocket(listen, agent, root)
        return
    if root is not None:
        raise Invalid("--root needs --listen; an editor on this machine names its folder itself")
    # The other modules are loaded after the editor has its first answer.
    from frontdesk.interfaces.acp.stdio import serve_stdio  # noqa: PLC0415

    serve_stdio(user, agent)


@command.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script with which a shell completes commands and options.

    frontdesk completion bash > ~/.local/share/bash-completion/completions/frontdesk

    frontdesk completion zsh > ~/.zfunc/_frontdesk

    frontdesk completion fish > ~/.config/fish/completions/frontdesk.fish

    Parameters
    ----------
    shell
        The shell that is to use it.
    """
    from frontdesk.interfaces.cli.operation_commands import add_operation_commands  # noqa: PLC0415

    add_operation_commands(command)
    print(command.generate_completion(shell=shell))


def _needs_operations(words: Sequence[str]) -> bool:
    """Whether a command of a declared operation may be meant, or be part of the help of a group.

    The declarations take a while to load, so they are left out where a command is known without them.
    """
    if not words or words[0].startswith("-"):
        return False
    if words[0] not in command:
        return True
    group = command[words[0]]
    # A command without commands of its own is no group.
    if not any(not name.startswith("-") for name in group):
        return False
    return len(words) == 1 or words[1].startswith("-") or words[1] not in group


def main() -> NoReturn:
    """Run the command; an error becomes a line and an exit code."""
    gc.set_threshold(GC_THRESHOLD_WHILE_LOADING)
    try:
        if _needs_operations(sys.argv[1:]):
            from frontdesk.interfaces.cli.operation_commands import add_operation_commands  # noqa: PLC0415

            add_operation_commands(command)
        command()
    except FrontdeskError as error:
        print(f"frontdesk: {printable_line(error.full_message)}", file=sys.stderr)
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader closed the pipe. Without this, Python would report the error again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(0)
