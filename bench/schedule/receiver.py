"""Receives prompts: accepts each immediately, and remembers the arrivals until `GET /` fetches them."""

import asyncio
import json
import sys
from array import array
from typing import cast

import uvloop
from typing_extensions import override

from bench.schedule.due import now_us

TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"
LENGTH = b"\r\nContent-Length: "
END = b"\r\n\r\n"


class Arrivals:
    """The arrivals: delivery ids, when each was due and when it arrived."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.ids: list[str] = []
        self.due_us = array("q")
        self.at_us = array("q")

    def add(self, path: bytes) -> None:
        self.at_us.append(now_us())
        _, delivery, due_us = path.split(b"/")
        self.ids.append(delivery.decode())
        self.due_us.append(int(due_us))

    def document(self) -> bytes:
        return json.dumps({"ids": self.ids, "due_us": list(self.due_us), "at_us": list(self.at_us)}).encode()


class ReceiverProtocol(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._transport: asyncio.WriteTransport | None = None
        self._got = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._got = got = self._got + data
        head, found, body = got.partition(END)
        if not found:
            return
        method, path, _ = head.split(b" ", 2)
        if method == b"POST":
            if len(body) >= int(head.rpartition(LENGTH)[2]):
                self._got = b""
                self._arrivals.add(path)
                self._write(TAKEN)
            return
        self._got = b""
        self._tell(path)

    def _tell(self, path: bytes) -> None:
        if path == b"/count":
            told = str(len(self._arrivals.ids)).encode()
        else:
            told = self._arrivals.document()
            self._arrivals.forget()
        self._write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told))
        assert self._transport is not None
        self._transport.close()

    def _write(self, answer: bytes) -> None:
        assert self._transport is not None
        self._transport.write(answer)


async def serve() -> None:
    arrivals = Arrivals()
    server = await asyncio.get_running_loop().create_server(lambda: ReceiverProtocol(arrivals), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # It ends with the process that started it.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(serve())
