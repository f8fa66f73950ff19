"""Tests the server with an imitation of zflow's MCP client: the same routes, headers, bodies, priming and repetitions.

It shares one session among all its users, remembers the last token that it left there, and reads the message of a
JSON-RPC error, but ignores the body of an answer that is not 2xx."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from frontdesk.errors import Unavailable
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.memory.model import PersonScope
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.tasks_rules import TaskFilter
from tests.conftest import settings_with
from tests.interfaces.access.conftest import token, with_issuer
from tests.requirements import shows
from tests.support.memory import BASE, Desk, open_memory
from tests.support.postgres import Postgres, Ready
from tests.support.wire import Answer, call, send

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
# Its ids are the current milliseconds: calls of the same moment have the same id.
MOMENT = 1_763_512_345_678
# The headers that Node's fetch adds to the given ones.
OF_FETCH = {
    "connection": "keep-alive",
    "accept-language": "*",
    "sec-fetch-mode": "cors",
    "accept-encoding": "gzip, deflate",
}


class Thrown(Exception):
    """The error that the client throws, with its message."""


async def nothing() -> None:
    """The usual steps between a call and its repetition."""


@dataclass
class Zflow:
    """One client of one process. `sent` has the tool, or otherwise the method, of each request."""

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
        """Whether a tool call succeeded, and its text; `user_auth` is the Authorization header of the user."""
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


GUARDED, OPEN = "guarded", "open"
PLACES = (BASE, f"{BASE}/mcp/memory")


@dataclass(frozen=True, slots=True)
class Installation:
    """A server, and whether it requires authentication."""

    desk: Desk
    guarded: bool

    async def connected(self, url: str = BASE, api_key: str | None = None) -> Zflow:
        client = Zflow(self.desk.asgi, url, api_key)
        await client.connect()
        client.sent.clear()
        return client

    async def titles(self, person: str) -> list[str]:
        found = await self.desk.app.memory.tasks.list(PersonScope(person), TaskFilter())
        return [task.title for task in found.items]


@pytest.fixture(scope="module", params=[("sqlite", OPEN), ("sqlite", GUARDED), ("postgresql", GUARDED)], ids="-".join)
async def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ready: Ready
) -> AsyncGenerator[Installation]:
    database, how = request.param
    folder: Path = tmp_path_factory.mktemp("zflow") / "data"
    where: dict[str, object] = {"FRONTDESK_DATA": folder, "FRONTDESK_EMBEDDINGS": "off"}
    if database == "sqlite":
        ready.in_folder(folder)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        where["FRONTDESK_DATABASE_URL"] = ready.on(server)
    wanted = settings_with(FRONTDESK_REQUIRE_AUTH=how == GUARDED, **where)
    async with open_memory(with_issuer(wanted)) as desk:
        yield Installation(desk, guarded=how == GUARDED)


def somebody() -> str:
    return f"user-{secrets.token_hex(4)}"


def header(person: str, **claims: object) -> str:
    """The Authorization header of a person's browser, which the app passes on."""
    return f"Bearer {token(person, **claims)}"


@shows("KEPT-13")
@pytest.mark.parametrize("url", PLACES)
async def test_it_connects_and_is_offered_the_tools_of_the_contract(installation: Installation, url: str) -> None:
    for api_key in (None, await installation.desk.key(somebody()), await installation.desk.key(None, agent="*")):
        client = await installation.connected(url, api_key)
        assert client.session_id
        assert (len(client.tools), len(client.agents_tools())) == (43, 36)
        assert "get_categories" not in client.agents_tools()
        assert "whoami" not in client.agents_tools()


@shows("KEPT-13")
async def test_a_call_is_its_users_by_the_token_alone(installation: Installation) -> None:
    client, ann, bob = await installation.connected(), somebody(), somebody()
    hers = header(ann)
    good, text = await client.call("create_task", {"title": f"Of {ann}"}, hers)
    assert good, text
    assert client.sent == ["set_access_token", "create_task"]
    assert (await client.call("get_running_timer", {}, hers))[0]
    assert client.sent[2:] == ["get_running_timer"]
    good, text = await client.call("search_tasks", {}, header(bob))
    assert good, text
    assert ann not in text
    key = await installation.desk.key(ann)
    good, text = await client.call("search_tasks", {}, key)
    assert good, text
    assert f"Of {ann}" in text, "a key of one's own counts as a token does"


@shows("KEPT-02")
@shows("KEPT-13")
async def test_users_who_share_its_session_at_the_same_moment_get_their_own_answers(installation: Installation) -> None:
    client = await installation.connected(api_key=await installation.desk.key(None, agent="*"))
    people = [somebody() for _ in range(6)]
    tokens = {person: header(person) for person in people}
    for person in people:
        await installation.desk.app.memory.tasks.create(PersonScope(person), {"title": f"Of {person}"})

    async def ask(person: str) -> None:
        good, text = await client.call("search_tasks", {}, tokens[person])
        assert good, text
        assert [other for other in people if other in text] == [person]

    await asyncio.gather(*(ask(person) for person in people for _ in range(3)))
    for signed_out in (client, Zflow(installation.desk.asgi, BASE, session_id=client.session_id)):
        good, text = await signed_out.call("search_tasks", {})
        assert not good
        assert not any(person in text for person in people), "nobody's tasks are shown to a visitor"


@shows("KEPT-13")
async def test_its_retry_fires_where_a_token_does_not_hold_and_a_fresh_one_counts(installation: Installation) -> None:
    client, ann = await installation.connected(), somebody()
    good, text = await client.call("create_task", {"title": "Once"}, header(ann, exp=1))
    assert not good
    assert "expired" in text
    assert client.sent == ["set_access_token", "create_task", "set_access_token"], "it was tried anew, and for nothing"
    assert await installation.titles(ann) == []
    client.sent.clear()
    good, text = await client.call("create_task", {"title": "Once"}, header(ann))
    assert good, text
    assert client.sent == ["set_access_token", "create_task"]
    assert await installation.titles(ann) == ["Once"]


@shows("KEPT-13")
async def test_a_repeated_call_succeeds_where_the_token_counts_by_then_and_is_done_once(
    installation: Installation,
) -> None:
    client, ann, brought = await installation.connected(), somebody(), f"zm_{secrets.token_hex(32)}"

    async def known_by_now() -> None:
        await installation.desk.app.identity.import_key(brought, hashed=False, user_id=ann, name=ann, scopes=None)

    client.before_retry = known_by_now
    good, text = await client.call("create_task", {"title": "Once"}, f"Bearer {brought}")
    assert good, text
    assert client.sent == ["set_access_token", "create_task", "set_access_token", "create_task"]
    assert await installation.titles(ann) == ["Once"]


@shows("KEPT-13")
async def test_what_may_have_been_done_is_not_told_in_words_that_have_it_done_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, ann = await installation.connected(), somebody()
    hers, create = header(ann), TaskService.create
    await client.call("get_task_stats", {}, hers)
    client.sent.clear()
    for error in (
        Unavailable("the token of the database", public="The database does not answer; try again shortly"),
        RuntimeError("the author's token"),
    ):

        async def done_and_lost(*given: Any, lost: Exception = error) -> None:
            await create(*given)
            raise lost

        monkeypatch.setattr(TaskService, "create", done_and_lost)
        good, text = await client.call("create_task", {"title": "Author's token"}, hers)
        assert not good
        assert not LOOKS_LIKE_AUTH.search(text.removeprefix("Error calling create_task: ")), text
    monkeypatch.undo()
    good, text = await client.call("create_task", {"title": "x", "category": "auth token"}, hers)
    assert not good
    assert LOOKS_LIKE_AUTH.search(text), "what a tool itself says is an answer, whatever its words, and not repeated"
    assert client.sent == ["create_task"] * 3
    assert await installation.titles(ann) == ["Author's token"] * 2


@shows("KEPT-13")
async def test_a_persons_token_is_no_backends_key_and_counts_for_their_records_alone(
    installation: Installation,
) -> None:
    ann, bob = await installation.desk.key("ann"), await installation.desk.key("bob")
    everybodys = await installation.desk.key("ann", agent="*")
    nobodys = await installation.desk.key(None, agent="*")

    async def ask(path: str, tool: str, **shown: str) -> tuple[int, str]:
        headers, body = call("2025-06-18", tool)
        said = headers | {name.replace("_", "-"): value for name, value in shown.items()}
        answer = await send(installation.desk.asgi, said, body, path=path)
        return answer.status, answer.body.decode()

    status, text = await ask("/mcp/memory", "get_auth_status", x_user_auth_token=ann)
    assert (status, '"user_id":"ann"' in text) == (200, True)
    status, text = await ask("/mcp/memory", "get_auth_status", x_user_auth_token=ann, x_forwarded_for="198.51.100.7")
    assert (status, '"user_id":"ann"' in text) == (200, True), "behind a proxy as well"
    assert (await ask("/mcp/memory", "search_tasks", x_user_auth_token="zm_wrong"))[0] == 401
    assert (await ask("/mcp/memory", "search_tasks", x_user_auth_token=nobodys))[0] == 401, "it names no person"
    for path in ("/mcp/memory", "/api/mcp"):
        status, text = await ask(path, "search_tasks", x_user_auth_token=ann, authorization=f"Bearer {bob}")
        assert (status, "another person" in text) == (403 if path == "/mcp/memory" else 200, True)
        status, text = await ask(path, "search_tasks", x_user_auth_token=ann, authorization=f"Bearer {nobodys}")
        assert (status, "No task" in text or "tasks" in text) == (200, True), "a backend speaks for people as before"
    if installation.guarded:
        assert (await ask("/mcp", "whoami", x_user_auth_token=ann))[0] == 401, "elsewhere nothing has changed"
        assert (await ask("/mcp/memory", "search_tasks"))[0] == 401
        status, text = await ask("/api/mcp", "search_tasks")
        assert (status, "Authentication required" in text, "title" in text) == (200, True, False)
        status, text = await ask("/mcp/memory", "whoami", x_user_auth_token=everybodys, x_agent_id="clerk")
        assert "No credential covers agent" in text, "shown so, a key for every agent covers none"


async def test_health_is_asked_behind_the_address_without_a_credential(installation: Installation) -> None:
    for path in ("/health", "/mcp/memory/health", "/api/health"):
        answer = await send(installation.desk.asgi, {"accept": "application/json"}, b"", path=path, method="GET")
        assert (answer.status, answer.json["status"]) == (200, "ok")
