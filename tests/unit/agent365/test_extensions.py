"""Tests the code that adapters for other frameworks share: messages, long-lived connections, and signatures."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from inspect import Parameter, signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_reasoning_item import Content as Thought
from openai.types.responses.response_reasoning_item import ResponseReasoningItem

from frontdesk.agent365.extensions import agentframework, openai
from frontdesk.agent365.extensions.adapter import ServerConnections, ServerLink
from frontdesk.agent365.extensions.history import convert_history
from frontdesk.agent365.model import ChatHistoryMessage
from tests.requirements import shows
from tests.support.agent365 import own_tasks

# Connections that outlive the call that makes them: one task opens and closes each, and none stays open


LOG = logging.getLogger("test.connections")
# Limits that are never reached, and one that is reached immediately.
LONG, SHORT = 60.0, 0.01


@dataclass(slots=True)
class Server:
    """`hangs` and `fails` name the step that hangs or fails."""

    name: str
    hangs: str = ""
    fails: str = ""
    tasks: list[object] = field(default_factory=list[object])
    steps: list[str] = field(default_factory=list[str])
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def link(self) -> ServerLink["Server"]:
        return ServerLink(self.name, self, lambda: self._step("connect"), lambda: self._step("close"))

    async def _step(self, step: str) -> None:
        self.tasks.append(asyncio.current_task())
        self.steps.append(step)
        self.begun.set()
        if self.hangs == step:
            await asyncio.Event().wait()
        if self.fails == step:
            raise OSError("Authorization: Bearer secret")


async def opened(connections: ServerConnections, *servers: Server) -> list[str]:
    async with connections.open([server.link() for server in servers]) as connected:
        return [server.name for server in connected]


@pytest.fixture
async def no_task_is_left() -> AsyncGenerator[None]:
    before = own_tasks()
    yield
    assert own_tasks() <= before


@pytest.mark.usefixtures("no_task_is_left")
@shows("A365-ADAPTERS")
async def test_a_connection_is_closed_by_the_task_that_opened_it_whatever_task_asks() -> None:
    connections, mail = ServerConnections(LOG, LONG), Server("mail")
    assert await opened(connections, mail) == ["mail"]
    assert mail.steps == ["connect"]
    await asyncio.create_task(connections.close())
    assert mail.steps == ["connect", "close"]
    assert mail.tasks[0] is mail.tasks[1]


@pytest.mark.usefixtures("no_task_is_left")
async def test_those_that_cannot_be_connected_are_left_out_in_time(caplog: pytest.LogCaptureFixture) -> None:
    connections = ServerConnections(LOG, SHORT)
    first, dead, hung, last = Server("a"), Server("b", fails="connect"), Server("c", hangs="connect"), Server("d")
    assert await opened(connections, first, dead, hung, last) == ["a", "d"]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "MCP server 'b' is left out, as it cannot be connected: OSError",
        "MCP server 'c' is left out, as it cannot be connected: TimeoutError",
    ]
    await connections.close()
    assert [server.steps[1:] for server in (first, dead, hung, last)] == [["close"], [], [], ["close"]]


@pytest.mark.usefixtures("no_task_is_left")
async def test_a_block_that_raises_closes_what_it_was_given_and_nothing_else() -> None:
    connections, before, mail = ServerConnections(LOG, LONG), Server("before"), Server("mail")
    await opened(connections, before)
    with pytest.raises(ZeroDivisionError):
        async with connections.open([mail.link()]):
            raise ZeroDivisionError
    assert mail.steps == ["connect", "close"]
    assert before.steps == ["connect"]
    await connections.close()


@pytest.mark.usefixtures("no_task_is_left")
async def test_who_stops_waiting_leaves_no_connection_behind() -> None:
    connections, mail, hung = ServerConnections(LOG, LONG), Server("mail"), Server("hung", hangs="connect")
    waiting = asyncio.create_task(opened(connections, mail, hung))
    await hung.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert mail.steps == ["connect", "close"]
    assert hung.steps == ["connect"]


@pytest.mark.usefixtures("no_task_is_left")
async def test_closing_never_raises_and_closes_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    connections = ServerConnections(LOG, LONG, SHORT)
    rude, hung, mail = Server("rude", fails="close"), Server("hung", hangs="close"), Server("mail")
    await opened(connections, rude, hung, mail)
    await connections.close()
    assert mail.steps == ["connect", "close"]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "MCP server 'hung' could not be closed: TimeoutError",
        "MCP server 'rude' could not be closed: OSError",
    ]
    await connections.close()
    assert mail.steps == ["connect", "close"]


@pytest.mark.usefixtures("no_task_is_left")
async def test_closing_ends_the_wait_of_those_who_still_connect() -> None:
    connections, hung = ServerConnections(LOG, LONG), Server("hung", hangs="connect")
    waiting = asyncio.create_task(opened(connections, hung))
    await hung.begun.wait()
    await connections.close()
    assert await waiting == []


# Messages of other frameworks become chat messages, whatever their shape


NOW = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)


@dataclass
class UserMessage:
    content: str


@dataclass
class MyAssistantThing:
    text: str


@dataclass
class SystemMessage:
    content: list[Any]


class Speaker(Enum):
    MODEL = "assistant"


def one(message: object) -> ChatHistoryMessage:
    [made] = convert_history([message], NOW)
    return made


def said(*messages: object) -> list[tuple[str, str]]:
    return [(made.role, made.content) for made in convert_history(messages, NOW)]


@shows("A365-ADAPTERS")
def test_messages_keep_their_order_roles_ids_and_times() -> None:
    messages = [
        {"id": "a", "role": "system", "content": "be kind", "timestamp": "2026-01-02T03:04:05Z"},
        SimpleNamespace(id="b", role="user", content="hello", created_at=1_700_000_000),
        {"id": 7, "role": "assistant", "content": "hi"},
    ]
    made = [(each.id, each.role, each.content, each.timestamp) for each in convert_history(messages, NOW)]
    assert made == [
        ("a", "system", "be kind", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("b", "user", "hello", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("7", "assistant", "hi", NOW),
    ]


def test_a_message_without_an_id_gets_one_of_its_own() -> None:
    first, second = convert_history([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], NOW)
    assert UUID(str(first.id)).version == UUID(str(second.id)).version == 4
    assert first.id != second.id


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (UserMessage("x"), "user"),
        (MyAssistantThing("x"), "assistant"),
        (SystemMessage(["x"]), "system"),
        (SimpleNamespace(role=Speaker.MODEL, content="x"), "assistant"),
        (Message("assistant", ["x"]), "assistant"),
    ],
)
def test_the_role_is_what_the_message_says_or_else_its_class(message: object, role: str) -> None:
    assert said(message) == [(role, "x")]


def test_a_message_of_nobody_counts_as_the_users_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert said({"role": "poet", "content": "o muse"}) == [("user", "o muse")]
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "muse" not in record.getMessage()


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": ["a", {"type": "input_text", "text": "b"}, SimpleNamespace(text="c")]}, "a b c"),
        ({"content": [{"type": "input_image", "image_url": "x"}, {"text": "seen"}]}, "seen"),
        ({"content": [{"text": None}, {"text": 3}, None], "text": "instead"}, "instead"),
        ({"content": "", "text": "instead"}, "instead"),
        ({"content": None, "text": "instead"}, "instead"),
        ({"content": {"text": "no list"}, "text": "instead"}, "instead"),
    ],
)
def test_content_is_a_string_or_its_parts_that_are_text_or_the_text_beside_it(message: Any, text: str) -> None:
    assert said({"role": "user", **message}) == [("user", text)]


@pytest.mark.parametrize("content", ["", " \n\t", None, [], [{"type": "input_image"}], 7, ["", " "]])
def test_what_says_nothing_is_left_out(content: object) -> None:
    assert said({"role": "user", "content": content}, {"role": "user", "content": "x"}) == [("user", "x")]


@shows("A365-ADAPTERS")
def test_calls_results_and_thoughts_of_a_session_are_not_sent_as_somebodys_words() -> None:
    thought = ResponseReasoningItem(
        id="r", type="reasoning", summary=[], content=[Thought(text="secretly", type="reasoning_text")]
    )
    text = ResponseOutputText(text="done", type="output_text", annotations=[])
    items = [
        {"type": "message", "role": "user", "content": "send it"},
        thought,
        thought.model_dump(),
        ResponseFunctionToolCall(arguments="{}", call_id="c", name="send", type="function_call"),
        {"type": "function_call", "name": "send", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "sent"},
        {"type": "compaction", "text": "summed up"},
        ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text]),
    ]
    assert said(*items) == [("user", "send it"), ("assistant", "done")]


@shows("A365-ADAPTERS")
def test_of_a_message_of_agent_framework_what_was_said_is_sent_and_nothing_else() -> None:
    thought = Content.from_text_reasoning(text="secretly")
    call = Content.from_function_call("c", "send", arguments={})
    result = Content.from_function_result("c", result="sent")
    made = convert_history(
        [
            Message("user", ["send", "it"], message_id="m1"),
            Message("assistant", [thought, call]),
            Message("tool", [result, "sent"]),
            Message("assistant", [thought, "done"]),
        ],
        NOW,
    )
    assert [(each.role, each.content) for each in made] == [("user", "send it"), ("assistant", "done")]
    assert made[0].id == "m1"
    assert said(Message("user", ["again"]).to_dict()) == [("user", "again")]


@pytest.mark.parametrize(
    "when",
    ["not a date", "", "99999-01-01", 0, 1e300, -1e300, float("nan"), float("inf"), 10**400, True, [], {}, object()],
)
def test_a_time_that_cannot_be_is_now(when: object) -> None:
    assert one({"role": "user", "content": "x", "timestamp": when}).timestamp == NOW


@pytest.mark.parametrize(
    ("when", "meant"),
    [
        (1.5, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
        ("2026-05-01T10:00:00+02:00", datetime(2026, 5, 1, 8, tzinfo=UTC)),
        ("2026-05-01T10:00:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        (datetime(2026, 5, 1, 10, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 5, 1, 8, tzinfo=UTC)),
        (datetime(2026, 5, 1, 10), datetime(2026, 5, 1, 10, tzinfo=UTC)),  # noqa: DTZ001 - as somebody may have it
    ],
)
def test_times_are_seconds_or_iso_and_in_utc_unless_they_say_otherwise(when: object, meant: datetime) -> None:
    assert one({"role": "user", "content": "x", "timestamp": when}).timestamp == meant
    assert one({"role": "user", "content": "x", "timestamp": "?", "created_at": when}).timestamp == meant


def test_half_a_surrogate_pair_does_not_keep_the_history_from_being_sent() -> None:
    made = one({"role": "user", "content": "a\ud83db", "id": "\ud800"})
    assert json.dumps(made.model_dump(mode="json"), ensure_ascii=False).encode()
    assert made.content == "a?b"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "type", "role", "content", "text", "timestamp", "created_at", "contents"]),
            inner | st.sampled_from(["user", "assistant", "message", "text", "\ud800"]),
        )
    ),
    max_leaves=12,
)


@given(st.lists(anything, max_size=5))
def test_no_message_is_strange_enough_to_raise(messages: list[object]) -> None:
    made = convert_history(messages, NOW)
    assert len(made) <= len(messages)
    assert all(json.dumps(each.model_dump(mode="json"), ensure_ascii=False).encode() for each in made)


# Code for the SDK's adapters calls ours in the same way


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


# The tests named on the page of differences from the SDK exist


ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "agent365.md"
WHERE = ("tests/unit/agent365", "tests/interfaces/agent365")
ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| ([^|]*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(test_[a-z_]+)`")
DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


@shows("A365-ADAPTERS")
def test_each_difference_of_an_adapter_is_shown_by_tests_that_there_are() -> None:
    table = PAGE.read_text().split("## Adapters")[1]
    rows = [row for row in ROW.findall(table)[1:] if row.strip() and not set(row) <= set("-|")]
    files = [path for folder in WHERE for path in ROOT.joinpath(folder).rglob("test_*.py")]
    defined = {name for path in files for name in DEFINED.findall(path.read_text())}
    assert len(rows) >= 10
    assert all(NAMED.findall(row) for row in rows)
    assert set(NAMED.findall(table)) <= defined
