"""Runs a Frontdesk whose MCP endpoint also offers the fixtures that the conformance suite requires of every server."""

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from frontdesk.app import App
from frontdesk.interfaces.cli.serve import serve_http
from frontdesk.interfaces.http.application import assemble_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp.http import McpEndpoint
from frontdesk.interfaces.mcp.server import build_server, offer_tools, tools_by_path
from frontdesk.settings import Settings
from tests.conformance.prompts import add_prompts, add_resources
from tests.conformance.tools import CALLING_BACK, CONTENT, INPUT_REQUIRED, NOTIFYING, add_listening

ENDPOINT = "/mcp"


def fixture_server(app: App) -> Server[Any]:
    """The app's own server of this endpoint, with the fixtures beside its tools."""
    offered = offer_tools(app, tools_by_path(app.operations())[ENDPOINT], ENDPOINT)
    server = build_server({**offered, **CONTENT, **NOTIFYING, **CALLING_BACK, **INPUT_REQUIRED})
    add_prompts(server)
    add_resources(server)
    add_listening(server)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="frontdesk"))
    return server


def build(app: App) -> ASGIApp:
    """The app behind its middleware, with this endpoint only."""
    return assemble_application(app, {ENDPOINT: McpEndpoint(fixture_server(app))}, [ENDPOINT])


if __name__ == "__main__":
    serve_http(Settings.read(), build)
