"""Runs one piece of async work with the house open."""

import gc
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

import anyio

from frontdesk.app import App, open_app
from frontdesk.settings import Settings
from frontdesk.surfaces import logs

T = TypeVar("T")
UVLOOP = find_spec("uvloop") is not None


def with_app(
    use: Callable[[App], Coroutine[Any, Any, T]], settings: Settings | None = None, *, fast: bool = False
) -> T:
    """What `use` returns, given the app of these settings (the environment's when none are given).

    `fast` is for what runs long: its event loop costs less, but takes a while to load.
    """

    chosen = settings or Settings.read()
    if settings is None:
        # A command's own words go to standard output; what the house has to say does not.
        logs.configure(chosen.replaced(log_level="warning"))

    async def run() -> T:
        async with open_app(chosen) as app:
            if fast:
                spare_collector()
            return await use(app)

    return anyio.run(run, backend_options={"use_uvloop": fast and UVLOOP})


def spare_collector() -> None:
    """What is loaded by now stays for good: the garbage collector need not go through all of it again and again."""
    gc.collect()
    gc.freeze()
