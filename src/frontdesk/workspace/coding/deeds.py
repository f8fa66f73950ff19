"""Lets a deed be seen, and gets leave for it."""

from frontdesk.errors import Denied
from frontdesk.workspace.coding.model import Bench
from frontdesk.workspace.permissions.model import Deed

REFUSED = "This was refused; ask the person what to do instead"


async def get_leave(bench: Bench, deed: Deed) -> None:
    """Returns when the deed may be done; `Denied` says in words for the model why it may not."""
    for shown in (*deed.places, *deed.diffs):
        await bench.show(deed.call_id, shown)
    word = await bench.leave(deed)
    if not word.allowed:
        raise Denied(word.reason or REFUSED)
