"""Tests the ways to name an agent over HTTP, and that no answer reaches another caller."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from itertools import cycle

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.service import Identity
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import Desk
from tests.support.wire import ERAS, MODERN, Answer, Era, call, curl, send

# The five ways to name an agent and three wrong ways, over real HTTP, in every era


MISSING = "Agent ID must be provided either in x-agent-id header or agent_id parameter"
MISMATCH = "Agent ID mismatch: header 'agent-111' != parameter 'agent-222'"
INVALID = "Invalid agent ID format: invalid@id"

NAMED = [
    pytest.param("agent-123", None, "agent-123", id="header only"),
    pytest.param(None, "agent-456", "agent-456", id="parameter only"),
    pytest.param("agent-789", "agent-789", "agent-789", id="both matching"),
]
REFUSED = [
    pytest.param("agent-111", "agent-222", MISMATCH, id="both mismatching"),
    pytest.param(None, None, MISSING, id="neither provided"),
    pytest.param("invalid@id", None, INVALID, id="invalid header"),
    pytest.param(None, "invalid@id", INVALID, id="invalid parameter"),
]


def arguments(parameter: str | None) -> dict[str, object]:
    return {} if parameter is None else {"agent_id": parameter}


def headers(header: str | None) -> dict[str, str]:
    return {} if header is None else {"x-agent-id": header}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("header", "parameter", "expected"), NAMED)
def test_curl_is_known_by_its_agent_id(
    desk: Desk, era: Era, header: str | None, parameter: str | None, expected: str
) -> None:
    said, body = call(era, arguments=arguments(parameter))
    answer = curl(desk.mcp, said | headers(header), body)
    assert answer.status == 200
    assert answer.structured["agent_id"] == expected
    assert answer.structured["source"] == ("header" if header else "parameter")


@shows("ID-ERRORS")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("header", "parameter", "message"), REFUSED)
def test_curl_is_told_what_is_wrong(
    desk: Desk, era: Era, header: str | None, parameter: str | None, message: str
) -> None:
    said, body = call(era, arguments=arguments(parameter), number="req-123")
    answer = curl(desk.mcp, said | headers(header), body)
    assert answer.json == {"jsonrpc": "2.0", "id": "req-123", "error": {"code": -32602, "message": message}}
    assert answer.status == (400 if era == MODERN else 200)


@asynccontextmanager
async def client(desk: Desk, mode: str, header: str | None) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers(header), timeout=20) as http,
        Client(streamable_http_client(desk.mcp, http_client=http), mode=mode) as connected,
    ):
        yield connected


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("header", "parameter", "expected"), NAMED)
async def test_a_client_is_known_by_its_agent_id(
    desk: Desk, mode: str, header: str | None, parameter: str | None, expected: str
) -> None:
    async with client(desk, mode, header) as connected:
        answer = await connected.call_tool("whoami", arguments(parameter))
    assert answer.structured_content is not None
    assert answer.structured_content["agent_id"] == expected
    assert not answer.is_error


@shows("ID-ERRORS")
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("header", "parameter", "message"), REFUSED)
async def test_a_client_gets_the_exact_error(
    desk: Desk, mode: str, header: str | None, parameter: str | None, message: str
) -> None:
    async with client(desk, mode, header) as connected:
        raised: MCPError | None = None
        try:
            await connected.call_tool("whoami", arguments(parameter))
        except MCPError as error:
            raised = error
    assert raised is not None
    assert (raised.code, raised.message) == (-32602, message)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_listing_tools_needs_no_agent_id(desk: Desk, mode: str) -> None:
    async with client(desk, mode, None) as connected:
        listed = [tool.name for tool in (await connected.list_tools()).tools]
        assert listed[:4] == ["health", "whoami", "find_tools", "call_tool"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_answer_has_structure_and_the_same_as_text(desk: Desk, mode: str) -> None:
    async with client(desk, mode, None) as connected:
        answer = await connected.call_tool("health", {})
    assert answer.structured_content is not None
    assert set(answer.structured_content) == {"status", "letta_base_url", "db", "auth_set"}
    assert answer.structured_content["status"] == "healthy"
    assert isinstance(answer.content[0], TextContent)
    assert '"status":"healthy"' in answer.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_metadata_names_the_agent_when_nothing_better_does(desk: Desk, era: Era) -> None:
    said, body = call(era, meta={"dev.frontdesk/agentId": "agent-meta"})
    answer = curl(desk.mcp, said, body)
    assert (answer.structured["agent_id"], answer.structured["source"]) == ("agent-meta", "metadata")


@pytest.mark.parametrize("era", ERAS)
def test_name_capabilities_and_request_id_are_read(desk: Desk, era: Era) -> None:
    said, body = call(era)
    more = {
        "x-agent-id": "a",
        "x-agent-name": "Ann",
        "x-agent-capabilities": '["search", "mail"]',
        "x-request-id": "r-9",
    }
    answer = curl(desk.mcp, said | more, body)
    told = answer.structured
    assert (told["name"], told["capabilities"], told["request_id"]) == ("Ann", ["search", "mail"], "r-9")
    assert answer.headers["x-request-id"] == "r-9"


def test_a_request_id_is_made_when_there_is_none_or_a_bad_one(desk: Desk) -> None:
    said, body = call(MODERN, arguments={"agent_id": "a"})
    first, second = (curl(desk.mcp, said | extra, body) for extra in ({}, {"x-request-id": "bad id"}))
    made = {answer.headers["x-request-id"] for answer in (first, second)}
    assert len(made) == 2
    assert "bad id" not in made
    assert first.structured["request_id"] == first.headers["x-request-id"]


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_id_said_twice_is_nobodys(desk: Desk, era: Era) -> None:
    said, body = call(era)
    answer = curl(desk.mcp, said | {"x-agent-id": "agent-1", "X-Agent-Id": "agent-2"}, body)
    assert answer.error == (-32602, "Invalid agent ID format: agent-1, agent-2")


# Many concurrent callers through one server and one client: nobody gets another's answer


CALLERS = 50
CALLS = 12
AT_ONCE = 100
SECONDS = 120

# Sends one request and gives (agent, user, request id) as the server saw them.
Ask = Callable[[str, str], Awaitable[tuple[str | None, str | None, str]]]


async def strangers(ask: Ask) -> list[tuple[str, str | None]]:
    """Every answer that belongs to another caller."""
    wrong: list[tuple[str, str | None]] = []
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(agent: str, number: int) -> None:
        async with limit:
            request = f"{agent}-{number}"
            agent_id, user_id, request_id = await ask(agent, request)
        if (agent_id, request_id) != (agent, request) or user_id not in (None, f"user-of-{agent}"):
            wrong.append((agent, agent_id))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as callers:
            for number in range(CALLS):
                for caller in range(CALLERS):
                    callers.start_soon(one, f"agent-{caller}", number)
    return wrong


def told(answer: Answer) -> tuple[str | None, str | None, str]:
    who = answer.structured
    return who["agent_id"], who["user_id"], who["request_id"]


@shows("ID-ISOLATION")
async def test_over_http_every_answer_belongs_to_its_caller(desk: Desk) -> None:
    eras = cycle(ERAS)
    async with httpx2.AsyncClient(timeout=SECONDS) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            said, body = call(next(eras))
            response = await client.post(
                desk.mcp, headers=said | {"x-agent-id": agent, "x-request-id": request}, content=body
            )
            return told(Answer(response.status_code, response.headers, response.content))

        assert await strangers(ask) == []


async def test_with_keys_every_answer_belongs_to_the_keys_agent_and_user(desk: Desk) -> None:
    keys: dict[str, str] = {}
    async with open_app(settings_with(FRONTDESK_DATA=desk.data)) as app:
        for agent in (f"agent-{number}" for number in range(CALLERS // 2)):
            made = await app.identity.create_key(name="", agent_id=agent, user_id=f"user-of-{agent}")
            keys[agent] = made[1]
    async with httpx2.AsyncClient(timeout=SECONDS) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            said, body = call(MODERN)
            shown = keys.get(agent)
            proof = {"authorization": f"Bearer {shown}"} if shown else {"x-agent-id": agent}
            response = await client.post(desk.mcp, headers=said | proof | {"x-request-id": request}, content=body)
            answer = told(Answer(response.status_code, response.headers, response.content))
            assert (answer[1] is None) == (shown is None)
            return answer

        assert await strangers(ask) == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_one_mcp_client_can_speak_for_many(desk: Desk, mode: str) -> None:
    async with Client(desk.mcp, mode=mode) as client:

        async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
            answer = await client.call_tool("whoami", {"agent_id": agent})
            assert answer.structured_content is not None
            return answer.structured_content["agent_id"], answer.structured_content["user_id"], request

        assert await strangers(ask) == []


class RememberingIdentity(Identity):
    """A wrong design: a caller that is kept from one request to the next."""

    kept: Caller | None = None

    async def identify(self, signals: Signals) -> Caller:
        self.kept = self.kept or await super().identify(signals)
        await anyio.lowlevel.checkpoint()
        return replace(self.kept, request_id=signals.request_id)


class SharingIdentity(Identity):
    """Another wrong design: one variable that holds the callers of two requests for a moment."""

    current: Caller | None = None

    async def identify(self, signals: Signals) -> Caller:
        self.current = await super().identify(signals)
        await anyio.lowlevel.checkpoint()
        return replace(self.current, request_id=signals.request_id)


@pytest.mark.parametrize(("kind", "least"), [(RememberingIdentity, CALLS * (CALLERS - 1)), (SharingIdentity, 1)])
async def test_an_identity_that_is_kept_is_caught(app: App, kind: type[Identity], least: int) -> None:
    keeping = kind.__new__(kind)
    keeping.__dict__ |= app.identity.__dict__
    other = copy(app)
    other.identity = keeping
    asgi = build_application(other)

    async def ask(agent: str, request: str) -> tuple[str | None, str | None, str]:
        said, body = call(MODERN)
        return told(await send(asgi, said | {"x-agent-id": agent, "x-request-id": request}, body))

    assert len(await strangers(ask)) >= least
