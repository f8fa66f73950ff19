"""What the client speaks of."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from frontdesk.agent365 import ChatHistoryMessage, ChatMessageRequest, InvalidArgument, MCPServerConfig, ToolOptions
from tests.requirements import shows

CHAT: dict[str, Any] = {"conversation_id": "c", "message_id": "m", "user_message": "u", "chat_history": []}


@pytest.mark.parametrize(
    ("name", "unique", "what"), [("", "u", "mcp_server_name"), ("n", "", "mcp_server_unique_name")]
)
def test_a_server_has_two_names(name: str, unique: str, what: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{what} cannot be empty") as refused:
        MCPServerConfig(name, unique)
    assert isinstance(refused.value, ValueError)


@shows("A365-TOKENS")
def test_a_server_does_not_show_its_headers() -> None:
    server = MCPServerConfig("mail", "mail", headers={"Authorization": "Bearer secret"})
    assert "secret" not in f"{server} {server!r} {[server]}"


def test_a_server_says_nothing_of_what_is_not_known_of_it() -> None:
    server = MCPServerConfig("mail", "mcp_mail")
    rest = (server.url, server.headers, server.audience, server.scope, server.publisher, server.id)
    assert rest == (None,) * 6
    assert ToolOptions().orchestrator_name is None


@shows("A365-CHAT")
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_message_has_a_role_and_words(role: Any) -> None:
    message = ChatHistoryMessage(role=role, content=" hello ")
    assert (message.id, message.role, message.content, message.timestamp) == (None, role, " hello ", None)


@pytest.mark.parametrize(
    "wrong",
    [{"role": "tool"}, {"role": "User"}, {"content": ""}, {"content": " \n"}, {"content": None}, {"role": None}],
)
def test_a_message_without_them_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ChatHistoryMessage.model_validate({"role": "user", "content": "hello", **wrong})


@shows("A365-CHAT")
def test_a_chat_is_made_by_either_name_of_a_field_and_sent_by_one() -> None:
    said = ChatHistoryMessage(
        id="1", role="user", content="hello", timestamp=datetime(2026, 11, 2, 3, 4, 5, tzinfo=UTC)
    )
    chat = ChatMessageRequest.model_validate({**CHAT, "chat_history": [said, {"role": "system", "content": "x"}]})
    sent = chat.model_dump(by_alias=True, mode="json")
    assert sent == {
        "conversationId": "c",
        "messageId": "m",
        "userMessage": "u",
        "chatHistory": [
            {"id": "1", "role": "user", "content": "hello", "timestamp": "2026-11-02T03:04:05Z"},
            {"id": None, "role": "system", "content": "x", "timestamp": None},
        ],
    }
    assert ChatMessageRequest.model_validate(sent) == chat


@pytest.mark.parametrize("field", ["conversation_id", "message_id", "user_message"])
@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_chat_lacks_nothing(field: str, blank: str | None) -> None:
    with pytest.raises(ValidationError):
        ChatMessageRequest.model_validate({**CHAT, field: blank})
    with pytest.raises(ValidationError):
        ChatMessageRequest.model_validate({name: value for name, value in CHAT.items() if name != field})


def test_a_chat_may_be_empty_but_not_missing() -> None:
    assert ChatMessageRequest.model_validate(CHAT).chat_history == []
    wrongs: list[object] = [None, "x", {}]
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            ChatMessageRequest.model_validate({**CHAT, "chat_history": wrong})
