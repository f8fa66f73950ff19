"""`frontdesk tools add`, `remove` and `refresh`."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, Invalid
from frontdesk.journal.record import Record
from frontdesk.surfaces.cli.options import Flag, Many, Text
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.running import changing, operator, with_change
from frontdesk.surfaces.cli.tools.opening import NONE, with_tools
from frontdesk.surfaces.cli.tools.progress import Servers, Told, outcome
from frontdesk.surfaces.cli.words import table
from frontdesk.tools.catalogue.crawl import Stage, Step
from frontdesk.tools.catalogue.manifest import read_manifest
from frontdesk.tools.catalogue.servers import Origin, ServerSpec, Transport

ADDRESSES = ("http://", "https://", "${")
COMMAND_FOLLOWS = "--"
# The help tells of these with the one before them.
Words = Annotated[str, Parameter(show=False)]


def add(  # noqa: PLR0913 - each is an option of the command
    name: str | None = None,
    where: str | None = None,
    /,
    *rest: Words,
    header: Many = (),
    env: Many = (),
    sse: Flag = False,
    user_token: Flag = False,
    hold_changes: Flag = False,
    description: Text = "",
    manifest: Path | None = None,
    force: Flag = False,
) -> None:
    """Add an MCP server, and ask it for its tools.

    One with an address: frontdesk tools add NAME URL

    One that is started here: frontdesk tools add NAME -- COMMAND ARGUMENTS

    All of a file: frontdesk tools add --manifest FILE

    Parameters
    ----------
    name
        What the server is to be called: letters, digits and hyphens.
    where
        Its address, http(s)://…; or, after --, the command that starts it, with its arguments.
    header
        A header it always gets, as 'Name: value'; ${VARIABLE} in it is read from the environment when it is used.
    env
        A variable for a command, as NAME=value; ${VARIABLE} is read from the environment.
    sse
        It speaks the old HTTP+SSE transport.
    user_token
        Send it the token of the person that a call is for.
    hold_changes
        Hold back a tool that changes until somebody has looked at it.
    description
        What it is for.
    manifest
        Add every server of this file instead, as editors and the Agent 365 tooling write it.
    force
        Add it even if it does not answer, and replace one of the same name.
    """
    if manifest is not None:
        specs = [replace(spec, origin=Origin.ADDED, tools=None) for spec in read_manifest(manifest)]
    elif name is None or where is None:
        raise Invalid("Say what to add: NAME URL, NAME -- COMMAND, or --manifest FILE")
    else:
        command, url = (where, "") if _is_command(where, rest) else ("", _address(where, rest))
        kind = Transport.STDIO if command else Transport.SSE if sse else Transport.HTTP
        specs = [
            ServerSpec(
                name,
                kind,
                url,
                command,
                rest,
                dict(_pair(one, "=", "NAME=value") for one in env),
                dict(_pair(one, ":", "'Name: value'") for one in header),
                user_token,
                description=description,
                hold_changes=hold_changes or None,
            )
        ]
    ends = with_tools(lambda app: _add(app, specs, force=force))
    for spec, end in zip(specs, ends, strict=True):
        print(f"{line(spec.name)}: {line(outcome(end) if isinstance(end, Step) else str(end))}")
    if any(isinstance(end, FrontdeskError) for end in ends):
        sys.exit(1)


def remove(name: str, /) -> None:
    """Remove a server that was added, and its tools.

    Parameters
    ----------
    name
        The server's name, as `tools servers` lists it.
    """
    with_change(f"tools remove {name}", lambda app, _: app.tools.house.remove_server(operator(), name), with_tools)
    print(f"{line(name)} is removed, and its tools with it.")


def refresh(*server: str) -> None:
    """Ask servers for their tools now, and say what changed; exit 1 if one does not answer.

    Parameters
    ----------
    server
        Only these; all of them when none is named.
    """

    async def ask(app: App, _record: Record) -> Sequence[Step]:
        catalogue = app.tools.catalogue
        named = app.settings
        if named.mcp_servers or named.tools_manifest or named.platform_app_id:
            # What is named here may never have been asked, where no server ran yet.
            await catalogue.declare()
        with Told(sys.stderr) as told:
            follow = Servers(told, len(server) or len(catalogue.servers()))
            return await app.tools.house.refresh(operator(), server or None, follow.step)

    steps = with_change(" ".join(("tools refresh", *server)), ask, with_tools)
    print(table(("server", "tools"), [(step.server, outcome(step)) for step in steps]) if steps else NONE)
    if any(step.stage is Stage.FAILED for step in steps):
        sys.exit(1)


async def _add(app: App, specs: Sequence[ServerSpec], *, force: bool) -> Sequence[Step | FrontdeskError]:
    """One after the other; one that does not answer keeps no other from being added."""
    ends: list[Step | FrontdeskError] = []
    with Told(sys.stderr) as told:
        for spec in specs:
            told.now(f"asking {spec.name} for its tools")
            try:
                with changing(app, f"tools add {spec.name}"):
                    ends.append(await app.tools.house.add_server(operator(), spec, force=force))
            except FrontdeskError as error:
                if len(specs) == 1:
                    raise
                ends.append(error)
    return ends


def _is_command(where: str, rest: Sequence[str]) -> bool:
    """Whether all of this stands after --, of which the parser keeps no trace."""
    typed = sys.argv[1:]
    return COMMAND_FOLLOWS in typed and typed[typed.index(COMMAND_FOLLOWS) + 1 :] == [where, *rest]


def _address(where: str, rest: Sequence[str]) -> str:
    if not where.lower().startswith(ADDRESSES):
        raise Invalid(f"'{where}' is not an address; write http(s)://…, or put a command after --")
    if rest:
        raise Invalid(f"'{rest[0]}' is one argument too many; a command goes after --")
    return where


def _pair(text: str, separator: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise Invalid(f"'{text}' is not of the form {form}")
    return name.strip(), value.strip() if separator == ":" else value
