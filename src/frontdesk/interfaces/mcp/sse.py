"""Serves the older HTTP+SSE transport, for clients that support no other: GET /sse, then POST /messages."""

from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from starlette.responses import Response
from starlette.routing import Mount, Route

from frontdesk.interfaces.http.context import URL_PREFIX_KEY, Receive, Scope, Send, request_context


def sse_routes(server: Server[Any]) -> list[Route | Mount]:
    """The routes. A stream belongs to the credential that opened it; each message still carries its own identity."""
    transport = SseServerTransport("/messages/")

    async def message(scope: Scope, receive: Receive, send: Send) -> None:
        _set_owner(scope)
        await transport.handle_post_message(scope, receive, send)

    return [Route("/sse", SseEndpoint(server, transport)), Mount("/messages", message)]


@dataclass(frozen=True, slots=True)
class SseEndpoint:
    """The ASGI application behind GET /sse; it is an instance, since Starlette would pass a request to a function."""

    server: Server[Any]
    transport: SseServerTransport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            await Response(status_code=405, headers={"allow": "GET"})(scope, receive, send)
            return
        _set_owner(scope)
        # The stream begins with the address for messages.
        scope = {**scope, "root_path": scope.get(URL_PREFIX_KEY, "")}
        async with self.transport.connect_sse(scope, receive, send) as (incoming, outgoing):
            await self.server.run(incoming, outgoing, self.server.create_initialization_options())


def _set_owner(scope: Scope) -> None:
    credential = request_context(scope).credential
    if credential is not None:
        owner = f"{credential.id}/{credential.agent_id}/{credential.user_id}"
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
