"""Connects the MCP servers that an editor brings to its session, and offers their tools to the agent."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio
import structlog

from frontdesk.coding.guard import PathGuard
from frontdesk.coding.model import AskPermission, OperationKind, PermissionRequest
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.interfaces.acp.jsonrpc import ConnectionClosed
from frontdesk.interfaces.acp.schema import HttpMcpServer, McpServerStdio, SseMcpServer
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.mcp_client.model import McpServer, RemoteTool, api_name, bare_token
from frontdesk.mcp_client.pool import McpClientPool
from frontdesk.text import one_line
from frontdesk.tools.calls import read_result

MAX_CHARACTERS = 300
# Shorter values are words such as `true` or `/mcp`, and would leave nothing readable.
SECRET_LENGTH = 6
SECRET = "[secret]"  # noqa: S105 - no secret
ASSIGNMENT = re.compile(r"=(.+)", re.DOTALL)


def hide_secrets(text: str, server: McpServer) -> str:
    """A text on one line with the server's name in place of its address, and without its secrets."""
    secrets = sorted({one for one in _secrets(server) if len(one) >= SECRET_LENGTH}, key=len, reverse=True)
    # The name is not a secret, even where it is also a word of the command.
    between = [_replace_secrets(secrets, part) for part in text.split(str(server))]
    return one_line(f"The MCP server '{server.name}'".join(between), MAX_CHARACTERS)


def _replace_secrets(secrets: Sequence[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, SECRET)
    return text


def _secrets(server: McpServer) -> Iterator[str]:
    yield from server.env.values()
    for value in server.headers.values():
        yield value
        yield bare_token(value) or ""
    for argument in server.command[1:]:
        yield argument
        yield from ASSIGNMENT.findall(argument)
    yield from _url_parts(server.url)


def _url_parts(url: str) -> Iterator[str]:
    """An address, and the parts of it that might be a key: steps of the path, and values of the query."""
    parts = urlsplit(url)
    yield from (url, parts.path, parts.query, parts.fragment)
    for step in parts.path.split("/"):
        yield step
        yield unquote(step)
    for _, value in parse_qsl(parts.query):
        yield value


LIST_SECONDS = 10.0
CALL_SECONDS = 300.0
# The limit for a call with the person's time to allow it, which has a limit of its own.
MAX_CALL_SECONDS = 2 * 3600.0
NAME_LENGTH = 60
NOT_ALLOWED = "The person did not allow this"

# Shows the person a warning.
WarnPerson = Callable[[str], Awaitable[None]]

log = structlog.get_logger("frontdesk.acp")


@dataclass(frozen=True, slots=True)
class EditorTool:
    """A tool of one of the servers; `name` is its name for models."""

    server: McpServer
    remote: RemoteTool
    name: str


class EditorServers:
    """The servers of one session. No program is started here for an editor on another machine; `guard` knows which."""

    def __init__(self, cwd: Path, guard: PathGuard, *, seconds: float = LIST_SECONDS) -> None:
        self._cwd = cwd
        self._guard = guard
        self._seconds = seconds
        self._clients = McpClientPool(timeout=CALL_SECONDS)
        self._found: dict[int, Sequence[EditorTool]] = {}
        self._unknown = 0
        self._looking = anyio.CancelScope()
        self._settled = anyio.Event()

    async def run(self, wanted: Sequence[object], warn: WarnPerson) -> None:
        """List the tools of all servers concurrently; call this once, in the background."""
        self._unknown = len(wanted)
        try:
            with self._looking:
                async with anyio.create_task_group() as tasks:
                    for number, one in enumerate(wanted):
                        tasks.start_soon(self._add_server, number, one, warn)
        finally:
            self._settled.set()

    async def wait_until_listed(self, seconds: float) -> None:
        """Wait until every server has listed its tools or failed, for so many seconds at most."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    def tools(self, ask_permission: AskPermission) -> Sequence[Tool]:
        """The tools that are listed so far, for one prompt."""
        return [self._bind(found, ask_permission) for number in sorted(self._found) for found in self._found[number]]

    async def aclose(self) -> None:
        """End every session and every child process, in bounded time, also when cancelled."""
        self._looking.cancel()
        self._found = {}
        await self._clients.close()

    async def _add_server(self, number: int, value: object, warn: WarnPerson) -> None:
        name = one_line(str(getattr(value, "name", "")), NAME_LENGTH) or "server"
        warning = await self._list_tools(number, name, value)
        self._unknown -= 1
        if self._unknown == 0:
            # This comes before the warning, since a slow editor may hold that up.
            self._settled.set()
        if warning is not None:
            with suppress(ConnectionClosed):
                await warn(warning)

    async def _list_tools(self, number: int, name: str, value: object) -> str | None:
        """List a server's tools; returns a warning where that fails, or where tools were left out."""
        try:
            server = self._server(name, value)
        except FrontdeskError as error:
            return _log_failure(name, error, error.public_message)
        try:
            with anyio.fail_after(self._seconds):
                listed = await self._clients.client(server, None, None).listing()
        except TimeoutError as error:
            self._clients.retire(server)
            return _log_failure(
                name, error, f"The MCP server '{name}' did not answer in {self._seconds:g} s; it is left out"
            )
        except Unavailable as error:
            self._clients.retire(server)
            return _log_failure(name, error, hide_secrets(error.public_message, server))
        self._found[number] = self._named(server, listed.tools)
        return f"The MCP server '{name}': {'; '.join(listed.left_out)}" if listed.left_out else None

    def _server(self, name: str, value: object) -> McpServer:
        match value:
            case McpServerStdio():
                if not self._guard.local:
                    raise Invalid(f"The MCP server '{name}' is a program on another machine; give one with an address")
                env = {one.name: one.value for one in value.env}
                command = (value.command, *value.args)
                return McpServer(name, transport="stdio", command=command, env=env, cwd=self._cwd)
            case HttpMcpServer() | SseMcpServer():
                headers = {one.name: one.value for one in value.headers}
                return McpServer(name, value.url, headers, transport=value.type)
            case _:
                raise Invalid(f"The MCP server '{name}' is of an unknown kind; use stdio, http or sse")

    def _named(self, server: McpServer, listed: Sequence[RemoteTool]) -> Sequence[EditorTool]:
        taken = {one.name: one for found in self._found.values() for one in found}
        mine: list[EditorTool] = []
        for remote in listed:
            found = EditorTool(server, remote, api_name(server.name, remote.name, taken))
            taken[found.name] = found
            mine.append(found)
        return mine

    def _bind(self, tool: EditorTool, ask_permission: AskPermission) -> Tool:
        call = partial(self._call, tool, ask_permission)
        return Tool(
            tool.name,
            tool.remote.description,
            tool.remote.parameters,
            partial(call, ""),
            run_call=call,
            seconds=MAX_CALL_SECONDS,
            reads_only=_reads_only(tool),
        )

    async def _call(
        self, found: EditorTool, ask_permission: AskPermission, call_id: str, arguments: Mapping[str, Any]
    ) -> ToolOutcome:
        why = "" if _reads_only(found) else await self._guard.check_arguments(arguments)
        decision = await ask_permission(_permission_request(found, call_id, why))
        if not decision.allowed:
            return ToolOutcome(decision.reason or NOT_ALLOWED, ok=False)
        tool = found.remote.name
        try:
            result = await self._clients.client(found.server, None, None).call_tool(
                tool, arguments, progress=_ignore_progress
            )
        except Unavailable as error:
            return ToolOutcome(f"Error calling {tool}: {hide_secrets(error.public_message, found.server)}", ok=False)
        answer = read_result(tool, result.value, result.size)
        return ToolOutcome(answer.text, ok=answer.ok)


def _reads_only(tool: EditorTool) -> bool:
    """Whether the tool itself says that it changes nothing."""
    return tool.remote.annotations.get("readOnlyHint") is True


def _log_failure(name: str, error: Exception, text: str) -> str:
    log.info("editor_server_failed", server=name, error=type(error).__name__)
    return text


def _permission_request(found: EditorTool, call_id: str, why: str) -> PermissionRequest:
    server, tool = found.server.name, one_line(found.remote.name, NAME_LENGTH)
    return PermissionRequest(
        call_id,
        found.name,
        OperationKind.OTHER,
        f"{tool} ({server})",
        # Not the name for models: that may depend on which server answered first.
        scope=f"mcp {api_name(server, found.remote.name, {})}",
        scope_text=f"'{tool}' of the MCP server '{server}'",
        harmless=_reads_only(found),
        reason=why,
        only_once=bool(why),
    )


async def _ignore_progress(_done: float, _total: float | None, _message: str | None) -> None:
    """Do nothing; a client that accepts progress gives a call more time."""
