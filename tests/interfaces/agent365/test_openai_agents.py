"""Tests agents of OpenAI Agents with the tools of the platform's servers, and their chat history."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest
from agents import (
    Agent,
    AgentHooks,
    GuardrailFunctionOutput,
    InputGuardrail,
    ModelSettings,
    OutputGuardrail,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.items import ModelResponse, TResponseInputItem, TResponseStreamEvent
from agents.mcp import MCPServerStreamableHttp
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel
from typing_extensions import override

from frontdesk.agent365 import ToolOptions
from frontdesk.agent365.errors import InvalidArgument, TokenNotObtained
from frontdesk.agent365.extensions.openai import McpToolRegistrationService
from tests.requirements import shows
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
    tool,
)
from tests.support.serving import address_of, listen
from tests.support.waiting import until

QUIET = RunConfig(tracing_disabled=True)
SHARED_SCOPE = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"


class Scripted(Model):
    """Calls these tools, all concurrently, and then repeats their answers."""

    def __init__(self, *tools: str) -> None:
        self._tools = tools

    @override
    async def get_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *args: Any, **more: Any
    ) -> ModelResponse:
        items = [cast("Mapping[str, Any]", item) for item in input] if isinstance(input, list) else []
        outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
        made = [_said(json.dumps(outputs))] if outputs or not self._tools else [_call(name) for name in self._tools]
        return ModelResponse(output=[*made], usage=Usage(), response_id=None)

    @override
    def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError


def _call(name: str) -> ResponseFunctionToolCall:
    arguments = json.dumps({"to": "ada"})
    return ResponseFunctionToolCall(type="function_call", call_id=f"call-{name}", name=name, arguments=arguments)


def _said(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="said", type="message", role="assistant", status="completed", content=[part])


def scripted(*tools: str) -> Agent[Any]:
    return Agent("clerk", model=Scripted(*tools))


async def answer(agent: Agent[Any], session: SQLiteSession | None = None) -> str:
    result = await Runner.run(agent, "go", run_config=QUIET, session=session)
    return str(result.final_output)


def names(agent: Agent[Any]) -> list[str]:
    return [server.name for server in agent.mcp_servers]


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
    auth = in_development(platform, monkeypatch, tmp_path)
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(scripted("send_mail", "share_file"), auth, HANDLER, host_turn())
        said = await answer(agent)
    assert "mail to ada" in said
    assert "file for ada" in said
    assert sorted(calls(platform)) == [
        ("Files", "share_file", FILES_APP, "ok", "OpenAI"),
        ("Mail", "send_mail", MAIL_APP, "ok", "OpenAI"),
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
        agent = await service.add_tool_servers_to_agent(scripted("send_mail", "share_file"), auth, HANDLER, host_turn())
        await answer(agent)
    assert auth.asked == [SHARED_SCOPE, "api://files-app/Files.Read"]
    assert sorted(calls(platform)) == [
        ("Files", "share_file", FILES_APP, "ok", "OpenAI"),
        ("Mail", "send_mail", SHARED_APP, "ok", "OpenAI"),
    ]
    seen = platform.requests()
    assert seen[0]["path"] == f"/agents/v2/{SHARED_APP}/mcpServers"
    assert {(each["token"], each["orchestrator"]) for each in seen} == {("ok", "OpenAI")}
    assert all(each["agentId"] for each in seen)


async def test_a_token_that_is_given_is_used_as_it_is(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    platform.write({"mcpServers": [MAIL]})
    auth = in_production(platform, monkeypatch)
    token = f"Bearer {platform.token(appid=SHARED_APP)}"
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(scripted("send_mail"), None, HANDLER, host_turn(), token)
        await answer(agent)
    assert calls(platform) == [("Mail", "send_mail", SHARED_APP, "ok", "OpenAI")]
    assert auth.asked == []


async def test_without_a_token_and_without_one_to_be_had_the_caller_is_told(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    service = McpToolRegistrationService()
    with pytest.raises(TokenNotObtained):
        await service.add_tool_servers_to_agent(scripted(), Exchange(platform, gives=False), HANDLER, host_turn())
    with pytest.raises(InvalidArgument, match="auth_token"):
        await service.add_tool_servers_to_agent(scripted(), None, HANDLER, host_turn())
    assert platform.requests() == []


class Reply(BaseModel):
    text: str


async def _passes(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


@function_tool
def now() -> str:
    """The time."""
    return "noon"


@shows("A365-ADAPTERS")
async def test_the_new_agent_keeps_all_that_the_old_one_had_and_the_old_one_stays_as_it_was(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = in_production(platform, monkeypatch)
    full: Agent[Any] = Agent(
        "clerk",
        handoff_description="does errands",
        instructions="be brief",
        handoffs=[Agent("other")],
        tools=[now],
        model=Scripted(),
        model_settings=ModelSettings(temperature=0.1),
        input_guardrails=[InputGuardrail(guardrail_function=_passes)],
        output_guardrails=[OutputGuardrail(guardrail_function=_passes)],
        output_type=Reply,
        hooks=AgentHooks(),
        tool_use_behavior="stop_on_first_tool",
        reset_tool_choice=False,
        mcp_config={"include_server_in_tool_names": True},
    )
    async with McpToolRegistrationService() as service:
        made = await service.add_tool_servers_to_agent(full, auth, HANDLER, host_turn())
        assert names(made) == ["Mail", "Files"]
    assert full.mcp_servers == []
    for each in fields(Agent):
        if each.name != "mcp_servers":
            assert getattr(made, each.name) == getattr(full, each.name)


@shows("A365-ADAPTERS")
async def test_guardrails_handoffs_and_hooks_work_beside_the_tools_of_a_server(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, passed = in_production(platform, monkeypatch), list[str]()

    async def watch(*_: Any) -> GuardrailFunctionOutput:
        passed.append("guardrail")
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    class Hooks(RunHooks[Any]):
        @override
        async def on_handoff(self, *_: Any, **more: Any) -> None:
            passed.append("handoff")

    other = scripted()
    other.name = "other"
    clerk = scripted("send_mail", "transfer_to_other")
    clerk.handoffs, clerk.input_guardrails = [other], [InputGuardrail(guardrail_function=watch)]
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(clerk, auth, HANDLER, host_turn())
        result = await Runner.run(agent, "go", run_config=QUIET, hooks=Hooks())
    assert result.last_agent is other
    assert passed == ["guardrail", "handoff"]
    assert [call[1] for call in calls(platform)] == ["send_mail"]


@shows("A365-ADAPTERS")
async def test_a_server_that_cannot_be_connected_is_left_out_and_the_rest_works(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, nowhere = entry("Broken", tool("b", "b")), entry("Nowhere", url="http://127.0.0.1:1/mcp")
    platform.write({"mcpServers": [broken, nowhere, MAIL]})
    platform.fault("server:Broken", status=500)
    auth = in_production(platform, monkeypatch)
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(scripted("send_mail"), auth, HANDLER, host_turn())
        assert names(agent) == ["Mail"]
        assert "mail to ada" in await answer(agent)
    told = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert sorted(text.split("'")[1] for text in told) == ["Broken", "Nowhere"]
    assert "eyJ" not in caplog.text


async def test_a_server_that_does_not_answer_is_waited_for_only_so_long(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    auth, agent, before = in_production(platform, monkeypatch), scripted(), own_tasks()
    with closing(listen()) as silent:
        platform.write({"mcpServers": [entry("Hung", url=f"{address_of(silent)}/mcp")]})
        service = McpToolRegistrationService(connect_timeout=0.2)
        assert await service.add_tool_servers_to_agent(agent, auth, HANDLER, host_turn()) is agent
    assert "MCP server 'Hung' is left out, as it cannot be connected: TimeoutError" in caplog.text
    assert own_tasks() <= before


async def test_a_server_that_waits_for_an_account_is_left_out(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    platform.write(
        {"mcpServers": [{**MAIL, "connectivityStatus": "pending"}, {**FILES, "connectivityStatus": "READY"}]}
    )
    auth = in_production(platform, monkeypatch)
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(scripted(), auth, HANDLER, host_turn())
        assert names(agent) == ["Files"]
    assert "MCP server 'Mail' is left out until somebody connects its account" in caplog.text


async def test_a_server_that_the_agent_has_already_is_not_added_again(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = in_production(platform, monkeypatch)
    twice = {**FILES, "mcpServerName": "FilesToo", "url": f"{platform.url}/agents/servers/Files"}
    platform.write({"mcpServers": [MAIL, FILES, twice]})
    mine = MCPServerStreamableHttp({"url": f"{platform.url}/agents/servers/Mail"}, name="mine")
    async with McpToolRegistrationService() as service:
        once = await service.add_tool_servers_to_agent(Agent("clerk", mcp_servers=[mine]), auth, HANDLER, host_turn())
        assert names(once) == ["mine", "Files"]
        assert await service.add_tool_servers_to_agent(once, auth, HANDLER, host_turn()) is once


async def test_what_two_services_connect_is_closed_by_each_for_itself_and_from_any_task(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, first, second = (
        in_production(platform, monkeypatch),
        McpToolRegistrationService(),
        McpToolRegistrationService(),
    )
    before = own_tasks()
    gone = await first.add_tool_servers_to_agent(scripted("send_mail"), auth, HANDLER, host_turn())
    kept = await second.add_tool_servers_to_agent(scripted("send_mail"), auth, HANDLER, host_turn())
    await asyncio.create_task(first.cleanup_all_servers())
    assert "mail to ada" in await answer(kept)
    with pytest.raises(Exception, match="not initialized"):
        await answer(gone)
    await second.cleanup_all_servers()
    assert own_tasks() <= before
    await second.cleanup_all_servers()


class Uncopied(Agent[Any]):
    @override
    def clone(self, **changes: Any) -> Agent[Any]:
        raise ZeroDivisionError


async def test_servers_are_closed_again_when_no_agent_comes_of_them(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, service, before = in_production(platform, monkeypatch), McpToolRegistrationService(), own_tasks()
    with pytest.raises(ZeroDivisionError):
        await service.add_tool_servers_to_agent(Uncopied("clerk"), auth, HANDLER, host_turn())
    assert own_tasks() <= before


@shows("A365-ADAPTERS")
@shows("A365-CHAT")
async def test_what_was_said_in_a_session_is_sent_without_calls_of_tools(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, session = in_production(platform, monkeypatch), SQLiteSession("s")
    async with McpToolRegistrationService() as service:
        agent = await service.add_tool_servers_to_agent(scripted("send_mail"), auth, HANDLER, host_turn())
        said = await answer(agent, session)
        result = await service.send_chat_history(host_turn(), session)
    assert result.succeeded
    assert len(await session.get_items()) == 4
    session.close()
    assert history(platform) == [("user", "go"), ("assistant", said)]
    seen = platform.requests()[-1]
    assert (seen["orchestrator"], seen["agentId"], seen["token"]) == ("OpenAI", None, "none")


class Plain:
    """A session of the older kind: nothing to await."""

    def get_items(self, limit: int | None = None) -> list[Any]:
        items = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
        return items if limit is None else items[-limit:]


class Broken:
    async def get_items(self) -> list[Any]:
        raise OSError("the disk is full")


async def test_a_session_may_answer_at_once_and_may_be_asked_for_its_last_items_only(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    result = await McpToolRegistrationService().send_chat_history(host_turn(), cast("Any", Plain()), limit=1)
    assert result.succeeded
    assert history(platform) == [("assistant", "two")]


async def test_a_session_that_fails_is_told_in_the_result_and_nothing_is_sent(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    result = await McpToolRegistrationService().send_chat_history(host_turn(), cast("Any", Broken()))
    assert str(result) == "Failed: the disk is full"
    assert platform.chats() == []


class Rude:
    """A message that raises when it is read."""

    @property
    def role(self) -> str:
        raise RuntimeError("not for you")


@pytest.mark.parametrize(
    ("items", "kind"), [(None, TypeError), (5, TypeError), ([Rude()], RuntimeError), (map(int, "x"), ValueError)]
)
async def test_whatever_a_session_holds_is_told_in_the_result_and_raises_nothing(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch, items: Any, kind: type[Exception]
) -> None:
    class Strange:
        async def get_items(self) -> Any:
            return items

    in_production(platform, monkeypatch)
    result = await McpToolRegistrationService().send_chat_history(host_turn(), cast("Any", Strange()))
    assert [type(error.exception) for error in result.errors] == [kind]
    assert platform.chats() == []


async def test_messages_that_cannot_be_looked_at_are_told_in_the_result(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    result = await McpToolRegistrationService().send_chat_history_messages(host_turn(), cast("Any", [Rude()]))
    assert str(result) == "Failed: not for you"
    assert platform.chats() == []


async def test_who_gives_up_waiting_for_a_session_is_let_go(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        async def get_items(self) -> Any:
            await asyncio.Event().wait()

    in_production(platform, monkeypatch)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await McpToolRegistrationService().send_chat_history(host_turn(), cast("Any", Slow()))


async def test_messages_are_sent_with_the_callers_options_which_stay_as_they_are(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_production(platform, monkeypatch)
    service, unnamed, named = McpToolRegistrationService(), ToolOptions(), ToolOptions("Mine")
    for options in (None, unnamed, named):
        assert (await service.send_chat_history_messages(host_turn(), [], options)).succeeded
    assert [seen["orchestrator"] for seen in platform.requests()] == ["OpenAI", "OpenAI", "Mine"]
    assert unnamed == ToolOptions()


async def test_what_is_missing_is_a_value_error() -> None:
    service = McpToolRegistrationService()
    with pytest.raises(ValueError, match="turn_context cannot be None"):
        await service.send_chat_history(None, SQLiteSession("s"))
    with pytest.raises(ValueError, match="session cannot be None"):
        await service.send_chat_history(host_turn(), None)
    with pytest.raises(ValueError, match="messages cannot be None"):
        await service.send_chat_history_messages(host_turn(), None)
    with pytest.raises(ValueError, match="turn_context cannot be None"):
        await service.send_chat_history_messages(None, [])


@shows("A365-ADAPTERS")
async def test_without_the_framework_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("frontdesk.agent365.extensions.openai")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(ImportError, match=r"pip install 'frontdesk\[openai-agents\]'"):
        __import__("frontdesk.agent365.extensions.openai")
