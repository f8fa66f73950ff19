"""A program that echoes over standard input and output, and does what it can to write there something else."""

import asyncio
import os
import subprocess
import sys

from frontdesk.surfaces.acp.wire.model import Json, Request
from frontdesk.surfaces.acp.wire.peer import Peer
from frontdesk.surfaces.acp.wire.stdio import Stdio


def litter() -> Json:
    sys.stdout.write("litter\n")
    sys.stdout.flush()
    os.write(1, b"litter\n")
    subprocess.run(["sh", "-c", "echo litter; cat"], check=True, timeout=10)
    return {"read": sys.stdin.read()}


def spawn() -> Json:
    return {"pid": subprocess.Popen(["sleep", "60"], close_fds=False).pid}


async def answer(request: Request) -> Json:
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


async def main(carrier: Stdio) -> None:
    await Peer(carrier, answer, hear, bug).run()
    await carrier.close()


asyncio.run(main(Stdio.open()))
