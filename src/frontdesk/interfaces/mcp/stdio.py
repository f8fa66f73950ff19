"""Serves MCP on standard input and output, to the process that started Frontdesk."""

from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from pydantic import SecretStr

from frontdesk.app import App, running
from frontdesk.errors import ConfigurationError, Unauthenticated, Unavailable
from frontdesk.identity.service import Identity
from frontdesk.interfaces import logs
from frontdesk.interfaces.app_runner import run_with_app
from frontdesk.interfaces.http.context import SESSION_HEADER, RequestContext, ensure_request_id
from frontdesk.interfaces.http.middleware import use_credential
from frontdesk.interfaces.mcp.login_tools import with_login_tools
from frontdesk.interfaces.mcp.server import build_server, offer_tools, tools_by_path, url_path
from frontdesk.operations import McpPath
from frontdesk.settings import Settings


def run_stdio_server(mcp_path: str) -> None:
    """Answer on standard output every message from standard input, until the input ends."""
    # Only the process that started us can write to our standard input, so this is as safe as loopback.
    settings = Settings.read().with_values(host="127.0.0.1", public_url="", allowed_hosts=(), require_auth=False)
    logs.configure_logs(settings)

    async def answer(app: App) -> None:
        starter = await identify_stdio_client(app)
        async with running(app):
            await serve_stdio(app, starter, McpPath(mcp_path))

    run_with_app(answer, settings, fast=True)


@dataclass(frozen=True, slots=True)
class StdioClient:
    """The client at the other end. `session_id` is this process's own: what is stored for it ends with the process.

    With a `key`, all calls are for its person, `user_id`, even while the key is not valid or cannot be checked.
    """

    identity: Identity
    session_id: str
    key: SecretStr | None = None
    user_id: str | None = None

    async def request_context(self) -> RequestContext:
        """The context of a call, with the caller as far as it is known now; the stored token is tried before the key.

        Both must belong to one person: otherwise the calls of an expired token would be made for the key's person.
        """
        said = {SESSION_HEADER: self.session_id}
        context = RequestContext(ensure_request_id(None), said, trusted=self.key is None, only_person=self.user_id)
        with suppress(Unavailable):
            left = await self.identity.sessions.recall(self.session_id)
            for text in (left, self.key.get_secret_value() if self.key else None):
                if text is not None and context.credential is None:
                    with suppress(Unauthenticated):
                        await use_credential(self.identity, context, text)
        return context

    async def forget_token(self) -> None:
        """Delete the stored token. If this is impossible now, nobody can use the token, and it expires after a day."""
        with suppress(Unavailable):
            await self.identity.sessions.forget(self.session_id)


async def identify_stdio_client(app: App) -> StdioClient:
    """Identify the client by the settings; an invalid key is reported before the first call."""
    key, user_id = app.settings.zmemory_api_key, None
    if key is not None:
        try:
            user_id = (await app.identity.authenticate(key.get_secret_value())).user_id
        except Unauthenticated as error:
            raise ConfigurationError(f"ZMEMORY_API_KEY does not hold: {error}") from error
    return StdioClient(app.identity, app.identity.sessions.new_id(), key, user_id)


DRAIN_SECONDS = 10
Incoming = SessionMessage | Exception
SendMessage = Callable[[SessionMessage], Awaitable[None]]


async def serve_stdio(app: App, starter: StdioClient, mcp_path: McpPath = McpPath.CORE) -> None:
    """Serve an endpoint until standard input closes; standard output carries only the protocol."""
    path = url_path(mcp_path)
    operations = tools_by_path(with_login_tools(app, app.operations()))[path]
    server = build_server(offer_tools(app, operations, path, starter.request_context), path)
    unanswered = OpenRequests()
    to_server, server_reads = anyio.create_memory_object_stream[Incoming]()
    server_writes, from_server = anyio.create_memory_object_stream[SessionMessage]()
    async with stdio_server() as (incoming, outgoing):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(unanswered.forward_requests, incoming, to_server)
            tasks.start_soon(unanswered.forward_responses, from_server, outgoing.send)
            await server.run(server_reads, server_writes, server.create_initialization_options())
        await outgoing.aclose()
    await starter.forget_token()


@dataclass(slots=True)
class OpenRequests:
    """The open requests: after a client's last message, every request is still answered, in bounded time."""

    numbers: set[int | str] = field(default_factory=set[int | str])
    settled: anyio.Event = field(default_factory=anyio.Event)

    async def forward_requests(
        self, incoming: AsyncIterable[Incoming], to_server: MemoryObjectSendStream[Incoming]
    ) -> None:
        async with to_server:
            async for item in incoming:
                if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
                    self.numbers.add(item.message.id)
                await to_server.send(item)
            with anyio.move_on_after(DRAIN_SECONDS):
                while self.numbers:
                    self.settled = anyio.Event()
                    await self.settled.wait()

    async def forward_responses(self, from_server: AsyncIterable[SessionMessage], send: SendMessage) -> None:
        async for item in from_server:
            await send(item)
            if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
                self.numbers.discard(item.message.id)
                self.settled.set()
