"""Serves an ASGI application with the server settings of `frontdesk up`, for the servers that it is compared with."""

import socket
from typing import Any

import uvicorn

BACKLOG = 2048
CALLED = "echo"


def tool_names(count: int) -> list[str]:
    """This many names; the called tool is registered last, where a search from the front would cost most."""
    return [*(f"made_up_{number:04}" for number in range(1, count)), CALLED]


def serve(asgi: Any, *, lifespan: bool) -> None:  # noqa: ANN401 - uvicorn's own type for an application
    """Serve on a free port and print it, until killed."""
    # The protocol by name: without it asyncio leaves Nagle's algorithm on, and every answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    config = uvicorn.Config(
        asgi,
        http="httptools",
        loop="uvloop",
        lifespan="on" if lifespan else "off",
        access_log=False,
        log_config=None,
        server_header=False,
    )
    print(f"It is open: http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listener])
