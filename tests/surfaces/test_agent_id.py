"""The five ways to name an agent and the three ways to get it wrong, over real HTTP, in every era."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from tests.requirements import shows
from tests.support.desk import Desk
from tests.support.wire import ERAS, MODERN, Era, call, curl

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
