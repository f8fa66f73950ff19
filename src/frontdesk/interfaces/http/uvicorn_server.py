"""Serves an ASGI application on a socket, with limits on request heads and a graceful stop."""

import asyncio
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk.app import App, running
from frontdesk.errors import ConfigurationError
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.settings import Settings

DRAIN_SECONDS = 10
BACKLOG = 2048
HEAD_SECONDS = 20
HEAD_BYTES = 64 * 1024
SOCKET_BYTES = 64 * 1024 * 1024


async def serve_app(app: App, listener: socket.socket, asgi: ASGIApp, *, sockets: bool = False) -> None:
    """Run the background tasks and serve until a signal, then finish open requests. `sockets`: WebSockets too."""
    async with running(app):
        await serve_until_stopped(UvicornServer(uvicorn_config(asgi, sockets=sockets)), listener)


async def serve_until_stopped(server: "UvicornServer", listener: socket.socket) -> None:
    """Serve an application without background tasks until a signal."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, server)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


def uvicorn_config(
    asgi: ASGIApp, *, sockets: bool = False, http: type[HttpToolsProtocol] | None = None
) -> uvicorn.Config:
    """The configuration of uvicorn for an application."""
    return uvicorn.Config(
        asgi,
        http=http or BoundedHeadProtocol,
        ws="websockets-sansio" if sockets else "none",
        ws_max_size=SOCKET_BYTES,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        # The authentication middleware evaluates the headers of proxies.
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def open_listener(settings: Settings) -> socket.socket:
    """The listening socket of the settings. Raises `ConfigurationError` if the address is not available."""
    return open_listener_at(
        settings.host, settings.port, "choose another (FRONTDESK_HOST, --host) or port (FRONTDESK_PORT, --port)"
    )


def open_listener_at(host: str, port: int, otherwise: str) -> socket.socket:
    """A listening socket. `otherwise` is the advice in the error if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The explicit protocol lets asyncio turn off Nagle's algorithm, which delays every answer by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise ConfigurationError(f"Cannot listen on {host}:{port} ({reason}); {otherwise}") from error
    return listener


class UvicornServer(uvicorn.Server):
    """Uvicorn without its signal handling, which raises signals again after it stopped and so ends us too early."""

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


class BoundedHeadProtocol(HttpToolsProtocol):
    """Limits the head of a request to 64 KiB and 20 s. Uvicorn's fast parser has no such limits."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_in()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.close()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    @override
    def on_headers_complete(self) -> None:
        self._head_is_in()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _head_is_in(self) -> None:
        self._in_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def _stop_on_signal(server: UvicornServer) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for received in signals:
            # Uvicorn's own handler also ends open streams. A second Ctrl-C stops immediately.
            server.handle_exit(received, None)
