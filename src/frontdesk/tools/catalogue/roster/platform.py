"""What the platform names: asked now and then, and taken to go on while it does not answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio
import structlog

from frontdesk.errors import Unavailable
from frontdesk.tools.catalogue.servers import ServerSpec

# One that did not answer is asked again after this, at the latest.
RETRY = timedelta(seconds=60)

log = structlog.get_logger("frontdesk.tools.roster")


@dataclass(frozen=True, slots=True)
class Discovered:
    """The servers that can be reached, and in words what somebody should know of them and of those left out."""

    servers: Sequence[ServerSpec] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Platform:
    """`discover` asks it, or raises `Unavailable`; `recall` makes a server that it named before reachable without."""

    discover: Callable[[], Awaitable[Discovered]]
    recall: Callable[[ServerSpec], ServerSpec | None]


class OfPlatform:
    """What it said last; `waiting` until it has said anything."""

    def __init__(self, platform: Platform | None, every: timedelta) -> None:
        self._platform = platform
        self._every = every
        self._asked_at: datetime | None = None
        self._failed = False
        self._asking = anyio.Lock()
        self.servers: Sequence[ServerSpec] = ()
        self.waiting = platform is not None
        self.trouble = ""

    async def ask(self, now: datetime) -> bool:
        """Ask it, if it is time to; whether it answered."""
        if self._platform is None:
            return False
        async with self._asking:
            return await self._asked(self._platform, now) if self._due(now) else False

    def recall(self, spec: ServerSpec) -> ServerSpec | None:
        """A server that it named when it last answered some replica, while it has not answered this one."""
        return self._platform.recall(spec) if self._platform is not None and self.waiting else None

    def _due(self, now: datetime) -> bool:
        pause = min(RETRY, self._every) if self._failed else self._every
        return self._asked_at is None or not timedelta() <= now - self._asked_at < pause

    async def _asked(self, platform: Platform, now: datetime) -> bool:
        self._asked_at = now
        try:
            found = await platform.discover()
        except Unavailable as error:
            self._failed = True
            if self._told(str(error)):
                log.warning("platform_not_asked", error=str(error))
            return False
        self._failed, self.waiting, self.servers = False, False, found.servers
        if self._told("; ".join(found.notes)):
            log.warning("platform_servers_wait", notes=list(found.notes))
        return True

    def _told(self, trouble: str) -> bool:
        """Note what is wrong; whether that is news, and not good."""
        news, self.trouble = trouble != self.trouble, trouble
        return news and bool(trouble)
