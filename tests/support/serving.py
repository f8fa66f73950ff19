"""Serves an application on a loopback port in a thread of this process; imports nothing of the product."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn

BACKLOG = 2048
STOP_SECONDS = 10


@contextmanager
def serve(app: Any, listener: socket.socket | None = None) -> Generator[str]:
    """Run any ASGI application until the end of the block, on a free port by default; gives its address."""
    config = uvicorn.Config(app, access_log=False, log_config=None, ws="none", timeout_graceful_shutdown=1)
    listener = listener or listen()
    with run_aside(uvicorn.Server(config), listener):
        yield address_of(listener)


@contextmanager
def run_aside(server: uvicorn.Server, listener: socket.socket) -> Generator[None]:
    """Run a server in a thread until the end of the block."""
    thread = threading.Thread(target=server.run, args=([listener],), name="peer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(STOP_SECONDS)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"


def listen(port: int = 0) -> socket.socket:
    """A loopback socket that accepts connections from now on."""
    # The protocol by name: without it asyncio leaves Nagle's algorithm on, and every answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    return listener


def address_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"
