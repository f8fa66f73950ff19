"""Hangs up without an answer, which ASGI has no word for: the connection itself is let go."""

from collections.abc import Callable

from typing_extensions import override

from frontdesk.surfaces.gate import Receive, Send
from frontdesk.surfaces.serving import BoundedHead
from frontdesk.surfaces.visit import Scope

HANG_UP = "frontdesk.hang_up"


class Loose(BoundedHead):
    """Lets a request end its own connection."""

    @override
    def on_headers_complete(self) -> None:
        extensions: dict[str, dict[object, object]] = {HANG_UP: {"now": self.transport.abort}}
        self.scope["extensions"] = extensions
        super().on_headers_complete()


async def hang_up(scope: Scope, receive: Receive, _send: Send) -> None:
    """An ASGI application that says nothing."""
    now: Callable[[], None] = scope["extensions"][HANG_UP]["now"]
    now()
    # Until the server knows too, or it would still try to answer.
    while (await receive())["type"] != "http.disconnect":
        pass
