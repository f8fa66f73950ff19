"""Opens the tools room for a command: directly on the database, whether a server runs or not.

Only errors are logged: what a server does not answer is said by the command itself.
"""

import sys
from collections.abc import Collection, Sequence
from typing import TypeVar

import anyio

from frontdesk.app import App
from frontdesk.errors import NotFound
from frontdesk.loop.text import not_there
from frontdesk.surfaces.cli.running import Use, with_app
from frontdesk.surfaces.cli.tools.progress import Told
from frontdesk.tools.catalogue.roster.model import ServerState, Status

T = TypeVar("T")
POLL_SECONDS = 0.2
NONE = "There are no tool servers yet. Add one: frontdesk tools add NAME URL"


def with_tools(use: Use[T]) -> T:
    """What `use` returns, once the catalogue is read."""

    async def opened(app: App) -> T:
        await app.tools.catalogue.load()
        try:
            return await use(app)
        finally:
            # No server writes these for us.
            await app.tools.learning.flush()
            await app.journal.flush()

    return with_app(opened, log_level="error")


def with_servers(use: Use[T]) -> T:
    """What `use` returns, once the servers are known; their tools are not read."""

    async def opened(app: App) -> T:
        await app.tools.catalogue.reach()
        return await use(app)

    return with_app(opened, log_level="error")


def states_of(app: App, names: Collection[str]) -> Sequence[ServerState]:
    """The servers of these names, or all of them where none is named."""
    states = {state.name: state for state in app.tools.catalogue.servers()}
    for name in names:
        if name not in states:
            raise NotFound(not_there(f"There is no tool server '{name}'", name, list(states)))
    return [state for name, state in states.items() if not names or name in names]


def no_tools(states: Sequence[ServerState]) -> str:
    """Why there is nothing to show of these servers, and what to do."""
    new = sum(state.status is Status.NEW for state in states)
    if new:
        return f"{new} server{' has' if new == 1 else 's have'} not been asked yet: frontdesk tools refresh"
    if any(state.tools for state in states):
        return "There are no such tools."
    return "No server has tools; how each is: frontdesk tools servers" if states else NONE


async def understand(app: App) -> None:
    """Have search by meaning at hand: tools that came in while no server ran are embedded now, and that is shown."""
    catalogue = app.tools.catalogue
    if app.settings.embeddings == "off" or not catalogue.index.missing_vectors():
        return
    with Told(sys.stderr) as told:
        told.done(f"reading what {len(catalogue.index.missing_vectors()):,} tools are for, which is done once")
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                while True:
                    so_far = catalogue.progress()
                    told.now(f"reading what tools are for: {so_far.embedded:,} of {so_far.tools:,}")
                    await anyio.sleep(POLL_SECONDS)

            tasks.start_soon(watch)
            await catalogue.fill()
            tasks.cancel_scope.cancel()
