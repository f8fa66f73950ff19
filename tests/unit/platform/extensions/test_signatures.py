"""Code that was written for the SDK's adapters calls ours in the same way."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import pytest

from frontdesk.agent365.extensions import agentframework, openai

OpenAI = openai.McpToolRegistrationService
AgentFramework = agentframework.McpToolRegistrationService


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (OpenAI, ["logger"]),
        (OpenAI.add_tool_servers_to_agent, ["agent", "auth", "auth_handler_name", "context", "auth_token"]),
        (OpenAI.cleanup_all_servers, []),
        (OpenAI.send_chat_history, ["turn_context", "session", "limit", "options"]),
        (OpenAI.send_chat_history_messages, ["turn_context", "messages", "options"]),
        (AgentFramework, ["logger"]),
        (
            AgentFramework.add_tool_servers_to_agent,
            [
                "chat_client",
                "agent_instructions",
                "initial_tools",
                "auth",
                "auth_handler_name",
                "turn_context",
                "auth_token",
            ],
        ),
        (AgentFramework.send_chat_history_messages, ["chat_messages", "turn_context", "tool_options"]),
        (AgentFramework.send_chat_history_from_store, ["chat_message_store", "turn_context", "tool_options"]),
        (AgentFramework.cleanup, []),
    ],
)
def test_arguments_have_the_sdks_names_and_order(method: Callable[..., Any], names: list[str]) -> None:
    found = [each.name for each in signature(method).parameters.values() if each.kind is not Parameter.KEYWORD_ONLY]
    assert [name for name in found if name != "self"] == names
