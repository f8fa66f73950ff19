"""A person's app that speaks to the memory capability over HTTP, in process."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from frontdesk.interfaces.http.context import ASGIApp

BASE = "http://127.0.0.1:3020/api"
SECONDS = 60


class Rest:
    """Asks, and holds the answer to a status; what it gives back is the body."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.headers: Mapping[str, str] = {}

    async def get(self, path: str, status: int = 200, /, **query: Any) -> Any:
        return await self.ask("GET", path, status, params=query)

    async def post(self, path: str, body: object = None, status: int = 201, /, **query: Any) -> Any:
        return await self.ask("POST", path, status, json=body, params=query)

    async def put(self, path: str, body: object, status: int = 200, /, **query: Any) -> Any:
        return await self.ask("PUT", path, status, json=body, params=query)

    async def delete(self, path: str, status: int = 200, body: object = None, /, **query: Any) -> Any:
        return await self.ask("DELETE", path, status, json=body, params=query)

    async def ask(self, method: str, path: str, status: int, /, **more: Any) -> Any:
        sent = {name: value for name, value in more.items() if value is not None}
        answer = await self.client.request(method, path, **sent)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        self.headers = answer.headers
        return answer.json()


@asynccontextmanager
async def speaking(asgi: ASGIApp, key: str | None = None, **headers: str) -> AsyncGenerator[Rest]:
    """Somebody with that key, or with none."""
    shown = {"authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.ASGITransport(asgi)
    async with httpx2.AsyncClient(
        transport=transport, base_url=BASE, timeout=SECONDS, headers={**shown, **headers}
    ) as client:
        yield Rest(client)
