"""Fixtures: an installation with a few tools of real servers, and agents that search for them."""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.support.serving import serve
from tests.support.tool_servers import SCHEMA, ToolServer, open_tool_server, tool
from tests.support.upstreams import Upstream, open_upstream

ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {"owner": {"type": "string"}, "title": {"type": "string"}, "labels": {"type": "array"}},
    "required": ["owner", "title"],
}
PAINTED: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "here it is"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ],
    "structuredContent": {"size": 2, "colours": ["red"]},
}
LISTED = [
    tool("create_issue", "File a new issue about a bug in a repository.", ISSUE),
    tool("send_mail", "Send a letter by electronic mail.", SCHEMA),
    tool("weather_forecast", "Tell the weather of the next days in a city.", SCHEMA),
]


@pytest.fixture(scope="module")
def shop() -> Iterator[ToolServer]:
    with open_tool_server("shop", LISTED) as server:
        yield server


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """A server whose tools answer in every possible way."""
    with open_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def studio() -> Iterator[str]:
    """A server whose one tool answers with more than text; gives its address."""
    definition = {"name": "paint", "description": "Paint a picture of something.", "inputSchema": SCHEMA}

    async def post(request: Request) -> Response:
        frame = await request.json()
        about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "studio", "version": "1"}}
        results: dict[str, dict[str, Any]] = {
            "initialize": {"protocolVersion": "2025-06-18", **about},
            "tools/list": {"tools": [definition]},
            "tools/call": PAINTED,
        }
        found = results.get(frame["method"])
        if found is None:
            return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": found})

    with serve(Starlette(routes=[Route("/mcp", post, methods=["POST"])])) as address:
        yield f"{address}/mcp"


@pytest.fixture(scope="module")
async def installation(
    tmp_path_factory: pytest.TempPathFactory, shop: ToolServer, upstream: Upstream, studio: str
) -> AsyncGenerator[App]:
    """By words alone: these tests do not need the embedding model, which takes long to load."""
    data = tmp_path_factory.mktemp("installation") / "data"
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_EMBEDDINGS="off")) as app:
        await app.tools.catalogue.add(ServerSpec("shop", url=shop.url))
        await app.tools.catalogue.add(ServerSpec("lab", url=f"{upstream.url}/mcp"))
        await app.tools.catalogue.add(ServerSpec("studio", url=studio))
        yield app


@pytest.fixture(scope="module")
def asgi(installation: App) -> ASGIApp:
    return build_application(installation)


@pytest.fixture
async def agent(installation: App) -> str:
    return (await installation.host.create(NewAgent("Ada"))).id
