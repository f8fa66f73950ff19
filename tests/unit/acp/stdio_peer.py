"""A program that echoes over standard input and output, and tries in every way to write something else there."""

import asyncio
import os
import subprocess
import sys

from frontdesk.interfaces.acp.jsonrpc import Json, RpcPeer, RpcRequest
from frontdesk.interfaces.acp.stdio import StdioTransport


def litter() -> Json:
    sys.stdout.write("litter\n")
    sys.stdout.flush()
    os.write(1, b"litter\n")
    subprocess.run(["sh", "-c", "echo litter; cat"], check=True, timeout=10)
    return {"read": sys.stdin.read()}


def spawn() -> Json:
    return {"pid": subprocess.Popen(["sleep", "60"], close_fds=False).pid}


async def answer(request: RpcRequest) -> Json:
    match request.method:
        case "litter":
            return litter()
        case "spawn":
            return spawn()
        case _:
            return request.params


def hear(_method: str, _params: Json) -> None:
    return None


def bug(error: Exception) -> None:
    sys.stderr.write(f"bug: {error!r}\n")


async def main(carrier: StdioTransport) -> None:
    await RpcPeer(carrier, answer, hear, bug).run()
    await carrier.close()


asyncio.run(main(StdioTransport.open()))
