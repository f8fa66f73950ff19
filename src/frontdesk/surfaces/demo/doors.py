"""Knocks at the house's own doors, in process: requests as clients send them, with keys, headers and all."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
import httpx2

from frontdesk.app import App
from frontdesk.surfaces.http import build

ERA = "2025-11-25"
SECONDS = 20
POLL_SECONDS = 0.2
MCP = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": ERA,
}

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Doors:
    """Each method gives back the object that was answered, a refusal too."""

    client: httpx2.AsyncClient

    async def mcp(self, tool: str, arguments: Mapping[str, Any] | None = None, **said: str) -> Answer:
        """Call a tool of ours; `said` are headers, with _ for -."""
        params = {"name": tool, "arguments": dict(arguments or {})}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.client.post("/mcp", json=frame, headers={**MCP, **_headers(said)})
        return _object(answer)

    async def rest(self, method: str, path: str, body: Mapping[str, Any] | None = None, **said: str) -> Answer:
        answer = await self.client.request(method, path, json=body, headers=_headers(said))
        return _object(answer)

    async def talk(self, agent_id: str, user_id: str, messages: tuple[str, ...], **said: str) -> None:
        """Open a session with an agent, say these one after the other, and hear each answer out."""
        whose = {"userId": user_id}
        opened = await self.rest("POST", "/api/agents/sessions", {"agentId": agent_id, **whose}, **said)
        session = str(opened["sessionId"])
        for number, message in enumerate(messages, 1):
            sent = {"sessionId": session, "message": message, **whose}
            await self.rest("POST", "/api/agents/messages", sent, **said)
            await self._heard_out(session, number, said)

    async def _heard_out(self, session: str, answers: int, said: Mapping[str, str]) -> None:
        with anyio.move_on_after(SECONDS):
            while True:
                # First, for most of them are quick, and each look is a call in the journal.
                await anyio.sleep(POLL_SECONDS)
                told = await self.rest("GET", f"/api/agents/sessions?sessionId={session}", None, **said)
                over = [one for one in told.get("messages", ()) if one.get("stopReason")]
                if len(over) >= answers:
                    return


@asynccontextmanager
async def open_doors(app: App) -> AsyncGenerator[Doors]:
    transport = httpx2.ASGITransport(build(app))
    base = f"http://127.0.0.1:{app.settings.port or 3020}"
    async with httpx2.AsyncClient(transport=transport, base_url=base, timeout=SECONDS) as client:
        yield Doors(client)


def _headers(said: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in said.items()}


def _object(answer: httpx2.Response) -> Answer:
    kind = answer.headers.get("content-type", "")
    found: object = answer.json() if kind.startswith("application/json") else None
    return cast("Answer", found) if isinstance(found, dict) else {"status": answer.status_code}
