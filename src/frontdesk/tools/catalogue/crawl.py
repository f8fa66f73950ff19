"""Asks many servers for their tools at once: each in bounded time, none waiting for another that is dead."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import anyio
import structlog

from frontdesk.errors import FrontdeskError
from frontdesk.loop.mcp.model import ToolListing
from frontdesk.tools.catalogue.sifting import clean

AT_ONCE = 16
SECONDS = 30.0
LONGEST_REASON = 500

log = structlog.get_logger("frontdesk.tools.crawl")


class Stage(StrEnum):
    """How far a server's crawl is; one that another replica asks, or has just asked, is left to it."""

    STARTED = "started"
    LISTED = "listed"
    FAILED = "failed"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Step:
    """One server's progress: how many tools it listed and what became of them, or why it did not."""

    server: str
    stage: Stage
    tools: int = 0
    told: str = ""


Told = Callable[[Step], None]
Claim = Callable[[str], Awaitable[bool]]
Ask = Callable[[str], Awaitable[ToolListing]]
Take = Callable[[str, ToolListing], Awaitable[str]]
Fail = Callable[[str, str], Awaitable[None]]


def silent(_step: Step) -> None:
    """For those who do not want to hear of it."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """`ask` gets a server's listing, `take` keeps it and says what it changed, `fail` notes why there is none."""

    claim: Claim
    ask: Ask
    take: Take
    fail: Fail
    seconds: float = SECONDS
    at_once: int = AT_ONCE

    async def run(self, servers: Sequence[str], told: Told = silent) -> Sequence[Step]:
        """Ask these, the first ones first; each is done with as soon as it answers. How each ended, in that order."""
        room = anyio.CapacityLimiter(self.at_once)
        ends: list[Step] = []

        async def one(server: str) -> None:
            async with room:
                ends.append(await self._one(server, told))
            told(ends[-1])

        async with anyio.create_task_group() as crawling:
            for server in servers:
                crawling.start_soon(one, server)
        return ends

    async def _one(self, server: str, told: Told) -> Step:
        try:
            if not await self.claim(server):
                return Step(server, Stage.LEFT, told="another replica asks it, or did a moment ago")
            told(Step(server, Stage.STARTED))
            with anyio.fail_after(self.seconds):
                found = await self.ask(server)
            return Step(server, Stage.LISTED, len(found.tools), await self.take(server, found))
        except TimeoutError:
            reason = public = f"it does not list its tools within {self.seconds:g} s"
        except FrontdeskError as error:
            reason, public = _line(str(error)), _line(error.public)
        except Exception as error:
            # Whatever a server sends, the others are asked all the same, and the trouble is seen.
            log.exception("crawl_failed", server=server)
            reason = public = f"its listing could not be taken in ({type(error).__name__})"
        log.warning("server_not_crawled", server=server, reason=reason)
        return await self._failed(server, reason, public)

    async def _failed(self, server: str, reason: str, public: str) -> Step:
        """Whoever asked hears the reason whole; what is noted down is for everybody's eyes."""
        try:
            await self.fail(server, public)
        except FrontdeskError as error:
            log.warning("failure_not_noted", server=server, error=str(error))
        return Step(server, Stage.FAILED, told=reason)


def _line(told: str) -> str:
    """What a server said, on one line: a terminal must not take a part of it for anything else."""
    return " ".join(clean(told).split())[:LONGEST_REASON]
