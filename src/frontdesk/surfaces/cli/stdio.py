"""Serves MCP to the process that started us."""

from frontdesk.app import App, Door, running
from frontdesk.settings import Settings
from frontdesk.surfaces import logs
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.mcp import stdio
from frontdesk.surfaces.mcp.starter import starter_of


def serve(door: str) -> None:
    """Answer on standard output what comes by standard input, until that ends."""
    # Only the process that started us can write to our standard input: that is as near as loopback.
    settings = Settings.read().replaced(host="127.0.0.1", public_url="", allowed_hosts=(), require_auth=False)
    logs.configure(settings)

    async def answer(app: App) -> None:
        starter = await starter_of(app)
        async with running(app):
            await stdio.serve(app, starter, Door(door))

    with_app(answer, settings, fast=True)
