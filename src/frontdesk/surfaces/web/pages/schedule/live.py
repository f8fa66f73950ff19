"""Tells open pages that a schedule or its runs have changed."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import anyio

from frontdesk.errors import FrontdeskError
from frontdesk.schedule.asked import PastWanted
from frontdesk.surfaces.web.model import Asked
from frontdesk.surfaces.web.pages.schedule.choosing import choose, mark_of, mark_of_one

EVERY_SECONDS = 1.0
RUNS = 10


async def all_of_them(asked: Asked) -> AsyncGenerator[Mapping[str, Any]]:
    """Whenever the page of the list that the address asks for has changed."""

    async def look() -> str:
        return await mark_of(asked, await choose(asked))

    async for told in _changes(asked, look):
        yield told


async def one(asked: Asked) -> AsyncGenerator[Mapping[str, Any]]:
    async def look() -> str:
        looking = asked.app.schedules.looking
        found = await looking.get(asked.caller, asked.at["id"])
        return mark_of_one(found, (await looking.history(asked.caller, PastWanted(found.id, limit=RUNS))).runs)

    async for told in _changes(asked, look):
        yield told


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
