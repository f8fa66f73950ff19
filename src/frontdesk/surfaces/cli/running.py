"""Runs one piece of async work with the house open, in the name of whoever sits at this machine."""

import gc
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

import anyio

from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.journal.record import Record
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.visit import request_id

T = TypeVar("T")
Use = Callable[[App], Coroutine[Any, Any, T]]
THRESHOLDS = (700, 10, 10)
UVLOOP = find_spec("uvloop") is not None
SURFACE = "cli"
# A command is one request, whatever it does on its way.
REQUEST_ID = request_id(None)


def operator(*, agent: str | None = None, user: str | None = None) -> Caller:
    """Whoever sits at this machine, who may do everything, or the agent or person they speak for."""
    return Caller(REQUEST_ID, agent, user, local=True, any_agent=True)


def with_app(
    use: Use[T],
    settings: Settings | None = None,
    *,
    log_level: Literal["warning", "error"] = "warning",
    fast: bool = False,
) -> T:
    """What `use` returns, given the app of these settings (the environment's, with few logs, when none are given).

    `fast` is for what runs long: its event loop costs less, but takes a while to load.
    """
    chosen = quiet(Settings.read(), log_level) if settings is None else settings

    async def run() -> T:
        async with open_app(chosen) as app:
            if fast:
                spare_collector()
            return await use(app)

    return anyio.run(run, backend_options={"use_uvloop": fast and UVLOOP})


def with_change(
    action: str, use: Callable[[App, Record], Coroutine[Any, Any, T]], run: Callable[[Use[T]], T] = with_app
) -> T:
    """The same, with `run`, for what changes something: the journal has it, as what comes through the other doors."""

    async def recorded(app: App) -> T:
        with changing(app, action) as record:
            return await use(app, record)

    return run(recorded)


def changing(app: App, action: str) -> Record:
    """A row of the journal; `action` must hold no secret, also where what was typed is wrong."""
    return Record(app.journal, SURFACE, action, operator())


def quiet(settings: Settings, level: Literal["warning", "error"] = "warning") -> Settings:
    """Logs for somebody who reads a command's own words: only what went wrong, unless they asked for all of it."""
    asked = settings.log_level
    loud = asked != "debug" and logs.LEVELS[asked] < logs.LEVELS[level]
    chosen = settings.replaced(log_level=level) if loud else settings
    logs.configure(chosen)
    return chosen


def spare_collector() -> None:
    """What is loaded by now stays for good: the garbage collector need not go through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
