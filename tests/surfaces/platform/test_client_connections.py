"""One client for many: nothing of one who asks reaches another, and no connection is left behind."""

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from frontdesk.agent365 import McpToolServerConfigurationService, reset_application_name_cache
from frontdesk.mcp_client.http import HttpClient
from tests.requirements import shows
from tests.support.gateways import Answer, Gateway, GatewayCall, chatting, jwt, opened, servers, turn, whole
from tests.support.serving import serve
from tests.support.waiting import until

MANY = 50


class Mirror(Gateway):
    """Lists one server, named after the token that asks."""

    @override
    def answer_to(self, asked: GatewayCall) -> Answer:
        return servers({"mcpServerName": asked.headers["authorization"].split()[1], "publisher": asked.target})


async def app(scope: Any, receive: Any, send: Any) -> None:
    """A platform in another thread, for whoever has no loop of its own to run one on."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'[{"mcpServerName": "mail"}]'})


@shows("A365-TOKENS")
@pytest.mark.parametrize("kept", [True, False])
async def test_many_who_ask_at_once_get_each_their_own(kept: bool) -> None:
    async with opened(Mirror()) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())

        async def ask(number: int) -> None:
            token = jwt(appid=f"agent-{number}")
            [found] = await service.list_tool_servers(f"app-{number}", token, turn_context=turn(id=f"turn-{number}"))
            assert found.mcp_server_name == token
            assert found.publisher == f"/agents/v2/app-{number}/mcpServers"

        if kept:
            async with service:
                await asyncio.gather(*map(ask, range(MANY)))
        else:
            await asyncio.gather(*map(ask, range(MANY)))
        await until(lambda: gateway.open == 0)
    said = {
        tuple(asked.headers[name] for name in ("x-ms-agentid", "x-ms-correlation-id")) for asked in gateway.requests
    }
    assert said == {(f"agent-{number}", f"turn-{number}") for number in range(MANY)}


async def test_on_its_own_each_call_leaves_no_connection_behind() -> None:
    async with opened(Gateway(servers("mail"), whole(""), whole("no", 401))) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())
        await service.list_tool_servers("app", "t")
        await service.send_chat_history(chatting(), [])
        with pytest.raises(Exception, match="401"):
            await service.list_tool_servers("app", "t")
        await until(lambda: gateway.open == 0)
    assert gateway.connections == 3
    # What was left open would say so now, and a warning is an error.
    gc.collect()


async def test_inside_a_block_the_connection_is_kept_and_then_closed() -> None:
    async with opened(Gateway(servers("mail"))) as gateway:
        async with McpToolServerConfigurationService(environ=gateway.environ()) as service:
            for _ in range(3):
                assert len(await service.list_tool_servers("app", "t")) == 1
            assert gateway.open == 1
        await until(lambda: gateway.open == 0)
        assert gateway.connections == 1
        assert len(await service.list_tool_servers("app", "t")) == 1, "it goes on without the block"
        async with service:
            assert len(await service.list_tool_servers("app", "t")) == 1
        await until(lambda: gateway.open == 0)
    gc.collect()


async def test_a_client_of_somebody_elses_is_used() -> None:
    async with opened(Gateway(servers("mail"))) as gateway:
        http = HttpClient()
        service = McpToolServerConfigurationService(environ=gateway.environ(), http=http)
        for _ in range(2):
            assert len(await service.list_tool_servers("app", "t")) == 1
        await http.close()
        await until(lambda: gateway.open == 0)
    assert gateway.connections == 1


def test_one_client_serves_one_loop_after_the_other() -> None:
    with serve(app) as url:
        environ = {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": url}
        service = McpToolServerConfigurationService(environ=environ)

        async def ask() -> str:
            async with service:
                [inside] = await service.list_tool_servers("app", "t")
            [outside] = await service.list_tool_servers("app", "t")
            return inside.mcp_server_name + outside.mcp_server_name

        assert [asyncio.run(ask()) for _ in range(2)] == ["mailmail"] * 2
    gc.collect()


@shows("A365-DISCOVER")
async def test_a_folder_that_is_gone_does_not_keep_anybody_from_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    reset_application_name_cache()
    async with opened(Gateway(servers("mail"))) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())
        assert len(await service.list_tool_servers("app", "opaque")) == 1
        assert (await service.send_chat_history(chatting(), [])).succeeded
    assert "x-ms-agentid" not in gateway.requests[0].headers


async def test_the_manifest_is_read_anew_each_time(tmp_path: Path) -> None:
    service, file = McpToolServerConfigurationService(environ={}), tmp_path / "ToolingManifest.json"
    for name in ("one", "two"):
        file.write_text(json.dumps({"mcpServers": [{"mcpServerName": name}]}))
        assert [server.mcp_server_name for server in await service.list_tool_servers("")] == [name]
