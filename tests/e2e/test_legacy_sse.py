"""The old HTTP+SSE transport, with a client that knows no other."""

import signal
from contextlib import suppress
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError

from tests.support.desk import STOP_SECONDS, Desk, open_desk

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
