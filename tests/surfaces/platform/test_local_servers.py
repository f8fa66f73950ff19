"""The tool servers of the local platform are real MCP servers, whose tools answer as the manifest says."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from frontdesk.mcp_client.model import McpServer
from frontdesk.mcp_client.pool import McpClientPool
from tests.requirements import shows
from tests.support.calling import call
from tests.support.platform import SECONDS, LocalPlatform, local_platform

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "count": {"type": "integer"}}, "required": ["to"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "send", "description": "Sends.", "inputSchema": SCHEMA, "responseTemplate": "To {{ TO }}: {{subject}}!"},
    {"name": "off", "description": "Is not there.", "enabled": False, "responseTemplate": "never"},
    {"name": "any", "description": "Takes all.", "responseTemplate": "{{a}}|{{b}}|{{c}}|{{d}}"},
    {"name": "mute", "description": "Says nothing."},
    {"name": "slow", "description": "Takes its time.", "delayMs": 60_000, "responseTemplate": "at last"},
    {"name": "down", "description": "Fails.", "statusCode": 503, "delayMs": 2000, "responseTemplate": "never"},
    {"name": "gone", "description": "Fails.", "statusCode": 204},
    {"name": "dice", "description": "Fails at times.", "errorRate": 0.5, "responseTemplate": "well"},
    {
        "name": "door",
        "description": "Opens and shuts.",
        "states": [
            {"in": "start", "next": "open", "responseTemplate": "opened by {{who}}"},
            {"in": "open", "next": "start", "responseTemplate": "shut"},
        ],
    },
    {"name": "walk", "description": "In.", "states": [{"in": "open", "responseTemplate": "in"}]},
    {"name": "knock", "description": "Fails.", "states": [{"responseTemplate": "nobody home", "isError": True}]},
]
MANIFEST = {
    "mcpServers": [
        {"mcpServerName": "Mail", "mcpServerUniqueName": "mail-1", "tools": TOOLS},
        {"mcpServerName": "Bare"},
        {"mcpServerName": "a/b ../ä", "tools": TOOLS[:1]},
    ]
}
slept: list[float] = []


async def note_sleep(seconds: float) -> None:
    slept.append(seconds)


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform(MANIFEST, seed=7, sleep=note_sleep) as running:
        yield running


@asynccontextmanager
async def client(platform: LocalPlatform, mode: str, server: str = "Mail") -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=platform.headers(), timeout=SECONDS) as http,
        Client(
            streamable_http_client(f"{platform.url}/agents/servers/{server}", http_client=http), mode=mode
        ) as connected,
    ):
        yield connected


@shows("A365-LOCAL")
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("server", ["Mail", "Mail/", "mail-1"])
async def test_a_client_of_either_era_lists_and_calls(platform: LocalPlatform, mode: str, server: str) -> None:
    async with client(platform, mode, server) as connected:
        listed = [tool.name for tool in (await connected.list_tools()).tools]
        assert listed == [tool["name"] for tool in TOOLS if tool.get("enabled", True)]
        result = await connected.call_tool("send", {"to": "ann"})
        prompts, resources = await connected.list_prompts(), await connected.list_resources()
        templates = await connected.list_resource_templates()
    assert isinstance(result.content[0], TextContent)
    assert result.content[0].text == "To ann: !"
    assert result.structured_content == {
        "response": "To ann: !",
        "isMock": True,
        "tool": "send",
        "usedArguments": {"to": "ann"},
        "template": "To {{ TO }}: {{subject}}!",
        "missingPlaceholders": ["subject"],
        "state": "start",
    }
    assert (prompts.prompts, resources.resources, templates.resource_templates) == ([], [], [])


@pytest.mark.anyio
async def test_our_own_client_calls_too(platform: LocalPlatform) -> None:
    clients = McpClientPool(timeout=SECONDS)
    server = McpServer("mail", f"{platform.url}/agents/servers/Mail", platform.headers())
    ours = clients.client(server, None, None)
    told = await call(ours, "send", {"to": "bob"})
    refused = await call(ours, "send", {"too": "bob"})
    await clients.close()
    assert told.ok
    assert "To bob" in told.text
    assert not refused.ok
    assert "did you mean 'to'?" in refused.text


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["off", "unknown"])
async def test_a_tool_that_is_switched_off_is_unknown(platform: LocalPlatform, name: str) -> None:
    async with client(platform, "legacy") as connected:
        with pytest.raises(MCPError, match=f"Unknown tool: {name}; Mail has: send"):
            await connected.call_tool(name, {})


def test_what_clients_send_besides_is_answered(platform: LocalPlatform) -> None:
    assert platform.rpc("Mail", "ping").json()["result"] == {}
    assert platform.rpc("Mail", "logging/setLevel", {"level": "debug"}).json()["result"] == {}
    url, notice = f"{platform.url}/agents/servers/Mail", {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert platform.http.post(url, json=notice, headers=platform.headers()).status_code == 202
    assert platform.requests()[-1]["rpcMethod"] == "notifications/initialized"
    assert platform.http.get(url, headers=platform.headers()).status_code == 405


def test_a_server_without_tools_lists_none(platform: LocalPlatform) -> None:
    assert platform.rpc("Bare", "tools/list").json()["result"]["tools"] == []


def test_a_name_of_any_kind_is_found_when_it_is_encoded(platform: LocalPlatform) -> None:
    assert platform.call("a/b ../ä", "send", to="x")["content"][0]["text"] == "To x: !"


@pytest.mark.parametrize("name", ["mail", "MAIL", "Mail ", "../Mail", "x\ny", "%2e%2e", "Mail/x", "Mail\0"])
def test_an_unknown_server_is_told_which_there_are(platform: LocalPlatform, name: str) -> None:
    found = platform.rpc(name, "tools/list")
    assert found.status_code == 404
    assert found.json()["servers"] == ["Mail", "Bare", "a/b ../ä"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "to: is missing (string)"),
        ({"to": 5}, "to: expected string, got 5"),
        ({"to": "x", "count": "y"}, "integer"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_of_the_tool(
    platform: LocalPlatform, arguments: dict[str, object], problem: str
) -> None:
    result = platform.call("Mail", "send", **arguments)
    assert result["isError"]
    assert problem in result["content"][0]["text"]


def test_values_are_put_in_as_text_once_and_are_never_looked_at_again(platform: LocalPlatform) -> None:
    values: dict[str, object] = {"A": "{{b}} {{c}}", "b": {"x": ["ü", None]}, "C": None, "c": "own case first"}
    result = platform.call("Mail", "any", **values)
    assert result["content"][0]["text"] == '{{b}} {{c}}|{"x": ["ü", null]}|own case first|'
    assert result["structuredContent"]["missingPlaceholders"] == ["d"]


def test_half_a_character_and_depth_without_end_break_nothing(platform: LocalPlatform) -> None:
    assert "�" in platform.call("Mail", "any", a="\ud800")["content"][0]["text"]
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    result = platform.call("Mail", "any", a=deep)
    assert result["isError"]
    assert "nested too deep" in result["content"][0]["text"]


def test_what_a_few_placeholders_make_of_a_long_value_has_an_end() -> None:
    tools = [{"name": "echo", "description": "Echoes.", "responseTemplate": "{{a}}" * 100}]
    with local_platform({"mcpServers": [{"mcpServerName": "S", "tools": tools}]}) as platform:
        text = platform.call("S", "echo", a="x" * 1_000_000)["content"][0]["text"]
    assert len(text) == 4 * 1024 * 1024


def test_a_tool_of_which_nothing_is_said_says_so(platform: LocalPlatform) -> None:
    assert "says nothing" in platform.call("Mail", "mute")["content"][0]["text"]


def test_a_delay_is_waited_for(platform: LocalPlatform) -> None:
    slept.clear()
    assert platform.call("Mail", "slow")["content"][0]["text"] == "at last"
    assert slept == [60.0]


def test_a_status_code_fails_the_request_itself(platform: LocalPlatform) -> None:
    slept.clear()
    failed = platform.rpc("Mail", "tools/call", {"name": "down", "arguments": {}})
    assert (failed.status_code, slept) == (503, [2.0])
    assert "statusCode 503" in failed.text
    empty = platform.rpc("Mail", "tools/call", {"name": "gone", "arguments": {}})
    assert (empty.status_code, empty.content) == (204, b"")
    assert [seen["status"] for seen in platform.requests()[-2:]] == [503, 204]


def test_chance_is_the_same_with_the_same_seed() -> None:
    def fates() -> list[bool]:
        with local_platform(MANIFEST, seed=3) as platform:
            return [platform.call("Mail", "dice").get("isError", False) for _ in range(30)]

    first = fates()
    assert first == fates()
    assert set(first) == {True, False}


@shows("A365-LOCAL")
def test_the_state_of_a_server_is_each_agents_own() -> None:
    ann, bob = {"x-ms-agentid": "ann"}, {"x-ms-agentid": "bob"}
    with local_platform(MANIFEST) as platform:

        def said(tool: str, who: dict[str, str]) -> tuple[str, str]:
            result = platform.call("Mail", tool, who, who="me")
            return result["content"][0]["text"], result["structuredContent"]["state"]

        assert said("walk", ann) == ("walk has no answer in the state 'start', only in: open", "start")
        assert said("door", ann) == ("opened by me", "open")
        assert said("walk", ann) == ("in", "open")
        assert said("walk", bob)[1] == "start"
        assert said("walk", platform.headers(appid="ann")) == ("in", "open")
        assert said("door", ann) == ("shut", "start")
        knocked = platform.call("Mail", "knock", ann)
        assert (knocked["isError"], knocked["content"][0]["text"]) == (True, "nobody home")
