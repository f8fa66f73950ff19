"""MCP over standard input and output, for a client that starts Frontdesk itself."""

from mcp.server.stdio import stdio_server

from frontdesk.app import App
from frontdesk.surfaces.mcp.server import SPECS, build_server, offers


async def serve(app: App) -> None:
    """Serve until standard input closes; nothing but protocol goes to standard output."""
    server = build_server(offers(app, SPECS, "/mcp"))
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
