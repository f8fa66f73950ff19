"""What every session with a server can do, whichever way it is reached, and how each begins."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol, cast

from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.model import Broken, McpServer, RpcError

# (done, of how much, in words)
Progress = Callable[[float, float | None, str | None], Awaitable[None]]
NOTHING_SAID: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a request as it came, and the size of the frame it came in."""

    value: Mapping[str, Any]
    size: int


class Session(Protocol):
    """Sends requests, numbered from 1; `lost` once the server has forgotten it, or is gone."""

    server: McpServer
    version: str | None

    @property
    def lost(self) -> bool: ...

    @property
    def is_kept(self) -> bool:
        """Whether the server tells this session from others; without that it can keep nothing for us alone."""
        ...

    async def open(self) -> None: ...

    async def request(
        self,
        method: str,
        params: wire.Frame,
        said: Mapping[str, str] = NOTHING_SAID,
        progress: Progress | None = None,
    ) -> Result:
        """The result of a request; a JSON-RPC error, like everything else that may go wrong, is raised."""
        ...

    async def notify(self, method: str) -> None: ...

    async def close(self) -> None: ...


async def shake_hands(session: Session) -> None:
    """Agree on a revision; with a server that knows no handshake, make sure that it speaks the one without."""
    try:
        told = (await session.request("initialize", wire.HANDSHAKE)).value
    except (RpcError, Broken) as refused:
        if not _knows_no_handshake(refused):
            raise
        await _discover(session, refused)
        return
    version = told.get("protocolVersion")
    if version not in wire.HANDSHAKE_VERSIONS:
        raise Broken(f"{session.server} speaks MCP revision {version!r}, which Frontdesk does not know; update either")
    session.version = str(version)
    await session.notify("notifications/initialized")


def result_of(server: McpServer, frame: wire.Frame, size: int) -> Result:
    """What an answer holds; an error in it is raised."""
    if (error := wire.error_of(frame)) is not None:
        raise RpcError(*error)
    result: object = frame.get("result")
    if not isinstance(result, dict):
        raise Broken(f"{server} gives an answer without a result; report it to whoever runs it")
    return Result(cast("Mapping[str, Any]", result), size)


async def _discover(session: Session, refused: RpcError | Broken) -> None:
    session.version = wire.MODERN_VERSION
    try:
        told = (await session.request("server/discover", {})).value
    except (RpcError, Broken):
        raise refused from None
    supported: object = told.get("supportedVersions")
    if not isinstance(supported, list) or wire.MODERN_VERSION not in supported:
        raise refused


def _knows_no_handshake(refused: RpcError | Broken) -> bool:
    if isinstance(refused, RpcError):
        return refused.code in wire.NO_HANDSHAKE
    return refused.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
