"""A model server on a loopback port that does what the last user message tells it to, for tests and benchmarks."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from tests.support.models.application import Application
from tests.support.models.exchange import Severable
from tests.support.models.record import ModelServer, Seen

__all__ = ["ModelServer", "Seen", "listen", "open_models", "serving"]

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 60
STOP_SECONDS = 10


@contextmanager
def open_models(key: str | None = None) -> Generator[ModelServer]:
    """Run a server in a thread of this process until the end of the block; with a key, it asks for that."""
    listener, models = listen(0)
    server = serving(models, key)
    thread = threading.Thread(target=server.run, args=([listener],), name="models", daemon=True)
    thread.start()
    try:
        yield models
    finally:
        server.should_exit = True
        thread.join(STOP_SECONDS)
        listener.close()
        assert not thread.is_alive(), "the model server did not stop"


def listen(port: int) -> tuple[socket.socket, ModelServer]:
    """A socket that takes connections from now on, and the server that is to serve them."""
    # The protocol by name: without it asyncio leaves Nagle's algorithm on, and every answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    return listener, ModelServer(f"http://127.0.0.1:{listener.getsockname()[1]}")


def serving(models: ModelServer, key: str | None) -> uvicorn.Server:
    config = uvicorn.Config(
        Application(models, key),
        http=Severable,
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
