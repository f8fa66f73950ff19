"""An MCP server that keeps the access token in its session, as zmemory-mcp does, on a free loopback port."""

import random
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.serving import serve

SLOWEST_SECONDS = 0.004
SESSION = "mcp-session-id"
AUTH_TOOLS = (
    "authenticate",
    "exchange_code_for_token",
    "refresh_token",
    "get_user_info",
    "get_auth_status",
    "clear_auth",
    "set_access_token",
)
NO_SESSION = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
NOT_AUTHENTICATED = {"code": -32603, "message": "需要认证"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One tool call as it arrived."""

    tool: str
    session: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class TokenServer:
    """`users` says whose each token is; `whose` answers with the user of the session's token."""

    url: str
    users: Mapping[str, str]
    sessions: dict[str, str | None] = field(default_factory=dict[str, str | None])
    seen: list[Seen] = field(default_factory=list[Seen])
    ended: list[str] = field(default_factory=list[str])
    pace: random.Random = field(default_factory=lambda: random.Random(7))

    def forget_sessions(self) -> None:
        """What a restart does."""
        self.sessions.clear()

    def expire_tokens(self) -> None:
        """What an hour does: the sessions stay, and know nobody."""
        self.sessions.update(dict.fromkeys(self.sessions))

    def called(self, tool: str) -> int:
        return sum(seen.tool == tool for seen in self.seen)

    async def post(self, request: Request) -> Response:
        frame = await request.json()
        if frame["method"] == "initialize":
            return self._initialized(frame)
        session = request.headers.get(SESSION, "")
        if session not in self.sessions:
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": NO_SESSION}, 400)
        if "id" not in frame:
            return Response(status_code=202)
        told = await self._answer(frame, session, request.headers)
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], **told})

    async def delete(self, request: Request) -> Response:
        session = request.headers.get(SESSION, "")
        self.ended.append(session)
        return Response(status_code=200 if self.sessions.pop(session, "") != "" else 400)

    def _initialized(self, frame: Mapping[str, Any]) -> Response:
        session = secrets.token_hex(8)
        self.sessions[session] = None
        result: dict[str, Any] = {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "token-server", "version": "1"},
        }
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": result}, headers={SESSION: session})

    async def _answer(self, frame: Mapping[str, Any], session: str, headers: Mapping[str, str]) -> dict[str, Any]:
        if frame["method"] == "tools/list":
            return {"result": {"tools": [_listed(name) for name in (*AUTH_TOOLS, "whose")]}}
        params = frame["params"]
        self.seen.append(Seen(params["name"], session, dict(headers)))
        await anyio.sleep(self.pace.uniform(0, SLOWEST_SECONDS))
        if params["name"] == "set_access_token":
            self.sessions[session] = params["arguments"]["access_token"]
            return _said("令牌已设置")
        user = self.users.get(self.sessions.get(session) or "")
        return _said(user) if user else {"error": NOT_AUTHENTICATED}


@contextmanager
def open_token_server(users: Mapping[str, str]) -> Generator[TokenServer]:
    """Run the server, until the end of the block."""
    server = TokenServer("", users)
    routes: Sequence[Route] = [
        Route("/api/mcp", server.post, methods=["POST"]),
        Route("/api/mcp", server.delete, methods=["DELETE"]),
    ]
    with serve(Starlette(routes=routes)) as address:
        server.url = f"{address}/api/mcp"
        yield server


def _listed(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"{name}?", "inputSchema": {"type": "object", "properties": {}}}


def _said(text: str) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}]}}
