"""Opens the HTTP server: listen, say where, serve until told to stop."""

from collections.abc import Callable

from frontdesk import __version__
from frontdesk.app import App, base_url
from frontdesk.settings import Settings
from frontdesk.surfaces import http, logs, serving
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.gate import ASGIApp


def open_doors(settings: Settings, build: Callable[[App], ASGIApp] = http.build) -> None:
    """Serve what `build` makes of the app; the port that was asked for as 0 is said as it came to be."""
    logs.configure(settings)
    listener = serving.listen(settings)
    settings = settings.replaced(port=listener.getsockname()[1])

    async def serve(app: App) -> None:
        await app.check_exposure()
        print(f"Frontdesk {__version__} is open: {base_url(settings)}/mcp  (Ctrl-C closes it)", flush=True)
        await serving.serve(app, listener, build(app))

    with_app(serve, settings, fast=True)
