"""The MCP servers that an editor brings along: met behind the scenes, called with leave, and gone with the session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import structlog

from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.loop.mcp.model import McpServer, RemoteTool
from frontdesk.loop.mcp.names import api_name
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.loop.text import one_line
from frontdesk.loop.tools import Tool, ToolOutcome
from frontdesk.surfaces.acp.editor.discretion import discreet
from frontdesk.surfaces.acp.wire.model import Gone
from frontdesk.surfaces.acp.wire.words import HttpMcpServer, McpServerStdio, SseMcpServer
from frontdesk.tools.gateway.result import read
from frontdesk.workspace.coding.model import Leave
from frontdesk.workspace.permissions.guard import Guard
from frontdesk.workspace.permissions.model import Deed, Kind

LIST_SECONDS = 10.0
CALL_SECONDS = 300.0
# What a call may take in all: the person's time to allow it comes on top, and has a limit of its own.
WHOLE_SECONDS = 2 * 3600.0
NAME_LENGTH = 60
REFUSED = "The person did not allow this"

# Tells the person something.
Complain = Callable[[str], Awaitable[None]]

log = structlog.get_logger("frontdesk.acp")


@dataclass(frozen=True, slots=True)
class Found:
    """A tool of one of the servers, under the name that models have for it."""

    server: McpServer
    remote: RemoteTool
    name: str


class EditorServers:
    """Those of one session. No program is started here for an editor on another machine, as `guard` knows it."""

    def __init__(self, cwd: Path, leave: Leave, guard: Guard, *, seconds: float = LIST_SECONDS) -> None:
        self._cwd = cwd
        self._leave = leave
        self._guard = guard
        self._seconds = seconds
        self._clients = McpClients(timeout=CALL_SECONDS)
        self._found: dict[int, Sequence[Found]] = {}
        self._unknown = 0
        self._looking = anyio.CancelScope()
        self._settled = anyio.Event()

    async def run(self, wanted: Sequence[object], complain: Complain) -> None:
        """Look up the tools of all servers at once, each in its own time; to be done behind the scenes, and once."""
        self._unknown = len(wanted)
        try:
            with self._looking:
                async with anyio.create_task_group() as tasks:
                    for number, one in enumerate(wanted):
                        tasks.start_soon(self._meet, number, one, complain)
        finally:
            self._settled.set()

    async def settled(self, seconds: float) -> None:
        """Wait until it is known of each server what it has, but no longer than this."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    def tools(self) -> Sequence[Tool]:
        """What has been found so far, for one turn."""
        return [self._bound(found) for number in sorted(self._found) for found in self._found[number]]

    async def aclose(self) -> None:
        """End every session and every child, in bounded time, whoever is cancelled meanwhile."""
        self._looking.cancel()
        self._found = {}
        await self._clients.close()

    async def _meet(self, number: int, wanted: object, complain: Complain) -> None:
        name = one_line(str(getattr(wanted, "name", "")), NAME_LENGTH) or "server"
        wrong = await self._wrong_with(number, name, wanted)
        self._unknown -= 1
        if self._unknown == 0:
            # Before anybody is told of anything: the editor may take its time to hear it.
            self._settled.set()
        if wrong is not None:
            with suppress(Gone):
                await complain(wrong)

    async def _wrong_with(self, number: int, name: str, wanted: object) -> str | None:
        """Find a server's tools; why there are none where it cannot be asked for them, or not all that it lists."""
        try:
            server = self._server(name, wanted)
        except FrontdeskError as error:
            return _logged(name, error, error.public)
        try:
            with anyio.fail_after(self._seconds):
                listed = await self._clients.client(server, None, None).listing()
        except TimeoutError as error:
            self._clients.retire(server)
            return _logged(
                name, error, f"The MCP server '{name}' did not answer in {self._seconds:g} s; it is left out"
            )
        except Unavailable as error:
            self._clients.retire(server)
            return _logged(name, error, discreet(error.public, server))
        self._found[number] = self._named(server, listed.tools)
        return f"The MCP server '{name}': {'; '.join(listed.left_out)}" if listed.left_out else None

    def _server(self, name: str, wanted: object) -> McpServer:
        match wanted:
            case McpServerStdio():
                if not self._guard.local:
                    raise Invalid(f"The MCP server '{name}' is a program on another machine; give one with an address")
                env = {one.name: one.value for one in wanted.env}
                command = (wanted.command, *wanted.args)
                return McpServer(name, transport="stdio", command=command, env=env, cwd=self._cwd)
            case HttpMcpServer() | SseMcpServer():
                headers = {one.name: one.value for one in wanted.headers}
                return McpServer(name, wanted.url, headers, transport=wanted.type)
            case _:
                raise Invalid(f"The MCP server '{name}' is of a kind that is not known here; use stdio, http or sse")

    def _named(self, server: McpServer, listed: Sequence[RemoteTool]) -> Sequence[Found]:
        taken = {one.name: one for found in self._found.values() for one in found}
        mine: list[Found] = []
        for remote in listed:
            found = Found(server, remote, api_name(server.name, remote.name, taken))
            taken[found.name] = found
            mine.append(found)
        return mine

    def _bound(self, found: Found) -> Tool:
        return Tool(
            found.name,
            found.remote.description,
            found.remote.parameters,
            partial(self._call, found, ""),
            run_call=partial(self._call, found),
            seconds=WHOLE_SECONDS,
            reads_only=_reads_only(found),
        )

    async def _call(self, found: Found, call_id: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        why = "" if _reads_only(found) else await self._guard.of_arguments(arguments)
        word = await self._leave(_deed(found, call_id, why))
        if not word.allowed:
            return ToolOutcome(word.reason or REFUSED, ok=False)
        tool = found.remote.name
        try:
            result = await self._clients.client(found.server, None, None).raw(tool, arguments, progress=_go_on)
        except Unavailable as error:
            return ToolOutcome(f"Error calling {tool}: {discreet(error.public, found.server)}", ok=False)
        answer = read(tool, result.value, result.size)
        return ToolOutcome(answer.text, ok=answer.ok)


def _reads_only(found: Found) -> bool:
    """By its own word."""
    return found.remote.annotations.get("readOnlyHint") is True


def _logged(name: str, error: Exception, said: str) -> str:
    log.info("editor_server_failed", server=name, error=type(error).__name__)
    return said


def _deed(found: Found, call_id: str, why: str) -> Deed:
    server, tool = found.server.name, one_line(found.remote.name, NAME_LENGTH)
    return Deed(
        call_id,
        found.name,
        Kind.OTHER,
        f"{tool} ({server})",
        # Not the name that models have: that may hang on which server answered first.
        scope=f"mcp {api_name(server, found.remote.name, {})}",
        covers=f"'{tool}' of the MCP server '{server}'",
        harmless=_reads_only(found),
        why=why,
        each_time=bool(why),
    )


async def _go_on(_done: float, _total: float | None, _message: str | None) -> None:
    """Whoever is told of progress thereby gives a call more time."""
