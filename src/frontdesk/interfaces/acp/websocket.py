"""Serves editors on other machines by WebSocket; each request checks the editor's key again."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.errors import Denied, Invalid, Unauthenticated, Unavailable
from frontdesk.identity.inbound import trace_refusal
from frontdesk.identity.model import Caller, Signals
from frontdesk.interfaces import logs
from frontdesk.interfaces.acp.connection import EditorConnection
from frontdesk.interfaces.acp.editor import Editor
from frontdesk.interfaces.acp.handshake import AcpServer, EditorCapabilities, agent_capabilities
from frontdesk.interfaces.acp.jsonrpc import ConnectionClosed, RpcPeer
from frontdesk.interfaces.acp.session import INTERFACE_NAME
from frontdesk.interfaces.app_runner import run_with_app
from frontdesk.interfaces.http.context import ensure_request_id, parse_headers
from frontdesk.interfaces.http.middleware import HostOriginPolicy, presented_credential
from frontdesk.interfaces.http.uvicorn_server import open_listener, serve_app
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord
from frontdesk.settings import Settings


class WebSocketTransport:
    """A `FrameTransport` over one accepted socket; the server limits the length of a message."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> bytes | None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            text = message.get("text")
            data = text.encode(errors="replace") if text is not None else message.get("bytes")
            if data:
                return data

    async def send(self, frame: bytes) -> None:
        try:
            await self._socket.send_text(frame.decode())
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            # Starlette raises any of these for a closed socket.
            raise ConnectionClosed("The editor has left") from error

    async def close(self) -> None:
        """Nothing to do: every message was sent at once."""


ACP_PATH = "/acp"
NO_KEY_MESSAGE = "Send a key of Frontdesk: Authorization: Bearer KEY (frontdesk keys create --user USER makes one)"

log = structlog.get_logger("frontdesk.acp")


def serve_websocket(place: str, agent: str | None, root: Path | None) -> None:
    """Serve until stopped. Files and commands are the editor's, or those of this machine where `root` is given."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise Invalid("--listen takes HOST:PORT, e.g. 127.0.0.1:3021")
    if root is not None and not root.is_dir():
        raise Invalid(f"--root needs an existing folder; there is no {root}")
    settings = Settings.read().with_values(host=host.strip("[]"), port=int(port))
    logs.configure_logs(settings)
    listener = open_listener(settings)
    settings = settings.with_values(port=listener.getsockname()[1])

    async def serve(app: App) -> None:
        await app.check_exposure()
        address = base_url(settings).replace("http", "ws", 1) + ACP_PATH
        sys.stderr.write(f"Frontdesk {__version__} is open to editors: {address}  (Ctrl-C closes it)\n")
        sys.stderr.flush()
        await serve_app(app, listener, WebSocketEndpoint(app, agent, root).asgi(), sockets=True)

    run_with_app(serve, settings, fast=True)


@dataclass(frozen=True, slots=True)
class WebSocketEndpoint:
    """Accepts editors that prove who they are; never a page of another origin."""

    app: App
    agent: str | None = None
    root: Path | None = None

    def asgi(self) -> Starlette:
        return Starlette(routes=[WebSocketRoute(ACP_PATH, self.accept)])

    async def accept(self, socket: WebSocket) -> None:
        headers = parse_headers(socket.scope["headers"])
        # Only a refusal is written here: each request of an accepted editor has a row of its own.
        record = CallRecord(
            self.app.journal, INTERFACE_NAME, ACP_PATH, Caller(ensure_request_id(headers.get("x-request-id")))
        )
        text = presented_credential(headers)
        record.add_trace(trace_refusal(Signals(record.caller.request_id, headers.get("x-agent-id")), text))
        refusal = HostOriginPolicy.from_settings(self.app.settings).check(headers)
        if refusal is not None:
            record.outcome, record.reason = Outcome.DENIED, refusal.code
            record.write()
            await socket.send_denial_response(JSONResponse({"error": refusal.code}, refusal.status))
            return
        try:
            await self._identify(text, headers.get("x-agent-id"))
        except (Unauthenticated, Denied, Unavailable) as error:
            record.fail(error)
            record.write()
            status = 503 if isinstance(error, Unavailable) else 401 if isinstance(error, Unauthenticated) else 403
            body = {"error": "unauthorized", "error_description": error.public_message}
            await socket.send_denial_response(JSONResponse(body, status, {"www-authenticate": "Bearer"}))
            return
        await socket.accept()
        await AcpServer(
            WebSocketTransport(socket), agent_capabilities(self.app.settings), self._opening(text), _log_error
        ).run()

    def _opening(self, text: str | None):  # noqa: ANN202 - the type is `OpenConnection`
        async def who() -> Caller:
            return await self._identify(text)

        @asynccontextmanager
        async def opening(peer: RpcPeer, can: EditorCapabilities) -> AsyncGenerator[EditorConnection]:
            editor = Editor(peer, can, local=self.root is not None, root=self.root)
            async with EditorConnection.open(self.app, editor, who, self.agent) as connection:
                yield connection

        return opening

    async def _identify(self, text: str | None, named: str | None = None) -> Caller:
        """Identify the caller again, since the key may have been revoked; `named` is for the journal."""
        if not text:
            raise Unauthenticated(NO_KEY_MESSAGE)
        credential = await self.app.identity.authenticate(text)
        signals = Signals(ensure_request_id(None), named, credential=credential)
        if credential.user_id is None:
            refused = Denied("This key is not for a person, and an editor needs one that is; make one with --user")
            refused.trace = trace_refusal(signals)
            raise refused
        return await self.app.identity.identify(replace(signals, header=None))


def _log_error(error: Exception) -> None:
    log.error("acp_request_failed", exc_info=error)
