"""Implements `frontdesk up` and `frontdesk worker`: processes that work until they are stopped."""

import json
import signal
import sys
from collections.abc import Callable
from typing import Annotated

import anyio

from frontdesk import __version__
from frontdesk.app import App, base_url, running_worker
from frontdesk.db.engine import server_lock
from frontdesk.interfaces import logs
from frontdesk.interfaces.app_runner import local_caller, record_change, run_with_app
from frontdesk.interfaces.cli.output import JsonFlag, number_up_to
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.http.uvicorn_server import open_listener, serve_app
from frontdesk.settings import Settings


def serve_http(settings: Settings, build: Callable[[App], ASGIApp] = build_application) -> None:
    """Serve the application that `build` creates. For port 0 the chosen port is printed."""
    logs.configure_logs(settings)
    with server_lock(settings):
        listener = open_listener(settings)
        settings = settings.with_values(port=listener.getsockname()[1])

        async def serve(app: App) -> None:
            await app.check_exposure()
            await _print_first_key(app)
            where = f"{base_url(settings)}/  (MCP at /mcp; Ctrl-C closes it)"
            print(f"Frontdesk {__version__} is open: {where}", flush=True)
            await serve_app(app, listener, build(app))

        run_with_app(serve, settings, fast=True)


async def _print_first_key(app: App) -> None:
    """Print a key for the local person at the first start, if the server is local and no logins are set up."""
    settings = app.settings
    if settings.exposed or settings.trusted_issuers or settings.login_clients:
        return
    made = await app.identity.first_key()
    if made is None:
        return
    key, text = made
    with record_change(app, f"keys create {key.id}") as record:
        record.caller = local_caller(user=key.user_id)
    await app.journal.flush()
    # Printed and not logged: logs are stored and forwarded.
    print(f"Your key, shown this once: {text}  (user {key.user_id})", file=sys.stderr, flush=True)


Concurrency = Annotated[int | None, number_up_to(10_000)]


def work(*, concurrency: Concurrency = None, as_json: JsonFlag = False) -> None:
    """Deliver due prompts.

    Parameters
    ----------
    concurrency
        Prompts at once; FRONTDESK_WORKER_CONCURRENCY, or 128, when left out.
    as_json
        Print start and stop as JSON, one object a line.
    """
    settings = Settings.read().with_values(worker_concurrency=concurrency)
    logs.configure_logs(settings)

    async def deliver(app: App) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with running_worker(app):
                _print_event("started", as_json=as_json, concurrency=settings.worker_concurrency)
                await anext(aiter(signals))
            status = app.worker.status()
            _print_event("stopped", as_json=as_json, delivered=status.delivered, failed=status.failed)

    run_with_app(deliver, settings, fast=True)


def _print_event(event: str, *, as_json: bool, **facts: int) -> None:
    if as_json:
        print(json.dumps({"event": event, "version": __version__, **facts}), flush=True)
        return
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    print(f"Frontdesk {__version__} worker {event}: {told}", flush=True)
