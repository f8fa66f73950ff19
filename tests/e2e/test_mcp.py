"""Tests MCP over standard input and output, and over the old HTTP+SSE transport."""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from frontdesk.app import open_app
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.chat import key
from tests.support.desk import START_SECONDS, STOP_SECONDS, Desk, clean_environment, frontdesk_here, open_desk

# `frontdesk mcp`: the same tools over standard input and output


HEALTH_CALLS = 10
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
FRAMES: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "whoami", "arguments": {"agent_id": "bad id"}},
    },
    {"jsonrpc": "2.0", "id": 3, "method": "nonsense"},
    {
        "jsonrpc": "2.0",
        "id": 4,
        "method": "tools/call",
        "params": {"name": "whoami", "arguments": {"agent_id": "agent-1"}},
    },
    *(
        {"jsonrpc": "2.0", "id": 5 + number, "method": "tools/call", "params": {"name": "health"}}
        for number in range(HEALTH_CALLS)
    ),
)


def environment(folder: Path, **settings: str) -> dict[str, str]:
    return clean_environment(FRONTDESK_DATA=str(folder / "data"), **settings)


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """With a client that sends everything immediately, nonsense included, and closes its end."""
    return subprocess.run(
        [sys.executable, "-m", "frontdesk", "mcp"],
        env=environment(tmp_path_factory.mktemp("stdio"), FRONTDESK_LOG_LEVEL="debug", DEBUG_AGENT_ID_SOURCE="true"),
        input="\n".join([*(json.dumps(frame) for frame in FRAMES), "not json", "[]", ""]),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_starts_us_is_known_by_parameter_or_environment(tmp_path: Path, mode: str) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "frontdesk", "mcp"],
        env=environment(tmp_path, LETTA_AGENT_ID="agent-env", FRONTDESK_HOST="0.0.0.0"),
    )
    with anyio.fail_after(START_SECONDS):
        async with Client(stdio_client(started), mode=mode) as client:
            named = (await client.call_tool("whoami", {"agent_id": "agent-1"})).structured_content
            default = (await client.call_tool("whoami", {})).structured_content
    assert named is not None
    assert default is not None
    assert (named["agent_id"], named["source"]) == ("agent-1", "parameter")
    assert (default["agent_id"], default["source"]) == ("agent-env", "environment")


@shows("MCP-STDIO")
def test_nothing_but_protocol_goes_to_standard_output(conversation: subprocess.CompletedProcess[str]) -> None:
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in conversation.stdout.splitlines())
    assert "agent_id_source" in conversation.stderr
    assert conversation.returncode == 0


def test_a_client_that_has_said_its_last_word_still_gets_every_answer(
    conversation: subprocess.CompletedProcess[str],
) -> None:
    answers = [frame for frame in map(json.loads, conversation.stdout.splitlines()) if frame.get("id") is not None]
    assert sorted(answer["id"] for answer in answers) == list(range(1, 5 + HEALTH_CALLS))
    assert {answer["id"] for answer in answers if "error" in answer} == {2, 3}


@pytest.mark.anyio
async def test_the_memory_tools_are_for_the_person_whose_key_is_set_and_for_nobody_else(tmp_path: Path) -> None:
    keys = {user: await made_key(tmp_path, user) for user in ("ann", "bob")}
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "frontdesk", "mcp", "--door", "memory"],
        env=environment(tmp_path, ZMEMORY_API_KEY=keys["ann"]),
    )
    with anyio.fail_after(START_SECONDS):
        async with Client(stdio_client(started)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("create_task", {"title": "Of Ann's"})
            hers = (await client.call_tool("search_tasks", {})).structured_content
            left = (await client.call_tool("set_access_token", {"access_token": keys["ann"]})).structured_content
            with pytest.raises(MCPError, match="another person"):
                await client.call_tool("set_access_token", {"access_token": keys["bob"]})
            await client.call_tool("clear_auth", {})
            again = (await client.call_tool("get_user_info", {})).structured_content
    assert len(tools) == 43
    assert not {"find_tools", "get_categories", "whoami"} & tools
    assert hers is not None
    assert [task["title"] for task in hers["tasks"]] == ["Of Ann's"]
    assert left == {"user_id": "ann", "kept": True}
    assert again is not None
    assert again["sub"] == "ann"


def test_a_key_that_does_not_hold_is_told_before_anybody_calls(tmp_path: Path) -> None:
    done = frontdesk_here("mcp", data=tmp_path / "data", ZMEMORY_API_KEY="zm_wrong")
    assert done.returncode == 2
    assert "ZMEMORY_API_KEY does not hold" in done.stderr


async def made_key(folder: Path, user: str) -> str:
    async with open_app(settings_with(FRONTDESK_DATA=folder / "data")) as app:
        return await key(app, user)


# The old HTTP+SSE transport, with a client that supports no other


SECONDS = 60


@pytest.mark.anyio
async def test_an_sse_client_is_served_and_known_and_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    with open_desk(tmp_path / "data") as desk:
        with anyio.fail_after(SECONDS):
            await be_served(desk)
        client = httpx2.AsyncClient(base_url=desk.url, timeout=STOP_SECONDS)
        async with client, client.stream("GET", "/sse") as stream:
            assert stream.status_code == 200
            desk.process.send_signal(signal.SIGTERM)
            with suppress(httpx2.RemoteProtocolError, httpx2.ReadError):
                async for _ in stream.aiter_lines():
                    continue
        assert desk.process.wait(STOP_SECONDS) == 0


async def be_served(desk: Desk) -> None:
    async with Client(sse_client(f"{desk.url}/sse", headers={"x-agent-id": "agent-1"}), mode="legacy") as client:
        answer = await client.call_tool("whoami", {})
        refused: MCPError | None = None
        try:
            await client.call_tool("whoami", {"agent_id": "agent-2"})
        except MCPError as error:
            refused = error
    assert answer.structured_content is not None
    assert (answer.structured_content["agent_id"], answer.structured_content["source"]) == ("agent-1", "header")
    assert refused is not None
    assert refused.code == -32602
