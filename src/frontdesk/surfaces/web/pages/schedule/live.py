"""Tells open pages that a schedule or its runs have changed."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import anyio

from frontdesk.errors import FrontdeskError
from frontdesk.schedule.asked import PastWanted
from frontdesk.schedule.model import Past, Schedule
from frontdesk.surfaces.web.model import Asked

EVERY_SECONDS = 1.0
RUNS = 10


async def all_of_them(asked: Asked) -> AsyncGenerator[Mapping[str, Any]]:
    async def look() -> str:
        return await asked.app.schedules.overview.mark(asked.caller)

    async for told in _changes(asked, look):
        yield told


async def one(asked: Asked) -> AsyncGenerator[Mapping[str, Any]]:
    async def look() -> str:
        looking = asked.app.schedules.looking
        found = await looking.get(asked.caller, asked.at["id"])
        return mark(found, (await looking.history(asked.caller, PastWanted(found.id, limit=RUNS))).runs)

    async for told in _changes(asked, look):
        yield told


def mark(found: Schedule, runs: Sequence[Past]) -> str:
    """A word that is another one once anything of it has changed."""
    seen = [(run.id, run.standing, run.attempt, run.forwarded) for run in runs]
    return f"{crc32(repr((found.state, found.updated_us, found.fired, found.fire_us, seen)).encode()):08x}"


async def _changes(asked: Asked, look: Callable[[], Awaitable[str]]) -> AsyncGenerator[Mapping[str, Any]]:
    """An event for every change since what the page shows, which it names in its address."""
    seen = asked.query.get("seen", "")
    while True:
        try:
            found = await look()
        except FrontdeskError:
            # The database is away, or the schedule is gone; the page itself says which, when it is loaded again.
            found = seen
        if found != seen:
            seen = found
            yield {"mark": found}
        await anyio.sleep(EVERY_SECONDS)
