"""Runs one async function with the app open, as the user of this machine."""

import gc
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

import anyio

from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.interfaces import logs
from frontdesk.interfaces.http.context import ensure_request_id
from frontdesk.journal.service import CallRecord
from frontdesk.settings import Settings

T = TypeVar("T")
AppFunction = Callable[[App], Coroutine[Any, Any, T]]
GC_THRESHOLDS = (700, 10, 10)
UVLOOP = find_spec("uvloop") is not None
SURFACE = "cli"
# A command counts as one request.
REQUEST_ID = ensure_request_id(None)


def local_caller(*, agent: str | None = None, user: str | None = None) -> Caller:
    """The operator at this machine, who may do everything, or the given agent or person."""
    return Caller(REQUEST_ID, agent, user, local=True, any_agent=True)


def run_with_app(
    use: AppFunction[T],
    settings: Settings | None = None,
    *,
    log_level: Literal["warning", "error"] = "warning",
    fast: bool = False,
    tools: bool = False,
) -> T:
    """Run `use` with the app of these settings. Without settings it reads the environment's and logs little.

    `fast` is for long-running processes: uvloop is faster, but takes a while to load. With `tools`, tools of servers
    can be called.
    """
    chosen = configure_quiet_logs(Settings.read(), log_level) if settings is None else settings

    async def run() -> T:
        async with open_app(chosen, tools=tools or fast) as app:
            if fast:
                freeze_garbage()
            return await use(app)

    return anyio.run(run, backend_options={"use_uvloop": fast and UVLOOP})


def run_change(
    action: str,
    use: Callable[[App, CallRecord], Coroutine[Any, Any, T]],
    run: Callable[[AppFunction[T]], T] = run_with_app,
) -> T:
    """Run a change and record it in the journal, as the other interfaces do."""

    async def recorded(app: App) -> T:
        with record_change(app, action) as record:
            return await use(app, record)

    return run(recorded)


def record_change(app: App, action: str) -> CallRecord:
    """A journal entry for a command. `action` must not contain secrets, not even mistyped ones."""
    return CallRecord(app.journal, SURFACE, action, local_caller())


def configure_quiet_logs(settings: Settings, level: Literal["warning", "error"] = "warning") -> Settings:
    """Log only problems, unless the settings ask for debug logs, so that a command's output stays readable."""
    asked = settings.log_level
    loud = asked != "debug" and logs.LEVELS[asked] < logs.LEVELS[level]
    chosen = settings.with_values(log_level=level) if loud else settings
    logs.configure_logs(chosen)
    return chosen


def freeze_garbage() -> None:
    """Exclude everything loaded so far from garbage collection, because it stays until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
