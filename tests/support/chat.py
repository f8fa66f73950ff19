"""A person who chats over the HTTP API, in process or with a running server."""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import httpx2

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.llm.events import TextChunk

SECONDS = 20
Event = Mapping[str, Any]


def script(*steps: Mapping[str, Any]) -> str:
    """A message that tells the offline model what to do."""
    return f"@@{json.dumps(steps)}@@"


class Person:
    """A person with a client of their own; calls return the answer unchanged."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def post(self, path: str, **body: object) -> httpx2.Response:
        return await self.client.post(path, json=body)

    async def get(self, path: str, **query: str) -> httpx2.Response:
        return await self.client.get(path, params=query)

    async def delete(self, path: str, **body: object) -> httpx2.Response:
        return await self.client.request("DELETE", path, json=body)

    async def open(self, agent_id: str) -> str:
        """The id of a new session."""
        return (await self.post("/sessions", agentId=agent_id)).json()["sessionId"]

    async def say(self, session: str, text: str) -> str:
        """The id of the message."""
        sent = await self.post("/messages", sessionId=session, message=text)
        assert sent.status_code == 200, sent.text
        return sent.json()["messageId"]

    async def listen(self, session: str, after: str | None = None) -> list[Event]:
        """All events of a stream, to its end."""
        return [event async for event in self.stream(session, after)]

    async def stream(self, session: str, after: str | None = None) -> AsyncGenerator[Event]:
        """The events of a stream as they come, with the ids of events under `id`."""
        headers = {"last-event-id": after} if after else {}
        query = {"sessionId": session}
        async with self.client.stream("GET", "/stream", params=query, headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            number = None
            async for line in answer.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "id":
                    number = value
                elif field == "data":
                    yield {"id": number, **json.loads(value)}
                    number = None


@asynccontextmanager
async def somebody(where: ASGIApp | str, key: str | None = None) -> AsyncGenerator[Person]:
    """A person with or without a key, at an application or at the address of a server."""
    transport, base = (
        (None, where) if isinstance(where, str) else (httpx2.ASGITransport(where), "http://127.0.0.1:3020")
    )
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(
        transport=transport, base_url=f"{base}/api/agents", headers=headers, timeout=SECONDS
    ) as client:
        yield Person(client)


def kinds(events: Iterable[Event]) -> list[str]:
    """The types of events, one for several of a kind in a row, without those that only newer clients know."""
    found: list[str] = []
    for event in events:
        if event["type"] not in ("usage", *found[-1:]):
            found.append(event["type"])
    return found


def text_of(events: Iterable[Event]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "token")


async def key(app: App, user: str | None, *scopes: str, agent: str | None = None) -> str:
    limits = frozenset(scopes) if scopes else None
    return (await app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits))[1]


async def all_made(app: App) -> None:
    """Wait until no reply is running."""
    with anyio.fail_after(SECONDS):
        for job in list(app.chat._replies._jobs.values()):
            await job.finished.wait()


async def first_token(app: App, session: str, user: str = "local") -> None:
    """Wait until a reply is running."""
    words = await app.chat.listen(Caller("test", user_id=user), session, None)
    with anyio.fail_after(SECONDS):
        async with aclosing(words):
            async for heard in words:
                if isinstance(heard.event, TextChunk):
                    return


async def stop_reasons(person: Person, session: str) -> list[str | None]:
    said = (await person.get("/sessions", sessionId=session)).json()["messages"]
    return [message.get("stopReason") for message in said if message["type"] == "agent"]
