"""Seed 001's integration tests, each under the name that its sentence has there."""

from types import SimpleNamespace

import pytest

from frontdesk.agent365 import McpToolServerConfigurationService, OperationResult
from tests.requirements import shows
from tests.support.gateways import Gateway, chatting, jwt, opened, servers
from tests.support.platform import local_platform

ENTRA = "11111111-2222-3333-4444-555555555555"


@shows("A365-SEED-I1")
async def test_verify_header_is_sent_in_list_tool_servers_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(Gateway(servers("mail"))) as gateway:
        for name, value in gateway.environ().items():
            monkeypatch.setenv(name, value)
        found = await McpToolServerConfigurationService().list_tool_servers("app", jwt(appid=ENTRA))
    assert [server.mcp_server_name for server in found] == ["mail"]
    [asked] = gateway.requests
    assert f"x-ms-agentid: {ENTRA}\r\n".encode() in asked.raw


@shows("A365-SEED-I2")
async def test_verify_header_is_not_sent_in_send_chat_history_requests_no_auth_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT365_APPLICATION_NAME", "desk")
    context = chatting(from_=SimpleNamespace(agentic_app_blueprint_id=ENTRA))
    async with opened(Gateway()) as gateway:
        for name, value in gateway.environ().items():
            monkeypatch.setenv(name, value)
        result = await McpToolServerConfigurationService().send_chat_history(context, [])
    assert result is OperationResult.success()
    [asked] = gateway.requests
    assert b"agentid" not in asked.raw.lower()
    assert "authorization" not in asked.headers


@shows("A365-AGENTID")
async def test_the_local_platform_sees_who_asks_and_not_who_chats() -> None:
    with local_platform({"mcpServers": [{"mcpServerName": "mail"}]}) as platform:
        environ = {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": platform.url}
        async with McpToolServerConfigurationService(environ=environ) as service:
            [found] = await service.list_tool_servers(ENTRA, platform.token(appid=ENTRA))
            assert (await service.send_chat_history(chatting(), [])).succeeded
        assert found.url == f"{platform.url}/agents/servers/mail"
        assert [(seen["method"], seen["agentId"]) for seen in platform.requests()] == [("GET", ENTRA), ("POST", None)]
