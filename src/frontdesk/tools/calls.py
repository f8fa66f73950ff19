"""Calls a tool by its name: access, arguments, limits, circuit breaker, journal, bounded result."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
from pydantic import SecretStr

from frontdesk.errors import Denied, FrontdeskError, Invalid, Unavailable
from frontdesk.identity import outbound, rights
from frontdesk.identity.model import Caller
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.service import CallRecord, Journal
from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client.client import McpClient
from frontdesk.mcp_client.model import McpServer, McpServerUnavailable, UnsupportedRequest
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.mcp_client.session import Progress
from frontdesk.mcp_client.wire import RESULT_COMPLETE, is_error_result, json_objects, result_text
from frontdesk.tools.access import PermittedTools, find_similar_id, require_one_tool
from frontdesk.tools.access_store import ToolAccess
from frontdesk.tools.arguments import ArgumentCheck
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.learning import CALLED_WEIGHT, UsageRecorder
from frontdesk.tools.model import CatalogueTool, ReviewStatus, ToolKind, tool_id

MAX_RESULT = 1024 * 1024
# Space for the note about what is missing.
NOTE_ROOM = 1024
NO_REASON = "the tool failed and gave no reason"

ContentBlock = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call. `content` and `structured` are the server's own; `error` describes a failure."""

    ok: bool
    content: Sequence[ContentBlock] = ()
    structured: Any = None
    error: str | None = None

    @property
    def text(self) -> str:
        """The whole result as text for a model."""
        if self.error is not None:
            return self.error
        return result_text({"content": list(self.content), "structuredContent": self.structured})


def failed_result(reason: str) -> CallResult:
    """The result of a call that failed before the server returned one."""
    return CallResult(ok=False, content=[{"type": "text", "text": reason}], error=reason)


def read_result(tool: str, value: Mapping[str, Any], size: int, limit: int = MAX_RESULT) -> CallResult:
    """Read a result of tools/call that came in `size` bytes."""
    kind = value.get("resultType", RESULT_COMPLETE)
    if kind != RESULT_COMPLETE:
        return failed_result(f"{tool} wants more than its arguments ({kind}), which cannot be given here")
    found = CallResult(ok=True, content=json_objects(value.get("content")), structured=value.get("structuredContent"))
    if size > limit:
        try:
            found = shorten_result(found, limit)
        except RecursionError:
            return failed_result(f"{tool} answers with something nested too deeply to be handed on; ask it for less")
    if is_error_result(value):
        text = found.text
        return replace(found, ok=False, error=text or f"{tool}: {NO_REASON}")
    return found


def shorten_result(result: CallResult, limit: int) -> CallResult:
    """The result with its largest parts cut or left out, and a note about what is missing."""
    left = limit - NOTE_ROOM
    structured, notes = result.structured, list[str]()
    size = _json_size(structured) if structured is not None else 0
    # The text has the same content, and it can be cut.
    if size > left or (size and size + _json_size(list(result.content)) > left):
        structured = None
        notes.append(f"[structured content of {size} bytes left out: a result has at most {limit} bytes]")
    else:
        left -= size
    content: list[ContentBlock] = []
    for number, block in enumerate(result.content):
        if left <= 0:
            notes.append(f"[{len(result.content) - number} more blocks left out: a result has at most {limit} bytes]")
            break
        fitted = _fit_block(block, left, limit)
        left -= _json_size(fitted)
        content.append(fitted)
    content += [{"type": "text", "text": note} for note in notes]
    return replace(result, content=content, structured=structured)


def _fit_block(block: ContentBlock, left: int, limit: int) -> ContentBlock:
    size = _json_size(block)
    if size <= left:
        return block
    if block.get("type") != "text" or not isinstance(block.get("text"), str):
        kind = block.get("mimeType") or block.get("type") or "unknown content"
        return {"type": "text", "text": f"[{kind} of {size} bytes left out: a result has at most {limit} bytes]"}
    text = str(block["text"])
    kept = _cut_text(text, left)
    note = f"\n[{len(text) - len(kept)} of {len(text)} characters left out: a result has at most {limit} bytes]"
    return {**block, "text": kept + note}


def _cut_text(text: str, size: int) -> str:
    """The beginning of a text that takes this many bytes in JSON."""
    kept = text[:size]
    while kept and (taken := _json_size(kept)) > size:
        kept = kept[: min(len(kept) - 1, len(kept) * size // taken)]
    return kept


def _json_size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


FAILURES_TO_OPEN = 5
FIRST_BREAKER_PAUSE = 10.0
LONGEST_BREAKER_PAUSE = 120.0


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The state of one server: consecutive failures, and after too many of them the time of the next trial call.

    Without `retry_at` the breaker is closed: all calls go through. An open breaker blocks all calls until then, and
    then lets one trial call through. Every method returns the new state.
    """

    failures: int = 0
    retry_at: float | None = None
    pause: float = FIRST_BREAKER_PAUSE
    trying: bool = False

    def wait(self, now: float) -> float:
        """The seconds until a call may go through; 0 if one may now."""
        if self.retry_at is None:
            return 0.0
        # A trial call is running, and its result decides. A short wait is a good guess.
        return 1.0 if self.trying and now >= self.retry_at else max(0.0, self.retry_at - now)

    def admitted(self) -> "CircuitBreaker":
        """Record that a call starts. If the breaker is not closed, it is the trial call."""
        return self if self.retry_at is None else replace(self, trying=True)

    def succeeded(self) -> "CircuitBreaker":
        """Record that the server answered, even with an error."""
        return self if self == CLOSED_BREAKER else CLOSED_BREAKER

    def failed(self, now: float, *, was_try: bool) -> "CircuitBreaker":
        """Record that the server did not answer, or gave no usable answer."""
        failures = self.failures + 1
        if was_try:
            pause = min(LONGEST_BREAKER_PAUSE, self.pause * 2)
            return CircuitBreaker(failures, now + pause, pause)
        if self.retry_at is None and failures >= FAILURES_TO_OPEN:
            return CircuitBreaker(failures, now + FIRST_BREAKER_PAUSE)
        # A call that started before the breaker opened adds no information.
        return replace(self, failures=failures)

    def abandoned(self, *, was_try: bool) -> "CircuitBreaker":
        """Record that the caller left before the server answered."""
        return replace(self, trying=False) if was_try else self


CLOSED_BREAKER = CircuitBreaker()

CALLS_AT_ONCE = 64
QUEUE_SECONDS = 10.0

T = TypeVar("T")


class CallNotTried(Unavailable):
    """The call was not sent, because the server is busy or its breaker is open."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """Limits for each server: concurrent calls, the wait for a free place, and the size of a result."""

    at_once: int = CALLS_AT_ONCE
    queue_seconds: float = QUEUE_SECONDS
    max_result: int = MAX_RESULT
    clock: Callable[[], float] = time.monotonic


class ServerLimiter:
    """The calls of all users to one server."""

    def __init__(self, server: str, manners: CallPolicy) -> None:
        self._server = server
        self._now = manners.clock
        self._places = asyncio.Semaphore(manners.at_once)
        self._at_once = manners.at_once
        self._queue_seconds = manners.queue_seconds
        self._breaker = CircuitBreaker()

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` when there is a free place and the breaker allows it; else raise `CallNotTried`."""
        self._check()
        await self._enter()
        try:
            # While this call waited, others may have found that the server is down.
            self._check()
            return await self._watched(work)
        finally:
            self._places.release()

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        was_try = self._breaker.retry_at is not None
        self._breaker = self._breaker.admitted()
        try:
            found = await work()
        except Unavailable as error:
            if _is_server_failure(error):
                self._breaker = self._breaker.failed(self._now(), was_try=was_try)
            else:
                self._breaker = self._breaker.succeeded()
            raise
        except BaseException:
            self._breaker = self._breaker.abandoned(was_try=was_try)
            raise
        self._breaker = self._breaker.succeeded()
        return found

    def _check(self) -> None:
        if self._breaker.retry_at is not None and (wait := self._breaker.wait(self._now())) > 0:
            raise CallNotTried(
                f"MCP server '{self._server}' failed {self._breaker.failures} times in a row and is left alone; try "
                f"again in {max(1, round(wait))} s, or use another tool"
            )

    async def _enter(self) -> None:
        if self._places.locked():
            try:
                async with asyncio.timeout(self._queue_seconds):
                    await self._places.acquire()
            except TimeoutError:
                raise CallNotTried(
                    f"MCP server '{self._server}' has {self._at_once} calls under way already, and none ended in "
                    f"{self._queue_seconds:g} s; try again later"
                ) from None
        else:
            await self._places.acquire()


def _is_server_failure(error: Unavailable) -> bool:
    """Whether the server is at fault. A server that refuses a request works."""
    return isinstance(error, McpServerUnavailable) and (error.status is None or error.status >= 500)


DEFAULT_CALL_POLICY = CallPolicy()


class ToolGateway:
    """Calls servers for all users of the process, tracks the state of each server, and keeps users apart."""

    def __init__(
        self,
        servers: KnownServers,
        clients: McpClientPool,
        application_name: str | None = None,
        manners: CallPolicy = DEFAULT_CALL_POLICY,
    ) -> None:
        self._servers = servers
        self._clients = clients
        # The defaults of outbound headers, computed once and not for every call.
        self._application_name = application_name or outbound.project_name(Path.cwd())
        self._manners = manners
        self._arguments = ArgumentCheck()
        self._limiters: dict[str, ServerLimiter] = {}
        servers.watch(self._forget)

    async def call(
        self,
        caller: Caller,
        tool: CatalogueTool,
        arguments: Mapping[str, Any],
        *,
        token: SecretStr | None = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Call a tool of an MCP server. A caller's mistake raises `Invalid`; a failure of the server is a result.

        `token` is the person's own. It is sent to servers that are set up to get it. For a server with token exchange
        it is exchanged for another, and never sent to that server.
        """
        _check_callable(tool)
        server = self._servers.get(tool.server)
        if server is None:
            return failed_result(f"The MCP server '{tool.server}' is not set up any more; use another tool")
        arguments = dict(arguments)
        await self._arguments.check(tool.id, tool.parameters, arguments)
        secret = _client_token(server, token)
        if secret is None and server.oauth is not None and server.oauth.for_person:
            return failed_result(f"{server} acts for a person; call it with that person's token")
        # Over HTTP the client reads the agent from the token itself, once.
        told = secret if server.user_token and server.transport == "stdio" else None
        if server.sends_agent_id:
            said = outbound.platform_headers(caller, token=told, application_name=self._application_name)
        else:
            said = outbound.caller_headers(caller)

        async def work() -> CallResult:
            client = self._client(server, caller.user_id, secret)
            result = await client.call_tool(tool.name, arguments, said, progress)
            return read_result(tool.name, result.value, result.size, self._manners.max_result)

        try:
            return await self._limiter(server.name).run(work)
        except Unavailable as error:
            return failed_result(f"Error calling {tool.name}: {error.public_message}")

    def _client(self, server: McpServer, user_id: str | None, secret: str | None) -> McpClient:
        """The client for this call. The server may have been removed or changed while the call waited."""
        current = self._servers.get(server.name)
        if current is None or current.digest != server.digest:
            raise UnsupportedRequest(f"{server} was removed or defined anew meanwhile; try again")
        return self._clients.client(server, user_id, secret)

    def _limiter(self, server: str) -> ServerLimiter:
        lane = self._limiters.get(server)
        if lane is None:
            lane = self._limiters[server] = ServerLimiter(server, self._manners)
        return lane

    def _forget(self, server: McpServer) -> None:
        self._limiters.pop(server.name, None)
        self._clients.retire(server)


def _check_callable(tool: CatalogueTool) -> None:
    if tool.kind is not ToolKind.MCP:
        raise Invalid(f"'{tool.name}' is a tool of the agent host itself: attach it to the agent, which then calls it")
    if tool.standing is ReviewStatus.HELD:
        raise Invalid(f"'{tool.id}' has changed and waits for somebody to look at the change; use another tool")


def _client_token(server: McpServer, token: SecretStr | None) -> str | None:
    """The token for the client of this server; None if the server does not use it."""
    exchanged = server.oauth is not None and server.oauth.for_person
    return token.get_secret_value() if token is not None and (server.user_token or exchanged) else None


NAMES_CACHED = 5000
LONGEST_NAME = 300
ANY_ARGUMENTS: Mapping[str, Any] = {"type": "object"}


class ToolDispatcher:
    """Calls any tool, for all interfaces and both agent hosts."""

    def __init__(
        self, catalogue: Catalogue, gateway: ToolGateway, allowed: ToolAccess, usage: UsageRecorder, journal: Journal
    ) -> None:
        self._catalogue = catalogue
        self.gateway = gateway
        self._allowed = allowed
        self._usage = usage
        self._journal = journal
        self._known: dict[str, Sequence[CatalogueTool]] = {}
        self._known_at = -1

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        *,
        token: SecretStr | None = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Call a tool as the caller. A person's own `token` is for servers that act for them."""
        rights.require_scope(caller, rights.TOOLS_CALL)
        tool = await self.resolve(caller, name)
        return await self._run(caller, tool, arguments, token, progress)

    async def _run(
        self,
        caller: Caller,
        tool: CatalogueTool,
        arguments: Mapping[str, Any],
        token: SecretStr | None,
        progress: Progress | None = None,
    ) -> CallResult:
        with CallRecord(self._journal, "tools", tool.id, caller, EntryKind.TOOL) as record:
            result = await self.gateway.call(caller, tool, arguments, token=token, progress=progress)
            record.outcome = Outcome.OK if result.ok else Outcome.FAILED
        if result.ok:
            self._usage.note(caller, tool.id, CALLED_WEIGHT)
        return result

    async def call_attached(
        self, caller: Caller, server: str, name: str, arguments: Mapping[str, Any], token: SecretStr | None
    ) -> ToolOutcome:
        """Call a tool that an agent holds. Returns text for its model.

        The tool may not be in the catalogue yet, or its server may no longer list it.
        """
        found = tool_id(server, name)
        try:
            rights.require_scope(caller, rights.TOOLS_CALL)
            tool = await self._held(caller, found) or CatalogueTool(found, server, name, "", ANY_ARGUMENTS)
            result = await self._run(caller, tool, arguments, token)
        except FrontdeskError as error:
            return ToolOutcome(error.public_message, ok=False)
        return ToolOutcome(result.text, ok=result.ok)

    async def _held(self, caller: Caller, found: str) -> CatalogueTool | None:
        tools = await self._named(found)
        if not (await self._allowed.permitted_tools(caller)).allows(found):
            raise Denied(f"You may not use the tool '{found}'; ask an administrator")
        # Otherwise a server could change a tool, remove it from its list, and still get calls for it.
        held = tools[0].standing is ReviewStatus.HELD if tools else await self._catalogue.is_held_back(found)
        if held:
            raise _held_back(found)
        return tools[0] if tools else None

    async def reads_only(self, name: str) -> bool:
        """Whether all tools that a name may mean are read-only, as their servers claim. Used to order calls."""
        found = await self._named(name)
        return bool(found) and all(tool.annotations.get("readOnlyHint") is True for tool in found)

    async def attached_reads_only(self, server: str, name: str) -> bool:
        """Whether a tool that an agent holds is read-only."""
        return await self.reads_only(tool_id(server, name))

    async def resolve(self, caller: Caller, name: str) -> CatalogueTool:
        """The tool that a name means to this caller: an id, the name that models see, or a unique own name."""
        known, permitted = await self._named(name), await self._allowed.permitted_tools(caller)
        near = None if known else await self.find_similar(permitted, name)
        tool = require_one_tool(known, permitted, name, near)
        if tool.standing is ReviewStatus.HELD:
            raise _held_back(tool.id)
        return tool

    async def find_similar(self, permitted: PermittedTools, name: str) -> str | None:
        """The id of a tool whose name is similar to an unknown name."""
        # This takes a tenth of a second for twenty thousand tools.
        return await anyio.to_thread.run_sync(find_similar_id, self._catalogue.index.ids(), permitted, name)

    async def _named(self, name: str) -> Sequence[CatalogueTool]:
        if self._known_at != self._catalogue.revision or len(self._known) > NAMES_CACHED:
            self._known, self._known_at = {}, self._catalogue.revision
        known = self._known
        if name not in known:
            # If the catalogue changes meanwhile, the list goes into the old dictionary, which is no longer used.
            known[name] = await self._catalogue.resolve(name) if len(name) <= LONGEST_NAME else ()
        return known[name]


def _held_back(tool_id: str) -> Denied:
    return Denied(f"The tool '{tool_id}' changed and is held back until somebody has looked at the change")
