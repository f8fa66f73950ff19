"""Puts the tools API under /api/v1/tools."""

from fastapi import APIRouter, FastAPI

from frontdesk.app import App
from frontdesk.surfaces.rest.callers import identify
from frontdesk.surfaces.rest.calls import recorded
from frontdesk.surfaces.rest.tools.catalogue import add_servers, add_tools
from frontdesk.surfaces.rest.tools.finding import add_finding
from frontdesk.surfaces.rest.tools.house import add_house

PATH = "/v1/tools"


def add_tool_routes(api: FastAPI, app: App, prefix: str) -> None:
    """Its callers are agents too, so they are named as at the MCP door; `prefix` is where the API is mounted."""
    router = APIRouter(prefix=PATH, route_class=recorded(app, prefix, identify))
    add_finding(router, app)
    add_servers(router, app)
    add_house(router, app)
    add_tools(router, app)
    api.include_router(router)
