"""Frames by WebSocket: each is one text message."""

from starlette.websockets import WebSocket, WebSocketDisconnect

from frontdesk.surfaces.acp.wire.model import Gone


class WebSocketCarrier:
    """A `Carrier` over one accepted socket; the server has bounded how long a message may be."""

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
            # Starlette says in either way that the socket is closed.
            raise Gone("The editor has left") from error

    async def close(self) -> None:
        """Every message was handed over as it was sent."""
