"""zflow's MCP client as it speaks: the same routes, headers, bodies, priming and repeating, told from outside.

It shares one session among all its users, remembers the last token that it left there, and reads the message of a
JSON-RPC error, but nothing of an answer that is not 2xx.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from frontdesk.interfaces.http.context import ASGIApp
from tests.support.wire import Answer, send

LOOKS_LIKE_AUTH = re.compile(r"unauthorized|auth|认证|token", re.IGNORECASE)
NOT_FOR_AGENTS = frozenset(
    {
        *("authenticate", "exchange_code_for_token", "refresh_token", "set_access_token", "clear_auth"),
        *("get_auth_status", "get_user_info"),
    }
)
OPENING = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "zflow-http-client", "version": "1.0.0"},
}
# Its ids are the current milliseconds: calls of the same moment have the same.
MOMENT = 1_763_512_345_678
# What the fetch of Node adds to the headers that it is given.
OF_FETCH = {
    "connection": "keep-alive",
    "accept-language": "*",
    "sec-fetch-mode": "cors",
    "accept-encoding": "gzip, deflate",
}


class Thrown(Exception):
    """What the client throws, with its words."""


async def nothing() -> None:
    """What happens between a call and its repetition, usually."""


@dataclass
class Zflow:
    """One client of one process. `sent` has the tool, or else the method, of each request that was made."""

    asgi: ASGIApp
    url: str
    api_key: str | None = None
    before_retry: Callable[[], Awaitable[None]] = nothing
    session_id: str | None = None
    last_access_token: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sent: list[str] = field(default_factory=list[str])

    async def connect(self) -> None:
        plain = {"content-type": "application/json", "accept": "application/json"}
        health = await self._fetch("/health", {**plain, "user-agent": "ZFlow-MCP-Client/1.0"}, None)
        if not 200 <= health.status < 300:
            raise Thrown(f"MCP server health check failed: {health.status}")
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING}
        shown = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        answer = await self._post(opening, shown)
        if not 200 <= answer.status < 300:
            raise Thrown(f"MCP initialization failed: {answer.status}")
        self.session_id = answer.headers.get("mcp-session-id")
        if "error" in answer.json:
            raise Thrown(f"MCP initialization error: {answer.json['error']['message']}")
        self.tools = (await self.request("tools/list"))["tools"]

    def agents_tools(self) -> list[str]:
        return [tool["name"] for tool in self.tools if tool["name"] not in NOT_FOR_AGENTS]

    async def request(self, method: str, params: dict[str, Any] | None = None, user_auth: str | None = None) -> Any:
        body = {"jsonrpc": "2.0", "id": MOMENT, "method": method, "params": params or {}}
        shown = {"mcp-session-id": self.session_id} if self.session_id else {}
        if user_auth:
            shown["x-user-auth-token"] = user_auth
        elif self.api_key:
            shown["authorization"] = f"Bearer {self.api_key}"
        self.sent.append((params or {}).get("name", method))
        answer = await self._post(body, shown)
        if not 200 <= answer.status < 300:
            raise Thrown(f"MCP request failed: {answer.status}")
        if "error" in answer.json:
            raise Thrown(f"MCP error: {answer.json['error']['message']}")
        return answer.json["result"]

    async def call(self, name: str, arguments: dict[str, Any], user_auth: str | None = None) -> tuple[bool, str]:
        """Whether a tool was called well, and its words; `user_auth` is the Authorization header of the user."""
        token = _extracted(user_auth)
        try:
            if token and token != self.last_access_token and name != "set_access_token":
                await self._prime(token, user_auth)
            return _read(await self.request("tools/call", {"name": name, "arguments": arguments}, user_auth))
        except Thrown as error:
            if token and LOOKS_LIKE_AUTH.search(str(error)) and name != "set_access_token":
                await self.before_retry()
                repeated = await self._repeat(name, arguments, token, user_auth)
                if repeated is not None:
                    return repeated
            return False, f"Error calling {name}: {error}"

    async def _prime(self, token: str, user_auth: str | None) -> None:
        try:
            await self._leave(token, user_auth)
        except Thrown:
            return

    async def _repeat(
        self, name: str, arguments: dict[str, Any], token: str, user_auth: str | None
    ) -> tuple[bool, str] | None:
        try:
            await self._leave(token, user_auth)
            return _read(await self.request("tools/call", {"name": name, "arguments": arguments}, user_auth))
        except Thrown:
            return None

    async def _leave(self, token: str, user_auth: str | None) -> None:
        given = {"name": "set_access_token", "arguments": {"access_token": token}}
        await self.request("tools/call", given, user_auth)
        self.last_access_token = token

    async def _post(self, body: dict[str, Any], shown: dict[str, str]) -> Answer:
        usual = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "user-agent": "ZFlow-MCP-Client/1.0",
        }
        return await self._fetch("/api/mcp", usual | shown, json.dumps(body, separators=(",", ":")).encode())

    async def _fetch(self, route: str, headers: dict[str, str], body: bytes | None) -> Answer:
        where = urlsplit(self.url.removesuffix("/") + route)
        said = {"host": where.netloc, **headers, **OF_FETCH}
        if body is None:
            return await send(self.asgi, said, b"", path=where.path, method="GET")
        return await send(self.asgi, {**said, "content-length": str(len(body))}, body, path=where.path)


def _extracted(header: str | None) -> str | None:
    parts = (header or "").split(" ")
    return parts[1] if len(parts) == 2 and parts[0].lower() == "bearer" else header


def _read(result: dict[str, Any]) -> tuple[bool, str]:
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    return not result.get("isError", False), "\n".join(texts)
