"""A desk in process whose memory endpoint real MCP clients of both eras call, for people who have keys."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from frontdesk.app import App, open_app, running
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.memory.model import PersonScope
from frontdesk.settings import Settings

BASE = "http://127.0.0.1:3020"
ENDPOINT = f"{BASE}/mcp/memory"
SECONDS = 60
ERAS = ("auto", "legacy")


@dataclass(frozen=True, slots=True)
class HeardNotifications:
    """What a tool answered: its words, and the same as data."""

    text: str
    data: dict[str, Any]


class Asking:
    """A client of the memory endpoint; the client itself holds answers to the schemas that the tools promise."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.called: set[str] = set()

    async def __call__(self, tool: str, **arguments: Any) -> HeardNotifications:
        result = await self.client.call_tool(tool, arguments)
        text = _text(result)
        assert not result.is_error, text
        assert result.structured_content is not None
        self.called.add(tool)
        assert not {"undefined", "Invalid Date", "None"} & set(text.replace(",", " ").split()), text
        return HeardNotifications(text, result.structured_content)

    async def error(self, tool: str, **arguments: Any) -> str:
        """What is wrong with a call, in plain words."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, _text(result)
        return _text(result)


@dataclass(frozen=True, slots=True)
class Desk:
    """An app behind its gate."""

    app: App
    asgi: ASGIApp

    async def key(self, user: str | None, *scopes: str, agent: str | None = None, zone: str | None = None) -> str:
        """A new key of somebody's, who may live in a zone."""
        if user is not None and zone is not None:
            await self.app.memory.people.set_zone(PersonScope(user), zone)
        limits = frozenset(scopes) if scopes else None
        return (await self.app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits))[1]

    @asynccontextmanager
    async def web(self, key: str | None = None, **headers: str) -> AsyncGenerator[httpx2.AsyncClient]:
        shown = {"authorization": f"Bearer {key}"} if key else {}
        said = shown | {name.replace("_", "-"): value for name, value in headers.items()}
        transport = httpx2.ASGITransport(self.asgi)
        async with httpx2.AsyncClient(transport=transport, base_url=BASE, headers=said, timeout=SECONDS) as web:
            yield web

    @asynccontextmanager
    async def ask(self, key: str | None = None, mode: str = "auto", **headers: str) -> AsyncGenerator[Asking]:
        """A client of an era, with somebody's key or none."""
        async with (
            self.web(key, **headers) as web,
            Client(streamable_http_client(ENDPOINT, http_client=web), mode=mode) as client,
        ):
            yield Asking(client)


@asynccontextmanager
async def open_memory(settings: Settings) -> AsyncGenerator[Desk]:
    async with open_app(settings) as app, running(app):
        yield Desk(app, build_application(app))


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
