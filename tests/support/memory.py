"""The memory API and its MCP endpoint in process, and a work queue with work in it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from sqlalchemy import update

from frontdesk.app import App, open_app, running
from frontdesk.db.schema import ai_tasks
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.memory.model import AiTask, AiTaskType, PersonScope, Task
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks_store import insert_task
from frontdesk.memory.validation import new_id
from frontdesk.memory.work_queue import WorkQueueService
from frontdesk.settings import Settings

# A server in process whose memory endpoint real MCP clients of both eras call, for people with keys


BASE = "http://127.0.0.1:3020"
ENDPOINT = f"{BASE}/mcp/memory"
SECONDS = 60
ERAS = ("auto", "legacy")


@dataclass(frozen=True, slots=True)
class HeardNotifications:
    """A tool's answer: its text, and the same as data."""

    text: str
    data: dict[str, Any]


class Asking:
    """A client of the memory endpoint; the client itself checks answers against the tools' output schemas."""

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
        """The text of a call's error."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, _text(result)
        return _text(result)


@dataclass(frozen=True, slots=True)
class Desk:
    """An app behind its authentication."""

    app: App
    asgi: ASGIApp

    async def key(self, user: str | None, *scopes: str, agent: str | None = None, zone: str | None = None) -> str:
        """A new key of a person, perhaps with a time zone."""
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
        """A client of an era, with a person's key or none."""
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


# A person's app that uses the memory capability over HTTP, in process


REST_BASE = "http://127.0.0.1:3020/api"


class Rest:
    """Sends requests, and checks the status of the answers; returns the body."""

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
    """A person with that key, or with none."""
    shown = {"authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.ASGITransport(asgi)
    async with httpx2.AsyncClient(
        transport=transport, base_url=REST_BASE, timeout=SECONDS, headers={**shown, **headers}
    ) as client:
        yield Rest(client)


# A work queue with work in it, and leases that expire without a wait


NAMES = {"agent-ada": "Ada", "agent-bob": "Bob"}


async def name_of(agent_id: str) -> str | None:
    return NAMES.get(agent_id)


def queue_on(records: PersonDatabase) -> WorkQueueService:
    return WorkQueueService(records, name_of)


async def add_tasks(records: PersonDatabase, scope: PersonScope, count: int = 1) -> Sequence[str]:
    """This many tasks of a person."""
    return await records.change(scope, partial(_add_tasks, count=count))


async def add_work(records: PersonDatabase, scope: PersonScope, agent_id: str = "agent-ada", **fields: Any) -> AiTask:
    """Work for an agent, on a task of its own."""
    [task_id] = await add_tasks(records, PersonScope(scope.user_id))
    given = {"objective": "Compare three hotels", "task_type": AiTaskType.RESEARCH, "agent_id": agent_id}
    return await queue_on(records).create(scope, {**given, "task_id": task_id, **fields})


async def let_lapse(records: PersonDatabase, scope: PersonScope) -> None:
    """From now on every lease of the person's agents has expired."""

    def age(mine: PersonTransaction) -> None:
        leased = (ai_tasks.c.user_id == mine.user_id, ai_tasks.c.leased_until.is_not(None))
        mine.connection.execute(
            update(ai_tasks).where(*leased).values(leased_until=mine.lease_time() - timedelta(hours=1))
        )

    await records.change(scope, age)


def _add_tasks(mine: PersonTransaction, count: int) -> Sequence[str]:
    made = [
        Task(id=new_id(mine.now), title=f"Task {number}", created_at=mine.now, updated_at=mine.now)
        for number in range(count)
    ]
    for task in made:
        insert_task(mine, task)
    return [task.id for task in made]
