"""A model server on a loopback port that follows the last user message, for tests and benchmarks."""

import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from tests.support.models.application import Application, ModelServer, Seen, Severable
from tests.support.serving import address_of, run_aside
from tests.support.serving import listen as listening

__all__ = ["ModelServer", "Seen", "listen", "open_models", "serving"]

KEEP_ALIVE_SECONDS = 60


@contextmanager
def open_models(key: str | None = None) -> Generator[ModelServer]:
    """Run a server in a thread of this process until the end of the block; with a key, it requires that key."""
    listener, models = listen(0)
    with run_aside(serving(models, key), listener):
        yield models


def listen(port: int) -> tuple[socket.socket, ModelServer]:
    """A socket that accepts connections from now on, and the server for it."""
    listener = listening(port)
    return listener, ModelServer(address_of(listener))


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
