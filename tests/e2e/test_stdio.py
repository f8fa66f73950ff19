"""`frontdesk mcp`: the same tools over standard input and output."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.requirements import shows
from tests.support.desk import START_SECONDS, clean_environment

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
    """With a client that says everything it has to say, nonsense among it, and closes its end at once."""
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
