"""A Frontdesk whose MCP door also offers what the conformance suite asks every server for."""

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from frontdesk.app import App
from frontdesk.settings import Settings
from frontdesk.surfaces import http
from frontdesk.surfaces.cli.serving import open_doors
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.mcp.http import McpEndpoint
from frontdesk.surfaces.mcp.server import SPECS, build_server, offers
from tests.conformance.calling_back import CALLING_BACK
from tests.conformance.content import CONTENT
from tests.conformance.input_required import INPUT_REQUIRED
from tests.conformance.notifying import NOTIFYING, add_listening
from tests.conformance.prompts import add_prompts
from tests.conformance.resources import add_resources

DOOR = "/mcp"


def fixture_server(app: App) -> Server[Any]:
    """The house's own server of this door, with the fixtures beside its tools."""
    server = build_server({**offers(app, SPECS, DOOR), **CONTENT, **NOTIFYING, **CALLING_BACK, **INPUT_REQUIRED})
    add_prompts(server)
    add_resources(server)
    add_listening(server)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="frontdesk"))
    return server


def build(app: App) -> ASGIApp:
    """The house behind its gate, with this one door."""
    return http.assemble(app, {DOOR: McpEndpoint(fixture_server(app))}, [DOOR])


if __name__ == "__main__":
    open_doors(Settings.read(), build)
