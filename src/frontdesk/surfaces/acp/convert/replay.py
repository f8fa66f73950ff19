"""A conversation's past, shown to an editor as if it happened again."""

from collections.abc import Callable, Mapping, Sequence

from frontdesk.agents.host import Said
from frontdesk.loop.events import Done, StopReason, UserMedia, UserText
from frontdesk.surfaces.acp.convert.screen import Screen

INTERRUPTED = "The turn ended before this did"


async def replay(said: Sequence[Said], screen_factory: Callable[[], Screen]) -> Mapping[str, str]:
    """Show everything in order, under the ids it had when it happened.

    Calls that never came to an end have failed. Those that wait for somebody's word still do; their ids, and those
    they are shown under, are for the `waiting` of the screen that goes on with them.
    """
    screen = screen_factory()
    screen.replaying = True
    for one in said:
        if one.turn_id != screen.turn_id and isinstance(one.event, UserText | UserMedia):
            await screen.give_up(INTERRUPTED)
        screen.begin(one.turn_id)
        await screen.show(one.event)
        if isinstance(one.event, Done) and one.event.stop is not StopReason.REQUIRES_APPROVAL:
            await screen.give_up(INTERRUPTED)
    await screen.give_up(INTERRUPTED, waiting=False)
    return screen.held()
