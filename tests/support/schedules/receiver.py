"""`python -m tests.support.schedules.receiver PORT LOG CLOCK`: accepts deliveries, answers as configured, logs each."""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.schedules.clock import SharedClock

# How a receiver answers: as configured for the next deliveries of an agent, or at random from a seed


class How(StrEnum):
    """The treatment of one delivery. All except the refusals (error, busy, later, unknown) have their effect."""

    WELL = "well"
    ERROR = "error"
    BUSY = "busy"
    LATER = "later"
    UNKNOWN = "unknown"
    HANG = "hang"
    CUT = "cut"
    DROP = "drop"


REFUSALS = {How.ERROR: 500, How.BUSY: 409, How.LATER: 429, How.UNKNOWN: 404}
EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Manner:
    """One way to answer: how, after how many seconds, and with which retry time."""

    how: How = How.WELL
    seconds: float = 0
    retry_after: str = ""


@dataclass(slots=True)
class Manners:
    """The next answers for each agent; an agent without any gets successful ones."""

    queues: dict[str, deque[Manner]] = field(default_factory=dict[str, deque[Manner]])
    always: dict[str, Manner] = field(default_factory=dict[str, Manner])
    seed: int = 0
    slowest: float = 0
    shares: dict[How, float] = field(default_factory=dict[How, float])

    def tell(self, said: dict[str, Any]) -> None:
        """From now on: for an agent `next` in order and then `always`, or random answers: `shares` and `slowest`."""
        agent = said.get("agent", EVERYBODY)
        if "next" in said:
            self.queues[agent] = deque(_manner(one) for one in said["next"])
        if "always" in said:
            self.always[agent] = _manner(said["always"])
        if "shares" in said:
            self.seed, self.slowest = said["seed"], said["slowest"]
            self.shares = {How(how): share for how, share in said["shares"].items()}

    def choose(self, agent: str, delivery: str, fence: int) -> Manner:
        for name in (agent, EVERYBODY):
            if self.queues.get(name):
                return self.queues[name].popleft()
        for name in (agent, EVERYBODY):
            if name in self.always:
                return self.always[name]
        return self._chance(delivery, fence)

    def _chance(self, delivery: str, fence: int) -> Manner:
        """The same result for the same attempt at the same delivery, whatever else happens in between."""
        dice = random.Random(f"{self.seed} {delivery} {fence}")
        seconds, roll = dice.random() ** 2 * self.slowest, dice.random()
        for how, share in self.shares.items():
            roll -= share
            if roll < 0:
                return Manner(how, seconds)
        return Manner(How.WELL, seconds)


def _manner(said: dict[str, Any]) -> Manner:
    return Manner(How(said["how"]), said["seconds"], said["retry_after"])


# `python -m tests.support.schedules.receiver PORT LOG CLOCK`: accepts deliveries over HTTP and logs each.
#
# It writes a line when a delivery begins and one when it has had its effect (or was refused), before it sends the
# answer: the log is complete whatever happens to the sender.


HOPELESS = "HTTP/1.1 400 no\r\ncontent-length: 0\r\n\r\n"


class Receiver:
    """One server: its ways to answer, its log, and the held deliveries."""

    def __init__(self, log: Path, clock: SharedClock) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._clock = clock
        self._numbers = count(int.from_bytes(os.urandom(4)) << 20)
        self._manners = Manners()
        self._held: dict[str, asyncio.Event] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; gives whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:"))
        said: dict[str, Any] = json.loads(await reader.readexactly(length))
        match head.split(" ", 2)[1]:
            case "/manners":
                self._manners.tell(said)
                _answer(writer, 200, {})
            case "/release":
                self._held.setdefault(said["agent"], asyncio.Event()).set()
                _answer(writer, 200, {})
            case "/deliver":
                return await self._deliver(said, writer)
            case _:
                writer.write(HOPELESS.encode())
        return True

    async def _deliver(self, said: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        number, manner = next(self._numbers), self._manners.choose(said["agent"], said["id"], said["fence"])
        self._note("begin", number, **said)
        await asyncio.sleep(manner.seconds)
        if manner.how is How.HANG:
            await self._held.setdefault(said["agent"], asyncio.Event()).wait()
        self._note("end", number, how=manner.how)
        return _told(writer, manner, f"{said['id']}/{number}")

    def _note(self, event: str, number: int, **more: object) -> None:
        line = {"event": event, "number": number, "at_us": self._clock(), "ns": time.monotonic_ns(), **more}
        os.write(self._log, f"{json.dumps(line)}\n".encode())


def _told(writer: asyncio.StreamWriter, manner: Manner, answer: str) -> bool:
    """Answer in this way; gives whether the connection stays open."""
    if manner.how is How.DROP:
        return False
    if manner.how is How.CUT:
        writer.write(b'HTTP/1.1 200 .\r\ncontent-length: 1000\r\n\r\n{"answer": "half of')
        return False
    _answer(writer, REFUSALS.get(manner.how, 200), {"answer": answer}, manner.retry_after)
    return True


def _answer(writer: asyncio.StreamWriter, status: int, body: dict[str, str], retry_after: str = "") -> None:
    told = json.dumps(body)
    later = f"retry-after: {retry_after}\r\n" if retry_after else ""
    writer.write(f"HTTP/1.1 {status} .\r\n{later}content-length: {len(told)}\r\n\r\n{told}".encode())


async def main(port: str, log: str, clock: str) -> None:
    receiver = Receiver(Path(log), SharedClock(Path(clock)))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", int(port), backlog=1000)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.run(main(*sys.argv[1:]))
