"""Runs one piece of async work with the house open."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

from frontdesk.app import App, open_app
from frontdesk.settings import Settings

T = TypeVar("T")


def with_app(use: Callable[[App], Coroutine[Any, Any, T]], settings: Settings | None = None) -> T:
    """What `use` returns, given the app of these settings (the environment's when none are given)."""

    async def run() -> T:
        async with open_app(settings or Settings.read()) as app:
            return await use(app)

    return anyio.run(run)
