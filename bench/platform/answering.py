"""`python -m bench.platform.answering`: a platform that does next to nothing, so that only the client is measured."""

import asyncio
import json
import re

SERVERS = [{"mcpServerName": f"mcp_Server{number}", "url": f"https://example.com/{number}"} for number in range(5)]
BODY = json.dumps({"mcpServers": SERVERS}).encode()
HEAD = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n".encode()
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Answering(asyncio.Protocol):
    """Answers every request on a connection with the same servers."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._heard = b""

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while b"\r\n\r\n" in self._heard:
            head, _, rest = self._heard.partition(b"\r\n\r\n")
            said = LENGTH.search(head)
            size = int(said[1]) if said else 0
            if len(rest) < size:
                return
            self._heard = rest[size:]
            assert isinstance(self._transport, asyncio.Transport)
            self._transport.write(HEAD + BODY)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
