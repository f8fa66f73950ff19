"""Which servers an agent has, asked of a real server: what is sent, and what each answer comes to."""

import logging
import platform
import re
from collections.abc import Mapping
from types import SimpleNamespace
from uuid import UUID

import pytest

from frontdesk.agent365 import (
    DiscoveryFailed,
    InvalidArgument,
    MCPServerConfig,
    McpToolServerConfigurationService,
    PlatformUnreachable,
    PlatformUnreadable,
    ToolOptions,
)
from frontdesk.errors import FrontdeskError
from tests.requirements import shows
from tests.support.gateways import Gateway, jwt, opened, servers, turn, whole

TOKEN = jwt(appid="application", azp="other")
PRODUCTION = {"PYTHON_ENVIRONMENT": "Production"}


async def listed(gateway: Gateway, token: str = TOKEN, **more: str) -> list[MCPServerConfig]:
    service = McpToolServerConfigurationService(environ=gateway.environ(**more), retries=0)
    return await service.list_tool_servers("app", token)


@shows("A365-DISCOVER")
async def test_the_platform_is_asked_as_it_expects() -> None:
    context = turn(id="turn-1", channel_id="msteams:copilot", from_=SimpleNamespace(agentic_app_blueprint_id="blue"))
    async with opened(Gateway()) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())
        await service.list_tool_servers("app", TOKEN, ToolOptions("OpenAI"), turn_context=context)
    [asked] = gateway.requests
    assert (asked.method, asked.target, asked.body) == ("GET", "/agents/v2/app/mcpServers", b"")
    agent = asked.headers["user-agent"]
    assert re.fullmatch(r"Agent365SDK/\S+ \(\w+; Python [^;]+; OpenAI\)", agent)
    assert platform.python_version() in agent
    assert {name: value for name, value in asked.headers.items() if name not in {"user-agent", "host"}} == {
        "authorization": f"Bearer {TOKEN}",
        "x-ms-agentid": "blue",
        "x-ms-correlation-id": "turn-1",
        "x-ms-channel-id": "msteams",
        "x-ms-subchannel-id": "copilot",
        "accept-encoding": "identity",
    }


@shows("A365-AGENTID")
@pytest.mark.parametrize(
    ("token", "environ", "agent"),
    [
        (jwt(xms_par_app_azp="blueprint", appid="app"), {}, "blueprint"),
        (f"Bearer {jwt(appid='app')}", {}, "app"),
        ("opaque", {"AGENT365_APPLICATION_NAME": "Zoë\u2019s desk"}, "Zoe's desk"),
        ("opaque", {}, None),
    ],
)
async def test_discovery_names_the_agent_by_the_best_that_is_known(
    token: str, environ: Mapping[str, str], agent: str | None
) -> None:
    async with opened(Gateway()) as gateway:
        await listed(gateway, token, **environ)
    [asked] = gateway.requests
    assert asked.headers.get("x-ms-agentid") == agent
    assert asked.headers["authorization"] == f"Bearer {token.removeprefix('Bearer ')}"
    assert UUID(asked.headers["x-ms-correlation-id"]).version == 4


@shows("A365-HOSTILE")
@pytest.mark.parametrize("app_id", ["../x?y=1", "a/b#c", "ü\r\nx: y", "%2e%2e", " "])
async def test_an_app_id_stays_one_part_of_the_path(app_id: str) -> None:
    async with opened(Gateway()) as gateway:
        await McpToolServerConfigurationService(environ=gateway.environ()).list_tool_servers(app_id, "t")
    [asked] = gateway.requests
    assert re.fullmatch(r"/agents/v2/[^/?#]+/mcpServers", asked.target)


@shows("A365-DISCOVER")
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
async def test_servers_are_read_wrapped_or_bare_whatever_the_answer_calls_itself(kind: str) -> None:
    entries = [{"mcpServerName": "mail", "url": "http://host/mail"}, 5, {"mcpServerUniqueName": "mcp_files"}]
    async with opened(Gateway(whole({"mcpServers": entries}, Content_Type=kind), whole(entries))) as gateway:
        first, second = await listed(gateway), await listed(gateway)
        built = f"{gateway.url}/agents/servers/mcp_files"
    assert first == second
    assert [(server.mcp_server_name, server.url) for server in first] == [
        ("mail", "http://host/mail"),
        ("mcp_files", built),
    ]


@shows("A365-DISCOVER")
@pytest.mark.parametrize("document", ["{}", '{"mcpServers": {}}', "null", "5", '"x"', "", "  ", '{"error": "no"}'])
async def test_any_other_answer_is_no_servers_and_a_warning(document: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(Gateway(whole(document))) as gateway:
        with caplog.at_level(logging.WARNING, "frontdesk.agent365"):
            assert await listed(gateway) == []
    assert "no list of MCP servers" in caplog.text


@shows("A365-DISCOVER")
@pytest.mark.parametrize("status", [201, 202, 204, 206, 301, 304, 400, 401, 403, 404, 429, 500, 503])
async def test_any_status_but_200_is_told_with_the_body(status: int) -> None:
    empty = status in {204, 304}
    async with opened(Gateway(whole("" if empty else "why not", status))) as gateway:
        with pytest.raises(DiscoveryFailed) as failed:
            await listed(gateway)
    body = "" if empty else "why not"
    assert (failed.value.status, failed.value.body) == (status, body)
    assert str(failed.value) == f"Failed to read MCP servers from endpoint: HTTP {status}: {body}"
    assert isinstance(failed.value, FrontdeskError)


async def test_of_a_long_refusal_as_much_is_told_as_somebody_reads() -> None:
    async with opened(Gateway(whole("x" * 100_000, 500))) as gateway:
        with pytest.raises(DiscoveryFailed) as failed:
            await listed(gateway)
    assert failed.value.body == "x" * 2_000


@shows("A365-DISCOVER")
@pytest.mark.parametrize("body", ["<html>", "{", '{"mcpServers": [}', "[1,]"])
async def test_an_answer_that_is_no_json_is_unreadable(body: str) -> None:
    async with opened(Gateway(whole(body))) as gateway:
        with pytest.raises(PlatformUnreadable, match="Failed to parse MCP server configuration response: "):
            await listed(gateway)


@pytest.mark.parametrize("body", ["[" * 100_000, "9" * 5_000])
async def test_json_that_nobody_can_hold_is_unreadable(body: str) -> None:
    async with opened(Gateway(whole(body))) as gateway:
        with pytest.raises(PlatformUnreadable, match=r"Failed to (parse|read) MCP server"):
            await listed(gateway)


@shows("A365-DISCOVER")
async def test_nobody_there_is_told_as_a_connection_error() -> None:
    async with opened(Gateway()) as gateway:
        pass
    with pytest.raises(
        PlatformUnreachable, match="Failed to connect to MCP configuration endpoint: ConnectError"
    ) as away:
        await listed(gateway)
    assert isinstance(away.value, ConnectionError)


@shows("A365-DISCOVER")
@pytest.mark.parametrize("nothing", ["", None])
async def test_in_production_app_and_token_are_needed(nothing: str | None) -> None:
    service = McpToolServerConfigurationService(environ=PRODUCTION)
    with pytest.raises(ValueError, match=r"^agentic_app_id cannot be empty or None$"):
        await service.list_tool_servers(nothing or "", "token")
    with pytest.raises(ValueError, match=r"^auth_token cannot be empty or None$"):
        await service.list_tool_servers("app", nothing)


@pytest.mark.parametrize(("app_id", "token"), [("..", "t"), ("x" * 257, "t"), ("app", "a\r\nb"), ("app", "   ")])
async def test_what_cannot_be_sent_is_refused_before_anything_is(app_id: str, token: str) -> None:
    async with opened(Gateway()) as gateway:
        with pytest.raises(InvalidArgument):
            await McpToolServerConfigurationService(environ=gateway.environ()).list_tool_servers(app_id, token)
    assert gateway.connections == 0


async def test_an_address_that_is_none_is_refused() -> None:
    service = McpToolServerConfigurationService(environ={**PRODUCTION, "MCP_PLATFORM_ENDPOINT": "nowhere"})
    with pytest.raises(InvalidArgument, match="MCP_PLATFORM_ENDPOINT"):
        await service.list_tool_servers("app", "t")


@shows("A365-DISCOVER")
async def test_while_developing_the_platform_is_not_asked() -> None:
    async with opened(Gateway(servers("mail"))) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ(PYTHON_ENVIRONMENT="Development"))
        assert await service.list_tool_servers("", None) == []
    assert gateway.connections == 0
