"""Tells the pages of turns that something changed: what it is, they load themselves."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress

import anyio

from frontdesk.agents import retelling
from frontdesk.errors import NotFound, Unavailable
from frontdesk.surfaces.web.model import Asked
from frontdesk.surfaces.web.pages.turns.looking import SHOWN, wanted
from frontdesk.surfaces.web.pages.turns.marking import mark_of_list, mark_of_turn

# A turn may run in another process, so that nobody could tell us: we look.
LOOK_SECONDS = 1.0
# To look at a turn of another server's asks it four things.
ASK_SECONDS = 3.0


async def tell_every(asked: Asked) -> AsyncGenerator[Mapping[str, str]]:
    """Whenever the newest turns are no longer those that were seen."""
    query = wanted(asked).query(SHOWN + 1)
    seen = asked.query.get("seen", "")
    while True:
        with suppress(Unavailable):
            mark = mark_of_list(await asked.app.turns.list(query))
            if mark != seen:
                seen = mark
                yield {"seen": mark}
        await anyio.sleep(LOOK_SECONDS)


async def tell_one(asked: Asked) -> AsyncGenerator[Mapping[str, str]]:
    """Whenever something happened in a turn, until it is over."""
    app, turn_id = asked.app, asked.at["turn_id"]
    seen = asked.query.get("seen", "")
    pause = LOOK_SECONDS if app.host.traits.keeps_turns else ASK_SECONDS
    with suppress(NotFound):
        while True:
            with suppress(Unavailable):
                account = await retelling.account(app.host, app.turns, asked.caller, turn_id)
                if (mark := mark_of_turn(account)) != seen:
                    seen = mark
                    yield {"seen": mark}
                if not (account.turn.running or account.turn.waits):
                    # A stream that ends is opened again.
                    await anyio.sleep_forever()
            await anyio.sleep(pause)
