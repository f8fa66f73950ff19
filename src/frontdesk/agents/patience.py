"""How long somebody who only looks waits for the agents' host."""

from collections.abc import Awaitable
from typing import TypeVar

import anyio

from frontdesk.errors import Unavailable

T = TypeVar("T")
# It is asked for names mostly; one that takes longer keeps nobody from all the rest.
LOOK_SECONDS = 3
SILENT = f"The agents' host has not answered within {LOOK_SECONDS} s; what it knows is missing until it does"


async def in_time(asked: Awaitable[T]) -> T:
    """What the host says, or `Unavailable` where it takes too long."""
    with anyio.move_on_after(LOOK_SECONDS):
        return await asked
    raise Unavailable(SILENT)
