"""Opens the HTTP server: listen, say where, serve until told to stop."""

import sys
from collections.abc import Callable

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.db.engine import serving as serving_on
from frontdesk.settings import Settings
from frontdesk.surfaces import http, logs, serving
from frontdesk.surfaces.cli.running import changing, operator, with_app
from frontdesk.surfaces.gate import ASGIApp


def open_doors(settings: Settings, build: Callable[[App], ASGIApp] = http.build) -> None:
    """Serve what `build` makes of the app; the port that was asked for as 0 is said as it came to be."""
    logs.configure(settings)
    with serving_on(settings):
        listener = serving.listen(settings)
        settings = settings.replaced(port=listener.getsockname()[1])

        async def serve(app: App) -> None:
            await app.check_exposure()
            await _hand_out_first_key(app)
            where = f"{base_url(settings)}/  (MCP at /mcp; Ctrl-C closes it)"
            print(f"Frontdesk {__version__} is open: {where}", flush=True)
            await serving.serve(app, listener, build(app))

        with_app(serve, settings, fast=True)


async def _hand_out_first_key(app: App) -> None:
    """On this machine, with nothing set up, whoever starts the server gets a key of their own, once."""
    settings = app.settings
    if settings.exposed or settings.trusted_issuers or settings.login_clients:
        return
    made = await app.identity.first_key()
    if made is None:
        return
    key, text = made
    with changing(app, f"keys create {key.id}") as record:
        record.caller = operator(user=key.user_id)
    await app.journal.flush()
    # Not by the log: that is kept, and sent on.
    print(f"Your key, shown this once: {text}  (user {key.user_id})", file=sys.stderr, flush=True)
