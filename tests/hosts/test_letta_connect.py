"""A real Letta agent calls Frontdesk's tools: known by its header, and proven once it is connected with a key."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import AgentHost, NewAgent
from frontdesk.llm.events import Done, StopReason, ToolReturn
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.conftest import NOBODY_THERE, PASSWORD
from tests.hosts.lab import of_kind, opened, script, take
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk, open_desk
from tests.support.letta import LettaServer

pytestmark = pytest.mark.anyio
MODEL = "openai-proxy/fake-1"
CALL = script({"tool": "whoami", "args": {}}, {"text": "so that is me"})


@pytest.fixture
def reach(letta: LettaServer) -> dict[str, str]:
    return {"LETTA_BASE_URL": letta.url, "LETTA_SERVER_PASSWORD": PASSWORD}


@pytest.fixture
def desk(tmp_path: Path, reach: dict[str, str]) -> Iterator[Desk]:
    with open_desk(tmp_path / "data", STRICT_AGENT_ID_VALIDATION="true", **reach) as running:
        yield running


@shows("LETTA-PROOF")
async def test_an_agent_of_letta_is_known_by_header_and_after_connect_it_is_proven(
    desk: Desk, reach: dict[str, str]
) -> None:
    settings: Settings = settings_with(FRONTDESK_DATA=desk.data, **reach)
    async with opened(settings) as host, AsyncLetta(base_url=reach["LETTA_BASE_URL"], api_key=PASSWORD) as client:
        plain, connected = [await host.create(NewAgent(name, model=MODEL)) for name in ("Ann", "Ben")]
        server = await client.mcp_servers.create(
            server_name="plain", config={"mcp_server_type": "streamable_http", "server_url": desk.mcp}
        )
        assert server.id is not None
        tools = {tool.name: tool.id for tool in await client.mcp_servers.tools.list(server.id)}
        await client.agents.tools.attach(tools["whoami"], agent_id=plain.id)
        who = await whoami(host, plain.id)
        assert (who["agent_id"], who["source"], who["verified"]) == (plain.id, "header", False)
        await client.mcp_servers.delete(server.id)
        told = frontdesk("letta", "connect", connected.id, "--url", desk.mcp, data=desk.data, **reach)
        assert told.returncode == 0, told.stderr
        who = await whoami(host, connected.id)
        assert (who["agent_id"], who["source"], who["verified"]) == (connected.id, "credential", True)
        again = frontdesk("letta", "connect", connected.id, "--url", desk.mcp, data=desk.data, **reach)
        assert again.returncode == 0, again.stderr
        assert (await whoami(host, connected.id))["verified"] is True
        assert len([one for one in await client.mcp_servers.list() if one.server_name == "frontdesk"]) == 1
    assert "fd_" not in desk.logged()


async def test_where_letta_cannot_reach_frontdesk_it_is_said_in_words_and_nothing_stays_registered(
    tmp_path: Path, reach: dict[str, str]
) -> None:
    data = tmp_path / "data"
    async with AsyncLetta(base_url=reach["LETTA_BASE_URL"], api_key=PASSWORD) as client:
        for server in await client.mcp_servers.list():
            await client.mcp_servers.delete(server.id or "")
        told = frontdesk("letta", "connect", "--url", f"{NOBODY_THERE}/mcp", data=data, **reach)
        assert not await client.mcp_servers.list()
    assert told.returncode == 2
    assert f"could not read the tools at {NOBODY_THERE}/mcp. Frontdesk must run there" in told.stderr
    assert told.stderr.count(NOBODY_THERE) == 1
    keys = frontdesk("keys", "list", data=data).stdout.splitlines()[1:]
    assert ["revoked" in key for key in keys] == [True]


async def whoami(host: AgentHost, agent_id: str) -> dict[str, Any]:
    events = await take(host, agent_id, CALL)
    assert events[-1] == Done(StopReason.END_TURN)
    return json.loads(of_kind(events, ToolReturn)[0].text)
