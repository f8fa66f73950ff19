"""What was said, sent to a real server: what goes out, and what each answer comes to."""

import asyncio
import logging
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import (
    ChatHistoryMessage,
    ChatHistoryRefused,
    InvalidArgument,
    McpToolServerConfigurationService,
    OperationResult,
    PlatformUnreachable,
    ToolOptions,
)
from tests.requirements import shows
from tests.support.gateways import HANG_UP, HOLD, Answer, Gateway, chatting, head, opened, turn, whole

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
