"""Tests agents of Microsoft's Agent Framework with the tools of the platform's servers, and their chat history."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from agent_framework import (
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    HistoryProvider,
    InMemoryHistoryProvider,
    MCPStreamableHTTPTool,
    Message,
    RawAgent,
    ResponseStream,
    tool,
)
from typing_extensions import override

from frontdesk.agent365 import ToolOptions
from frontdesk.agent365.errors import McpConnectionsRequiredError, TokenNotObtained
from frontdesk.agent365.extensions.agentframework import McpToolRegistrationService
from tests.requirements import shows
from tests.support import agent365
from tests.support.agent365 import (
    FILES,
    FILES_APP,
    HANDLER,
    MAIL,
    MAIL_APP,
    MANIFEST,
    SHARED_APP,
    Exchange,
    LocalPlatform,
    calls,
    entry,
    history,
    host_turn,
    in_development,
    in_production,
    local_platform,
    own_connections,
    own_tasks,
)
from tests.support.serving import address_of, listen
from tests.support.waiting import until


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Calls these tools, all concurrently, and then repeats their answers."""

    def __init__(self, *tools: str) -> None:
        super().__init__()
        self._tools = tools
        self.offered: list[str] = []

    @override
    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        self.offered = [offered.name for offered in options.get("tools") or ()]
        return self._answered(messages)

    async def _answered(self, messages: Sequence[Message]) -> ChatResponse:
        parts = [part for message in messages for part in message.contents if part.type == "function_result"]
        made = (
            [str(part.result) for part in parts] if parts or not self._tools else [_call(name) for name in self._tools]
        )
        return ChatResponse(messages=[Message("assistant", made)])


def _call(name: str) -> Content:
    return Content.from_function_call(f"call-{name}", name, arguments={"to": "ada"})


@tool
def now() -> str:
    """The time."""
    return "noon"


def servers(agent: RawAgent[Any]) -> list[str]:
    return [server.name for server in agent.mcp_tools]


@pytest.fixture
def platform() -> Iterator[LocalPlatform]:
    with local_platform(MANIFEST) as running:
        yield running


@pytest.fixture(autouse=True)
async def nothing_is_left(platform: LocalPlatform) -> AsyncGenerator[None]:
    # One call first, so that the test's own connection is among the existing ones.
    platform.requests()
    tasks, connections = own_tasks(), own_connections(platform)
    yield
    assert own_tasks() <= tasks
    await until(lambda: own_connections(platform) <= connections)


@shows("A365-ADAPTERS")
@shows("A365-AGENTID")
async def test_while_developing_an_agent_calls_tools_with_the_token_of_each_servers_variable(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    auth, model = in_development(platform, monkeypatch, tmp_path), Scripted("send_mail", "share_file", "now")
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(model, "be brief", [now], auth, HANDLER, host_turn())
        response = await agent.run("go")
    assert response.text.count("ada") >= 2
    assert "noon" in response.text
    assert model.offered == ["now", "send_mail", "share_file"]
    assert agent.default_options["instructions"] == "be brief"
    assert sorted(calls(platform)) == [
        ("Files", "share_file", FILES_APP, "ok", "AgentFramework"),
        ("Mail", "send_mail", MAIL_APP, "ok", "AgentFramework"),
    ]
    assert not [seen for seen in platform.requests() if "mcpServers" in seen["path"]]


@shows("A365-ADAPTERS")
@shows("A365-TOKENS")
@shows("A365-AGENTID")
async def test_in_production_each_scope_is_exchanged_once_and_each_server_gets_its_own_token(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = in_production(platform, monkeypatch)
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(
            Scripted("send_mail", "share_file"), None, [], auth, HANDLER, host_turn()
        )
        await agent.run("go")
    assert len(auth.asked) == len(set(auth.asked)) == 2
    assert sorted(calls(platform)) == [
        ("Files", "share_file", FILES_APP, "ok", "AgentFramework"),
        ("Mail", "send_mail", SHARED_APP, "ok", "AgentFramework"),
    ]
    seen = platform.requests()
    assert {(each["token"], each["orchestrator"]) for each in seen} == {("ok", "AgentFramework")}
    assert all(each["agentId"] for each in seen)


async def test_without_a_token_to_be_had_the_caller_is_told(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    with pytest.raises(TokenNotObtained):
        await McpToolRegistrationService().add_tool_servers_to_agent(
            Scripted(), None, [], Exchange(platform, gives=False), HANDLER, host_turn()
        )
    assert platform.requests() == []


@shows("A365-ADAPTERS")
async def test_servers_that_wait_for_an_account_stop_everything_and_say_where_to_connect_it(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "https://example.com/connect"
    waits = {**MAIL, "connectivityStatus": "Pending", "missingConnectionsUrl": where}
    also = {**entry("Calendar"), "connectivityStatus": "Pending"}
    platform.write({"mcpServers": [also, waits, {**FILES, "connectivityStatus": "rEADY"}]})
    auth = in_production(platform, monkeypatch)
    with pytest.raises(McpConnectionsRequiredError) as told:
        await McpToolRegistrationService().add_tool_servers_to_agent(Scripted(), None, [], auth, HANDLER, host_turn())
    assert told.value.missing_connections_url == where
    assert told.value.connectivity_status == "Pending"
    assert told.value.server_names == ("Calendar", "Mail")


@shows("A365-ADAPTERS")
async def test_a_server_that_cannot_be_connected_is_left_out_and_the_rest_works(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = entry("Broken", agent365.tool("b", "b"))
    platform.write({"mcpServers": [broken, entry("Nowhere", url="http://127.0.0.1:1/mcp"), MAIL]})
    platform.fault("server:Broken", status=500)
    auth = in_production(platform, monkeypatch)
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(Scripted("send_mail"), None, [], auth, HANDLER, host_turn())
        assert servers(agent) == ["Mail"]
        assert "ada" in (await agent.run("go")).text
    told = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert sorted(text.split("'")[1] for text in told) == ["Broken", "Nowhere"]
    assert "eyJ" not in caplog.text


async def test_a_server_that_does_not_answer_is_waited_for_only_so_long_and_leaves_nothing_behind(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    auth, before = in_production(platform, monkeypatch), own_tasks()
    with closing(listen()) as silent:
        platform.write({"mcpServers": [entry("Hung", url=f"{address_of(silent)}/mcp")]})
        service = McpToolRegistrationService(connect_timeout=0.2)
        agent = await service.add_tool_servers_to_agent(Scripted(), None, [], auth, HANDLER, host_turn())
        assert own_tasks() <= before
    assert servers(agent) == []
    assert "MCP server 'Hung' is left out, as it cannot be connected: TimeoutError" in caplog.text


async def test_a_server_that_is_among_the_tools_already_is_not_added_again(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = in_production(platform, monkeypatch)
    twice = {**FILES, "mcpServerName": "FilesToo", "url": f"{platform.url}/agents/servers/Files"}
    platform.write({"mcpServers": [MAIL, FILES, twice]})
    mine = MCPStreamableHTTPTool("mine", f"{platform.url}/agents/servers/Mail")
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(Scripted(), None, [mine, now], auth, HANDLER, host_turn())
        assert servers(agent) == ["mine", "Files"]


async def test_what_two_services_connect_is_closed_by_each_for_itself_and_from_any_task(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, before = in_production(platform, monkeypatch), own_tasks()
    first, second = McpToolRegistrationService(), McpToolRegistrationService()
    gone = await first.add_tool_servers_to_agent(Scripted(), None, [], auth, HANDLER, host_turn())
    kept = await second.add_tool_servers_to_agent(Scripted("send_mail"), None, [], auth, HANDLER, host_turn())
    await asyncio.create_task(first.cleanup())
    assert not any(server.is_connected for server in gone.mcp_tools)
    assert "ada" in (await kept.run("go")).text
    await second.cleanup()
    assert own_tasks() <= before
    await second.cleanup()


async def test_an_agent_that_is_closed_before_its_service_does_no_harm(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = in_production(platform, monkeypatch)
    async with McpToolRegistrationService() as service:
        made = await service.add_tool_servers_to_agent(Scripted("send_mail"), None, [], auth, HANDLER, host_turn())
        async with made as agent:
            assert "ada" in (await agent.run("go")).text


class Modelless(Scripted):
    """No agent can be made with it."""

    @property
    def model(self) -> str:
        raise ZeroDivisionError


async def test_servers_are_closed_again_when_no_agent_comes_of_them(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, before = in_production(platform, monkeypatch), own_tasks()
    with pytest.raises(ZeroDivisionError):
        await McpToolRegistrationService().add_tool_servers_to_agent(Modelless(), None, [], auth, HANDLER, host_turn())
    assert own_tasks() <= before


@shows("A365-ADAPTERS")
@shows("A365-CHAT")
async def test_what_was_said_in_a_session_is_sent_without_calls_of_tools(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, session = in_production(platform, monkeypatch), AgentSession()
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(Scripted("send_mail"), None, [], auth, HANDLER, host_turn())
        said = (await agent.run("go", session=session)).text
        store = InMemoryHistoryProvider()
        result = await service.send_chat_history_from_store(store, host_turn(), session=session)
    assert result.succeeded
    assert history(platform) == [("user", "go"), ("assistant", said)]
    seen = platform.requests()[-1]
    assert (seen["orchestrator"], seen["agentId"], seen["token"]) == ("AgentFramework", None, "none")


class Kept(HistoryProvider):
    """Keeps messages by the session's id."""

    def __init__(self) -> None:
        super().__init__("kept")
        self.of: dict[str | None, list[Message]] = {}

    @override
    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **more: Any
    ) -> list[Message]:
        return self.of[session_id]

    @override
    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.of[session_id] = list(messages)


async def test_a_store_is_asked_for_the_session_of_the_conversation_and_may_fail(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    service, store = McpToolRegistrationService(), Kept()
    failed = await service.send_chat_history_from_store(store, host_turn())
    assert not failed.succeeded
    assert platform.chats() == []
    await store.save_messages("conversation-1", [Message("user", ["hello"])])
    assert (await service.send_chat_history_from_store(store, host_turn())).succeeded
    assert history(platform) == [("user", "hello")]


@shows("KEPT-15")
@pytest.mark.parametrize("stored", [False, True])
async def test_messages_without_a_role_are_left_out_as_with_the_sdk(
    stored: bool, platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    in_production(platform, monkeypatch)
    service, store = McpToolRegistrationService(), Kept()
    nobodys = Message("user", ["a secret of nobody"])
    nobodys.role = cast("Any", None)
    messages = [Message("user", ["hello"]), nobodys, Message("assistant", ["hi"])]
    await store.save_messages("conversation-1", messages)
    sent = service.send_chat_history_from_store(store, host_turn())
    if not stored:
        sent.close()
        sent = service.send_chat_history_messages(messages, host_turn())
    assert (await sent).succeeded
    assert history(platform) == [("user", "hello"), ("assistant", "hi")]
    assert "without a role is left out" in caplog.text
    assert "secret" not in caplog.text


@shows("KEPT-15")
async def test_what_a_store_raises_is_in_the_result_and_not_raised(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)

    class Broken(Kept):
        @override
        async def get_messages(self, session_id: str | None, **more: Any) -> list[Message]:
            raise OSError("the disk is gone")

    told = await McpToolRegistrationService().send_chat_history_from_store(Broken(), host_turn())
    assert not told.succeeded
    assert [type(error.exception) for error in told.errors] == [OSError]
    assert platform.chats() == []


async def test_messages_are_sent_with_the_callers_options_which_stay_as_they_are(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    service, unnamed, named = McpToolRegistrationService(), ToolOptions(), ToolOptions("Mine")
    for options in (None, unnamed, named):
        assert (await service.send_chat_history_messages([], host_turn(), options)).succeeded
    assert [seen["orchestrator"] for seen in platform.requests()] == ["AgentFramework", "AgentFramework", "Mine"]
    assert unnamed == ToolOptions()


async def test_what_is_missing_is_a_value_error() -> None:
    service = McpToolRegistrationService()
    with pytest.raises(ValueError, match="chat_messages cannot be None"):
        await service.send_chat_history_messages(None, host_turn())
    with pytest.raises(ValueError, match="turn_context cannot be None"):
        await service.send_chat_history_messages([], None)
    with pytest.raises(ValueError, match="chat_message_store cannot be None"):
        await service.send_chat_history_from_store(None, host_turn())
    with pytest.raises(ValueError, match="turn_context cannot be None"):
        await service.send_chat_history_from_store(cast("Any", Kept()), None)


@shows("A365-ADAPTERS")
@pytest.mark.parametrize("missing", ["agent_framework", "tenacity"])
async def test_without_the_framework_the_import_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("frontdesk.agent365.extensions.agentframework")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"pip install 'frontdesk\[agent-framework\]'"):
        __import__("frontdesk.agent365.extensions.agentframework")
