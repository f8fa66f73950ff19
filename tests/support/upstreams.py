"""MCP servers for tests: with every kind of answer, with tokens in sessions, and one that repeats its input."""

import asyncio
import base64
import json
import random
import secrets
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.serving import serve
from tests.support.waiting import until

# An MCP server as the gateway sees it: over streamable HTTP and over SSE, with a token endpoint beside it


SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = ("echo", "who", "big", "picture", "figures", "fails", "steps", "hold", "headers")

Frame = dict[str, Any]


@dataclass(slots=True)
class Upstream:
    """`down`: every call is HTTP 503. `guarded`: accepts only tokens of its own endpoint. `elsewhere`: the address for
    requests that its stream gives instead of its own.
    """

    url: str = ""
    down: bool = False
    guarded: bool = False
    elsewhere: str | None = None
    calls: list[Frame] = field(default_factory=list[Frame])
    notes: list[Frame] = field(default_factory=list[Frame])
    held: int = 0
    left: int = 0
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    logins: list[str] = field(default_factory=list[str])
    issued: dict[str, str] = field(default_factory=dict[str, str])
    expires_in: int | None = 3600
    refusal: tuple[int, dict[str, str]] | None = None
    streams: "dict[str, asyncio.Queue[Frame | None]]" = field(default_factory=dict)
    waiting: set[asyncio.Task[None]] = field(default_factory=set)

    async def token(self, request: Request) -> Response:
        """Tokens that name their subject, or the client itself."""
        form = dict(parse_qsl((await request.body()).decode()))
        self.forms.append(form)
        self.logins.append(base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode())
        await asyncio.sleep(0.01)
        if self.refusal is not None:
            return JSONResponse(self.refusal[1], self.refusal[0])
        made = f"issued-{secrets.token_hex(8)}"
        self.issued[made] = form.get("subject_token", "desk").removeprefix("token-of-")
        lifetime = {} if self.expires_in is None else {"expires_in": self.expires_in}
        return JSONResponse({"access_token": made, "token_type": "Bearer", **lifetime})

    async def post(self, request: Request) -> Response:
        frame = await request.json()
        if self._refused(request):
            return Response(status_code=401)
        if "id" not in frame or "method" not in frame:
            self.notes.append(frame)
            return Response(status_code=202)
        if frame["method"] == "tools/call":
            if self.down:
                return Response("down", 503)
            if frame["params"]["name"] in ("steps", "hold"):
                return StreamingResponse(self._told(frame), media_type="text/event-stream")
        return JSONResponse(self._answer(frame, request))

    async def listen(self, request: Request) -> Response:
        if self._refused(request):
            return Response(status_code=401)
        session = secrets.token_hex(8)
        self.streams[session] = asyncio.Queue()
        return StreamingResponse(self._stream(session), media_type="text/event-stream")

    async def message(self, request: Request) -> Response:
        frame, queue = await request.json(), self.streams.get(request.query_params.get("session", ""))
        if queue is None:
            return Response("no such session", 404)
        if self._refused(request):
            return Response(status_code=401)
        if "id" not in frame or "method" not in frame:
            self.notes.append(frame)
        elif frame["method"] == "tools/call" and frame["params"]["name"] in ("steps", "hold"):
            task = asyncio.get_running_loop().create_task(self._tell(frame, queue))
            self.waiting.add(task)
            task.add_done_callback(self.waiting.discard)
        else:
            queue.put_nowait(self._answer(frame, request))
        return Response(status_code=202)

    def end_streams(self) -> None:
        """Disconnects listeners as a restart does; call it from the server's own thread, by a request to /end."""
        for queue in self.streams.values():
            queue.put_nowait(None)
        self.streams.clear()

    async def end(self, _request: Request) -> Response:
        self.end_streams()
        return Response()

    async def _stream(self, session: str) -> AsyncGenerator[bytes]:
        queue = self.streams[session]
        yield f"event: endpoint\ndata: {self.elsewhere or f'/messages?session={session}'}\n\n".encode()
        yield b": comment\n\nevent: message\ndata: no frame\n\n"
        while (frame := await queue.get()) is not None:
            yield f"event: message\ndata: {json.dumps(frame)}\n\n".encode()

    async def _tell(self, frame: Frame, queue: "asyncio.Queue[Frame | None]") -> None:
        async for told in self._frames(frame):
            queue.put_nowait(told)

    async def _told(self, frame: Frame) -> AsyncGenerator[bytes]:
        async for told in self._frames(frame):
            yield f"event: message\ndata: {json.dumps(told)}\n\n".encode()

    async def _frames(self, frame: Frame) -> AsyncGenerator[Frame]:
        self.calls.append(frame)
        if frame["params"]["name"] == "steps":
            token = frame["params"].get("_meta", {}).get("progressToken")
            for done in range(1, frame["params"]["arguments"].get("steps", 3) + 1):
                await asyncio.sleep(frame["params"]["arguments"].get("pace", 0))
                told = {"progressToken": token, "progress": done, "message": f"step {done}"}
                yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
            yield _result(frame, _text("done"))
            return
        self.held += 1
        try:
            await until(lambda: any(note.get("params", {}).get("requestId") == frame["id"] for note in self.notes))
        finally:
            self.left += 1

    def _answer(self, frame: Frame, request: Request) -> Frame:
        match frame["method"]:
            case "initialize":
                about: Frame = {"capabilities": {"tools": {}}, "serverInfo": {"name": "upstream", "version": "1"}}
                return _result(frame, {"protocolVersion": frame["params"]["protocolVersion"], **about})
            case "tools/list":
                return _result(frame, {"tools": [{"name": name, "inputSchema": SCHEMA} for name in TOOLS]})
            case _:
                self.calls.append(frame)
                return self._called(frame, request)

    def _called(self, frame: Frame, request: Request) -> Frame:
        size = frame["params"].get("arguments", {}).get("size", 0)
        image = {"type": "image", "mimeType": "image/png", "data": "A" * size}
        results: dict[str, Frame] = {
            "echo": _text(json.dumps(frame["params"].get("arguments", {}))),
            "who": _text(self.issued.get(_bearer(request), "nobody")),
            "headers": _text(json.dumps(dict(request.headers))),
            "big": _text("ü" * size),
            "picture": {"content": [image, {"type": "text", "text": "a picture"}]},
            "figures": {**_text("many"), "structuredContent": {"figures": [1] * size}},
            "fails": {**_text(f"no such city; {request.headers.get('authorization')}"), "isError": True},
        }
        name = frame["params"]["name"]
        if name in results:
            return _result(frame, results[name])
        return {"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32602, "message": f"No tool {name}"}}

    def _refused(self, request: Request) -> bool:
        return self.guarded and _bearer(request) not in self.issued


@contextmanager
def open_upstream() -> Generator[Upstream]:
    """Run the server, until the end of the block; its MCP endpoints are /mcp and /sse, its tokens are at /token."""
    upstream = Upstream()
    routes = [
        Route("/mcp", upstream.post, methods=["POST"]),
        Route("/sse", upstream.listen, methods=["GET"]),
        Route("/messages", upstream.message, methods=["POST"]),
        Route("/token", upstream.token, methods=["POST"]),
        Route("/end", upstream.end, methods=["POST"]),
    ]
    with serve(Starlette(routes=routes)) as address:
        upstream.url = address
        yield upstream


def _bearer(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _text(text: str) -> Frame:
    return {"content": [{"type": "text", "text": text}]}


def _result(frame: Frame, result: Frame) -> Frame:
    return {"jsonrpc": "2.0", "id": frame["id"], "result": result}


# An MCP server that keeps the access token in its session, as zmemory-mcp does, on a free loopback port


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
    """One received tool call."""

    tool: str
    session: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class TokenServer:
    """`users` has the user of each token; `whose` answers with the user of the session's token."""

    url: str
    users: Mapping[str, str]
    sessions: dict[str, str | None] = field(default_factory=dict[str, str | None])
    seen: list[Seen] = field(default_factory=list[Seen])
    ended: list[str] = field(default_factory=list[str])
    pace: random.Random = field(default_factory=lambda: random.Random(7))

    def forget_sessions(self) -> None:
        """Forgets all sessions, as a restart does."""
        self.sessions.clear()

    def expire_tokens(self) -> None:
        """Forgets the users, as after an hour: the sessions stay without a token."""
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


# A tool server that repeats the received headers, wherever a server can send text of its own


PARROT_TOOLS = ("fails", "fails_at_length", "fails_in_figures", "asks_back", "is_refused")
# The text before the headers in a long answer.
FILLING = "x" * 900


@dataclass(slots=True)
class Parrot:
    """Each of its tools fails in a different way; with `lists` and `greets` off, listing and handshake fail too."""

    url: str = ""
    lists: bool = True
    greets: bool = True

    async def post(self, request: Request) -> Response:
        frame = await request.json()
        if "id" not in frame:
            return Response(status_code=202)
        answer = self._answer(frame, json.dumps(dict(request.headers)))
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], **answer})

    def _answer(self, frame: Mapping[str, Any], shown: str) -> dict[str, Any]:
        match frame["method"]:
            case "initialize":
                version = "2025-06-18" if self.greets else shown
                return {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "parrot"}}}
            case "tools/list" if self.lists:
                return {
                    "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in PARROT_TOOLS]}
                }
            case "tools/call" if (name := frame["params"]["name"]) != "is_refused":
                return {"result": _failed(name, shown)}
            case _:
                return {"error": {"code": -32000, "message": f"not with {shown}"}}


def _failed(tool: str, shown: str) -> dict[str, Any]:
    text = {"type": "text", "text": f"not with {shown}"}
    results: dict[str, dict[str, Any]] = {
        "fails": {"isError": True, "content": [text]},
        "fails_at_length": {"isError": True, "content": [{**text, "text": FILLING + shown}] * 20},
        "fails_in_figures": {"isError": True, "content": [], "structuredContent": {"seen": [{shown: shown}]}},
        "asks_back": {"resultType": shown, "content": []},
    }
    return results[tool]


@contextmanager
def open_parrot() -> Generator[Parrot]:
    parrot = Parrot()
    with serve(Starlette(routes=[Route("/mcp", parrot.post, methods=["POST"])])) as address:
        parrot.url = f"{address}/mcp"
        yield parrot
