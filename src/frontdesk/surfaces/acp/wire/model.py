"""The words of the wire: a request that came, an error that goes back, and what carries frames."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
RATE_LIMITED = -32003
TOO_LONG = -32004
UNAVAILABLE = -32005
CANCELLED = -32800

Json = Mapping[str, Any]


class RpcError(Exception):
    """An answer that is an error: one line, and nothing of our insides."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = " ".join(message.split())
        self.data = data


class Gone(Exception):
    """The other side has left, or will not be asked any more."""


@dataclass(slots=True)
class Request:
    """A request under way. `on_cancel` is called when it is to be cancelled, in place of cutting its handler off.

    `afterwards` are done once the answer is on its way. `withdrawn`: whoever asked has said meanwhile, in another way,
    that it is not wanted any more.
    """

    id: int | str | None
    method: str
    params: Json
    on_cancel: Callable[[], None] | None = None
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])
    withdrawn: bool = False


# What a request comes to; raises `RpcError`.
Answer = Callable[[Request], Awaitable[Json]]
# Takes in a notification, at once and in order: it must not wait for anything.
Hear = Callable[[str, Json], None]


class Carrier(Protocol):
    """Moves frames, each the bytes of one JSON text without a line break."""

    async def receive(self) -> bytes | None:
        """The next frame; None at the end. One that is too long comes as `OVERLONG`."""
        ...

    async def send(self, frame: bytes) -> None:
        """Hand a frame over, in order; waits where the other side does not keep up. `Gone` where it has left."""
        ...

    async def close(self) -> None:
        """Let what was handed over go out, in bounded time."""
        ...


OVERLONG = b""
