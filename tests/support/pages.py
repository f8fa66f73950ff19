"""A browser without a window: it keeps cookies, fills in the token of forms, and reads pages; in process."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx2

from frontdesk.interfaces.http.context import ASGIApp

BASE = "http://127.0.0.1:3020"
SECONDS = 60
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)


class Browser:
    """Looks at pages and sends their forms; what it gives back is the HTML."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.answer: httpx2.Response | None = None

    async def get(self, path: str, status: int = 200, /, *, part: bool = False, **query: Any) -> str:
        """The page at an address; `part` as htmx asks for one."""
        headers = {"hx-request": "true"} if part else {}
        self.answer = await self.client.get(path, params=query or None, headers=headers)
        assert self.answer.status_code == status, (path, self.answer.status_code, text_of(self.answer.text)[-2000:])
        return self.answer.text

    async def post(self, path: str, form: Mapping[str, str] | None = None, status: int = 200, /) -> str:
        """Send a form, with the token that pages have, and follow where it leads."""
        token = self.client.cookies.get("frontdesk_form") or TOKEN.findall(await self.get("/sign-in"))[0]
        sent = {"form_token": token, **(form or {})}
        self.answer = await self.client.post(path, data=sent, follow_redirects=True)
        assert self.answer.status_code == status, (path, self.answer.status_code, text_of(self.answer.text)[-2000:])
        return self.answer.text


@asynccontextmanager
async def browsing(asgi: ASGIApp, **headers: str) -> AsyncGenerator[Browser]:
    """Somebody at this machine, or with what these headers show."""
    transport = httpx2.ASGITransport(asgi)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE, timeout=SECONDS, headers=headers) as client:
        yield Browser(client)


def text_of(html: str) -> str:
    """What a person reads of a page, in one line."""
    return " ".join(unescape(TAGS.sub(" ", html)).split())
