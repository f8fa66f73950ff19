"""Tests the client against a real server: its names, the chats that it sends, and shared or closed connections."""

import asyncio
import gc
import json
import logging
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

import frontdesk.agent365
from frontdesk.agent365 import (
    ChatHistoryMessage,
    ChatHistoryRefused,
    InvalidArgument,
    McpToolServerConfigurationService,
    OperationResult,
    PlatformUnreachable,
    ToolOptions,
    reset_application_name_cache,
)
from frontdesk.mcp_client.http import HttpClient
from tests.requirements import shows
from tests.support.agent365 import (
    HANG_UP,
    HOLD,
    Answer,
    Gateway,
    GatewayCall,
    chatting,
    head,
    jwt,
    local_platform,
    opened,
    servers,
    turn,
    whole,
)
from tests.support.serving import serve
from tests.support.waiting import until

# The client's names, and the packages that they load


SECONDS = 60
HEAVY = {
    "acp",
    "agent_framework",
    "agents",
    "aiohttp",
    "alembic",
    "letta_client",
    "mcp",
    "mcp_types",
    "microsoft_agents_a365",
    "numpy",
    "onnxruntime",
    "openai",
    "pydantic_ai",
    "sqlalchemy",
    "starlette",
    "uvicorn",
}


def loaded(code: str) -> set[str]:
    """The loaded packages after some code ran in a process of its own."""
    told = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=SECONDS, check=True)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize("name", frontdesk.agent365.__all__)
def test_each_name_that_is_offered_is_there(name: str) -> None:
    found = getattr(frontdesk.agent365, name)
    assert found is not None
    assert name in dir(frontdesk.agent365)
    # Functions and classes have the names under which they are offered.
    assert getattr(found, "__name__", name) == name


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = frontdesk.agent365.nothing


def test_the_names_alone_load_nothing_that_is_slow() -> None:
    assert loaded("import frontdesk.agent365").isdisjoint({*HEAVY, "pydantic", "httpx2", "anyio"})


def test_the_client_loads_no_server_no_database_and_no_framework() -> None:
    code = "from frontdesk.agent365 import *\nMcpToolServerConfigurationService()"
    assert loaded(code).isdisjoint(HEAVY)


# Seed 001's integration tests, each under the name that its sentence has there.


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


# Chats sent to a real server: the request, and the result of each answer


MESSAGES = [
    ChatHistoryMessage(id="1", role="user", content="What is new?", timestamp=datetime(2026, 11, 2, 3, 4, tzinfo=UTC)),
    ChatHistoryMessage(role="assistant", content="Nothing — really ✓"),
]


async def told(gateway: Gateway, context: object = None, messages: Any = MESSAGES) -> OperationResult:
    service = McpToolServerConfigurationService(environ=gateway.environ(), timeout=10)
    return await service.send_chat_history(context or chatting(), messages, ToolOptions("OpenAI"))


@shows("A365-CHAT")
async def test_a_chat_is_sent_as_the_platform_expects_it() -> None:
    async with opened(Gateway(whole("whatever"))) as gateway:
        assert await told(gateway, chatting(channel_id="msteams")) is OperationResult.success()
    [asked] = gateway.requests
    assert (asked.method, asked.target) == ("POST", "/agents/real-time-threat-protection/chat-message")
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["user-agent"].endswith("; OpenAI)")
    assert asked.headers["x-ms-channel-id"] == "msteams"
    assert {"authorization", "x-ms-agentid", "x-ms-correlation-id"}.isdisjoint(asked.headers)
    assert asked.said == {
        "conversationId": "talk",
        "messageId": "turn-1",
        "userMessage": "Hello",
        "chatHistory": [
            {"id": "1", "role": "user", "content": "What is new?", "timestamp": "2026-11-02T03:04:00Z"},
            {"id": None, "role": "assistant", "content": "Nothing — really ✓", "timestamp": None},
        ],
    }


async def test_a_chat_without_anything_before_it_is_sent_too() -> None:
    async with opened(Gateway()) as gateway:
        assert (await told(gateway, messages=[])).succeeded
        assert (await told(gateway, messages=())).succeeded
    assert [asked.said["chatHistory"] for asked in gateway.requests] == [[], []]


@shows("A365-CHAT")
@pytest.mark.parametrize("status", [201, 202, 204, 301, 400, 401, 403, 429, 500, 503])
async def test_any_status_but_200_is_a_failure_that_carries_it(status: int) -> None:
    body = "" if status == 204 else "not this"
    async with opened(Gateway(whole(body, status))) as gateway:
        result = await told(gateway)
    [error] = result.errors
    assert not result.succeeded
    assert isinstance(error.exception, ChatHistoryRefused)
    assert (error.exception.status, error.exception.message) == (status, body)
    assert str(result) == f"Failed: HTTP {status}: {body}"
    assert len(gateway.requests) == 1


@shows("A365-CHAT")
@pytest.mark.parametrize(
    "answer",
    [
        whole("<html>"),
        whole(b"\xff\xfe"),
        whole(b"\x1f\x8b", Content_Encoding="gzip"),
        [head(content_length="100"), b"half", HANG_UP],
        [head(content_length="100"), b"half", HOLD],
        [head(transfer_encoding="chunked"), *[b"100000\r\n" + b"x" * 0x100000 + b"\r\n"] * 20],
    ],
)
async def test_once_it_is_taken_it_does_not_matter_what_else_is_said(answer: Answer) -> None:
    async with opened(Gateway(answer)) as gateway:
        assert await told(gateway) is OperationResult.success()


@shows("A365-CHAT")
@pytest.mark.parametrize("answer", [[HANG_UP], [b"SSH-2.0\r\n"], [b"HTTP/1.1 200", HANG_UP]])
async def test_no_answer_is_a_failure_and_raises_nothing(answer: Answer) -> None:
    async with opened(Gateway(answer)) as gateway:
        [error] = (await told(gateway)).errors
    assert isinstance(error.exception, PlatformUnreachable)


async def test_an_address_that_is_none_is_a_failure_too() -> None:
    service = McpToolServerConfigurationService(environ={"MCP_PLATFORM_ENDPOINT": "nowhere"})
    [error] = (await service.send_chat_history(chatting(), [])).errors
    assert isinstance(error.exception, InvalidArgument)


@shows("A365-CHAT")
@pytest.mark.parametrize(
    ("context", "messages", "words"),
    [
        (None, [], "turn_context cannot be None"),
        (chatting(), None, "chat_history_messages cannot be None"),
        (SimpleNamespace(), [], "turn_context.activity cannot be None"),
        (SimpleNamespace(activity=None), [], "turn_context.activity cannot be None"),
        (chatting(conversation=None), [], "conversation_id cannot be empty or None"),
        (chatting(conversation=SimpleNamespace(id=" ")), [], "conversation_id cannot be empty or None"),
        (chatting(id=None), [], "message_id cannot be empty or None"),
        (chatting(id=""), [], "message_id cannot be empty or None"),
        (chatting(text=None), [], "user_message cannot be empty or None"),
        (chatting(text="\t\n"), [], "user_message cannot be empty or None"),
        (turn(), [], "conversation_id cannot be empty or None"),
    ],
)
async def test_what_the_turn_lacks_is_told_at_once(context: object, messages: Any, words: str) -> None:
    async with opened(Gateway()) as gateway:
        service = McpToolServerConfigurationService(environ=gateway.environ())
        with pytest.raises(ValueError, match=words):
            await service.send_chat_history(context, messages)
    assert gateway.connections == 0


@pytest.mark.parametrize("context", [MagicMock(), chatting(text=5), chatting(id=["x"])])
async def test_a_turn_of_something_else_than_text_is_no_chat(context: object) -> None:
    async with opened(Gateway()) as gateway:
        with pytest.raises(ValueError, match="ChatMessageRequest"):
            await told(gateway, context)
    assert gateway.connections == 0


@shows("A365-HOSTILE")
@given(st.text(st.characters()), st.text(st.characters()))
@settings(deadline=None)
def test_whatever_text_is_said_arrives_unless_it_is_blank(said: str, before: str) -> None:
    async def send() -> dict[str, Any]:
        async with opened(Gateway()) as gateway:
            messages = [ChatHistoryMessage(role="user", content=before)]
            assert (await told(gateway, chatting(text=said), messages)).succeeded
        return gateway.requests[0].said

    if said.strip() and before.strip():
        sent = asyncio.run(send())
        assert (sent["userMessage"], sent["chatHistory"][0]["content"]) == (said, before)
    else:
        with pytest.raises(ValueError, match="cannot be empty"):
            asyncio.run(send())


@shows("A365-CHAT")
async def test_nothing_that_was_said_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(Gateway(whole("Hello? What is new?", 500), whole(""), [HANG_UP])) as gateway:
        with caplog.at_level(logging.DEBUG):
            for _ in range(3):
                await told(gateway)
    assert "The chat history was not sent: ChatHistoryRefused" in caplog.text
    assert "Hello" not in caplog.text
    assert "What is new" not in caplog.text


# One client for many callers: no data of one reaches another, and no connection stays open


MANY = 50


class Mirror(Gateway):
    """Lists one server, named after the caller's token."""

    @override
    def answer_to(self, asked: GatewayCall) -> Answer:
        return servers({"mcpServerName": asked.headers["authorization"].split()[1], "publisher": asked.target})


async def app(scope: Any, receive: Any, send: Any) -> None:
    """A platform in another thread, for tests without an event loop of their own."""
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
    # An open connection would be reported now, and a warning is an error.
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
