"""`frontdesk mcp`: the same tools over standard input and output."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.requirements import shows
from tests.support.desk import clean_environment

SECONDS = 30


def environment(tmp_path: Path, **settings: str) -> dict[str, str]:
    return clean_environment(FRONTDESK_DATA=str(tmp_path / "data"), **settings)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_starts_us_is_known_by_parameter_or_environment(tmp_path: Path, mode: str) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "frontdesk", "mcp"],
        env=environment(tmp_path, LETTA_AGENT_ID="agent-env", FRONTDESK_HOST="0.0.0.0"),
    )
    async with Client(stdio_client(started), mode=mode) as client:
        named = await client.call_tool("whoami", {"agent_id": "agent-1"})
        default = await client.call_tool("whoami", {})
    assert named.structured_content is not None
    assert default.structured_content is not None
    assert (named.structured_content["agent_id"], named.structured_content["source"]) == ("agent-1", "parameter")
    assert (default.structured_content["agent_id"], default.structured_content["source"]) == (
        "agent-env",
        "environment",
    )


@shows("MCP-STDIO")
def test_nothing_but_protocol_goes_to_standard_output(tmp_path: Path) -> None:
    frames = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
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
    ]
    said = "\n".join([*(json.dumps(frame) for frame in frames), "not json", "[]", ""])
    process = subprocess.Popen(
        [sys.executable, "-m", "frontdesk", "mcp"],
        env=environment(tmp_path, FRONTDESK_LOG_LEVEL="debug", DEBUG_AGENT_ID_SOURCE="true"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(said)
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(4)]
    rest, log = process.communicate(timeout=SECONDS)
    assert sorted(answer["id"] for answer in answers if answer.get("id")) == [1, 2, 3, 4]
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert "agent_id_source" in log
    assert process.returncode == 0


def test_a_client_that_has_said_its_last_word_still_gets_every_answer(tmp_path: Path) -> None:
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": 2 + n, "method": "tools/call", "params": {"name": "health"}} for n in range(10)),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "frontdesk", "mcp"],
        env=environment(tmp_path),
        input="".join(json.dumps(frame) + "\n" for frame in frames),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == list(range(1, 12))
    assert done.returncode == 0
