"""Serves editors elsewhere by WebSocket; each shows a key of this house, and is asked for it anew with each request."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.errors import Denied, Invalid, Unauthenticated, Unavailable
from frontdesk.identity.inbound import traced
from frontdesk.identity.model import Caller, Signals
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import Record
from frontdesk.settings import Settings
from frontdesk.surfaces import logs, serving
from frontdesk.surfaces.acp.doorstep import Doorstep as Porch
from frontdesk.surfaces.acp.editor.model import Editor
from frontdesk.surfaces.acp.greeting import Capabilities
from frontdesk.surfaces.acp.live.answering import SURFACE
from frontdesk.surfaces.acp.live.connection import Connection
from frontdesk.surfaces.acp.offer import offer_of
from frontdesk.surfaces.acp.websocket import WebSocketCarrier
from frontdesk.surfaces.acp.wire.peer import Peer
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.doorstep import Doorstep
from frontdesk.surfaces.gate import presented
from frontdesk.surfaces.visit import headers_said, request_id

PATH = "/acp"
NO_KEY = "Show a key of this house: Authorization: Bearer KEY (frontdesk keys create --user USER makes one)"

log = structlog.get_logger("frontdesk.acp")


def listen_at(place: str, agent: str | None, root: Path | None) -> None:
    """Serve until told to stop. Files and commands are those of the editor, or of `root` here where one is given."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise Invalid("--listen takes HOST:PORT, e.g. 127.0.0.1:3021")
    if root is not None and not root.is_dir():
        raise Invalid(f"--root names a folder that is there; {root} is not")
    settings = Settings.read().replaced(host=host.strip("[]"), port=int(port))
    logs.configure(settings)
    listener = serving.listen(settings)
    settings = settings.replaced(port=listener.getsockname()[1])

    async def serve(app: App) -> None:
        await app.check_exposure()
        address = base_url(settings).replace("http", "ws", 1) + PATH
        sys.stderr.write(f"Frontdesk {__version__} is open to editors: {address}  (Ctrl-C closes it)\n")
        sys.stderr.flush()
        await serving.serve(app, listener, Lobby(app, agent, root).asgi(), sockets=True)

    with_app(serve, settings, fast=True)


@dataclass(frozen=True, slots=True)
class Lobby:
    """Lets editors in who can prove who they are, a page of another origin never."""

    app: App
    agent: str | None = None
    root: Path | None = None

    def asgi(self) -> Starlette:
        return Starlette(routes=[WebSocketRoute(PATH, self.enter)])

    async def enter(self, socket: WebSocket) -> None:
        headers = headers_said(socket.scope["headers"])
        # Of those who are let in, each request has a row of its own.
        record = Record(self.app.journal, SURFACE, PATH, Caller(request_id(headers.get("x-request-id"))))
        text = presented(headers)
        record.trace(traced(Signals(record.caller.request_id, headers.get("x-agent-id")), text))
        turned = Doorstep.of(self.app.settings).turns_away(headers)
        if turned is not None:
            record.outcome, record.reason = Outcome.DENIED, turned.code
            record.write()
            await socket.send_denial_response(JSONResponse({"error": turned.code}, turned.status))
            return
        try:
            await self._known(text, headers.get("x-agent-id"))
        except (Unauthenticated, Denied, Unavailable) as error:
            record.ended_by(error)
            record.write()
            status = 503 if isinstance(error, Unavailable) else 401 if isinstance(error, Unauthenticated) else 403
            body = {"error": "unauthorized", "error_description": error.public}
            await socket.send_denial_response(JSONResponse(body, status, {"www-authenticate": "Bearer"}))
            return
        await socket.accept()
        await Porch(WebSocketCarrier(socket), offer_of(self.app.settings), self._opening(text), _bug).run()

    def _opening(self, text: str | None):  # noqa: ANN202 - the type is that of `Doorstep.open_connection`
        async def who() -> Caller:
            return await self._known(text)

        @asynccontextmanager
        async def opening(peer: Peer, can: Capabilities) -> AsyncGenerator[Connection]:
            editor = Editor(peer, can, local=self.root is not None, root=self.root)
            async with Connection.open(self.app, editor, who, self.agent) as connection:
                yield connection

        return opening

    async def _known(self, text: str | None, named: str | None = None) -> Caller:
        """Who shows this, now: a key may have been revoked since it was shown first. `named` is for the journal."""
        if not text:
            raise Unauthenticated(NO_KEY)
        credential = await self.app.identity.authenticate(text)
        signals = Signals(request_id(None), named, credential=credential)
        if credential.user_id is None:
            refused = Denied(
                "This key speaks for no person; an editor has somebody before it. Use one made with --user"
            )
            refused.trace = traced(signals)
            raise refused
        return await self.app.identity.identify(replace(signals, header=None))


def _bug(error: Exception) -> None:
    log.error("acp_request_failed", exc_info=error)
