"""Implements `frontdesk up`: listen, say where, serve until stopped."""

import sys
from collections.abc import Callable

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.db.engine import server_lock
from frontdesk.interfaces import logs
from frontdesk.interfaces.app_runner import local_caller, record_change, run_with_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.http.uvicorn_server import open_listener, serve_app
from frontdesk.settings import Settings


def serve_http(settings: Settings, build: Callable[[App], ASGIApp] = build_application) -> None:
    """Serve what `build` makes of the app; the port that was asked for as 0 is said as it came to be."""
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
    """On this machine, with nothing set up, whoever starts the server gets a key of their own, once."""
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
    # Not by the log: that is kept, and sent on.
    print(f"Your key, shown this once: {text}  (user {key.user_id})", file=sys.stderr, flush=True)
