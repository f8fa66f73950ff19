"""Tools of the built-in agents that come and go: within a turn, and when many change them at once."""

import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.embedded.host import EmbeddedHost
from frontdesk.agents.embedded.tools import ToolBinder
from frontdesk.agents.host import Approval, HeldTool, NewAgent
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.events import ApprovalRequest, Done, Failed, StopReason, ToolCall, ToolReturn, ToolStatus
from frontdesk.llm.tools import Tool, ToolOutcome, ToolProvider
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.settings import Settings
from frontdesk.tools.agent_tools import change_agent_tools
from frontdesk.tools.agent_tools_store import AgentToolsLock, AgentToolsLockStore
from frontdesk.tools.selection import (
    CurrentTool,
    SelectionPlan,
    SelectionResult,
    ToolCandidate,
    ToolLimits,
    plan_selection,
)
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.hosts.conftest import KEY
from tests.hosts.lab import client_tool, of_kind, said, script, take
from tests.requirements import shows
from tests.support.models import ModelServer
from tests.support.tool_servers import open_tool_server, tool

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
SECONDS = 60
LIMITS = ToolLimits(max_total=12, max_mcp=10, min_mcp=3)
CHANGES = 200


async def answer(_caller: Caller, _server: str, tool: str, given: Mapping[str, Any], _token: object) -> ToolOutcome:
    """What any tool of any server answers here: its name, and what it was given."""
    return ToolOutcome(f"{tool}: {given.get('x')}")


def host_of(app: App, own_tools: ToolProvider = lambda _caller, _token: ()) -> EmbeddedHost:
    """A host on the app's database whose tools answer without a server."""
    assert isinstance(app.host, EmbeddedHost)
    toolbox = ToolBinder(answer, KnownServers(()), McpClientPool())
    return EmbeddedHost(app.database, app.turns, app.host._access, toolbox, own_tools)


@asynccontextmanager
async def opened(
    settings: Settings, own_tools: ToolProvider = lambda _caller, _token: ()
) -> AsyncGenerator[EmbeddedHost]:
    async with open_app(settings) as app:
        host = host_of(app, own_tools)
        yield host
        await host.close()


@pytest.fixture
def thinking(tmp_path: Path, models: ModelServer) -> Settings:
    return settings_with(
        FRONTDESK_DATA=tmp_path / "data",
        OPENAI_BASE_URL=models.openai_url,
        OPENAI_API_KEY=KEY,
        FRONTDESK_MODEL="openai:fake-1",
    )


def shop(name: str, *, needs_approval: bool = False) -> HeldTool:
    return HeldTool(f"shop__{name}", f"Does {name}.", needs_approval, "shop", name, SCHEMA)


def changing(host: EmbeddedHost, agent: str, attach: Sequence[HeldTool], detach: Sequence[str] = ()) -> Tool:
    """A tool that changes the tools of the agent that calls it, as `find_tools` does."""

    async def run(_arguments: Mapping[str, Any]) -> ToolOutcome:
        change = await host.change_tools(agent, attach, detach)
        return ToolOutcome(f"attached {', '.join(change.attached)}")

    return Tool("change", "Brings other tools.", SCHEMA, run)


def offered(models: ModelServer, before: int) -> list[list[str]]:
    """The names of the tools in each request that the model had since."""
    bodies = [seen.body for seen in list(models.seen)[before:]]
    return [[tool["function"]["name"] for tool in body["tools"]] for body in bodies]


@shows("LOOP")
async def test_a_tool_that_comes_in_a_turn_is_used_in_the_same_turn(thinking: Settings, models: ModelServer) -> None:
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await host.change_tools(agent, [shop("zeta")], ())
        before = len(models.seen)
        steps = script({"tool": "change"}, {"tool": "shop__alpha", "args": {"x": "now"}}, {"text": "Done."})
        events = await take(host, agent, steps, tools=[changing(host, agent, [shop("alpha")])])
        assert [back.text for back in of_kind(events, ToolReturn)] == ["attached shop__alpha", "alpha: now"]
        assert said(events) == "Done."
        first, second, third = offered(models, before)
        assert first[-2:] == ["change", "shop__zeta"]
        assert second == third == [*first, "shop__alpha"], "what the provider has read already stays as it was"
        before = len(models.seen)
        await take(host, agent, script({"text": "Again."}), tools=[changing(host, agent, ())])
        assert offered(models, before) == [second], "and in the next turn too"


@shows("LOOP")
async def test_a_tool_that_goes_in_a_turn_is_not_there_any_more(thinking: Settings, models: ModelServer) -> None:
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await host.change_tools(agent, [shop("a"), shop("b")], ())
        both = [{"name": "change"}, {"name": "shop__a", "args": {"x": "just in time"}}]
        steps = script({"tools": both}, {"tool": "shop__a"}, {"tool": "shop__b", "args": {"x": "still"}}, {"text": "."})
        events = await take(host, agent, steps, tools=[changing(host, agent, (), ["shop__a"])])
        told = {back.text: back.status for back in of_kind(events, ToolReturn)}
        assert told["a: just in time"] is ToolStatus.OK, "what the model was offered, it may still call"
        assert told["b: still"] is ToolStatus.OK
        assert ToolStatus.UNKNOWN in told.values()
        assert [tool.name for tool in await host.tools(agent)] == ["shop__b"]


@shows("LOOP")
async def test_a_tool_that_comes_in_a_turn_waits_for_approval_where_it_needs_it(thinking: Settings) -> None:
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        tools = [changing(host, agent, [shop("buy", needs_approval=True)])]
        events = await take(host, agent, script({"tool": "change"}, {"tool": "shop__buy"}, {"text": "ok"}), tools=tools)
        assert events[-1] == Done(StopReason.REQUIRES_APPROVAL)
        [request] = of_kind(events, ApprovalRequest)
        events = await take(host, agent, approvals=[Approval(request.call_id, approve=True)], tools=tools)
        assert [back.text for back in of_kind(events, ToolReturn)] == ["buy: None"]


async def test_tools_that_every_agent_has_come_with_its_caller_and_win_over_what_it_holds(thinking: Settings) -> None:
    callers: list[Caller] = []

    def own(caller: Caller, _token: object) -> Sequence[Tool]:
        callers.append(caller)
        return [client_tool("shop__who", lambda _: "the house")]

    async with opened(thinking, own) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await host.change_tools(agent, [shop("who"), shop("other")], ())
        calls = [{"name": name, "args": {"x": "y"}} for name in ("shop__who", "shop__other")]
        events = await take(host, agent, script({"tools": calls}, {"text": "ok"}), caller=Caller("req-1", None, "ann"))
        assert {back.text for back in of_kind(events, ToolReturn)} == {"the house", "other: y"}
        assert {(caller.agent_id, caller.user_id) for caller in callers} == {(agent, "ann")}
        events = await take(host, agent, script({"text": "ok"}), tools=[client_tool("shop__who", lambda _: "mine")])
        assert "shop__who" in of_kind(events, Failed)[0].message


async def change_at_random(
    host: EmbeddedHost, agent: str, tools_lock: AgentToolsLock, dice: random.Random
) -> SelectionResult:
    """What `find_tools` does, with a search that finds whatever it likes."""
    numbers = dice.sample(range(40), dice.randint(1, 8))
    matches = [ToolCandidate(f"shop::t{number}", f"shop__t{number}", 90) for number in numbers]
    tools = {match.id: shop(match.name.removeprefix("shop__")) for match in matches}

    async def decide(held: Sequence[HeldTool]) -> SelectionPlan:
        return plan_selection(
            [CurrentTool(tool.name, f"{tool.server}::{tool.remote_name}") for tool in held], matches, LIMITS
        )

    return await change_agent_tools(host, agent, decide, tools, tools_lock)


async def test_two_hundred_changes_at_once_leave_every_limit_kept_and_no_tool_lost(settings: Settings) -> None:
    """Two processes on one database are two apps here: their locks have nothing else in common."""
    done: list[SelectionResult] = []
    dice = random.Random(4)

    async def one(host: EmbeddedHost, agent: str, tools_lock: AgentToolsLock) -> None:
        done.append(await change_at_random(host, agent, tools_lock, dice))

    async with open_app(settings) as here, open_app(settings) as there:
        agent = (await here.host.create(NewAgent("Ada"))).id
        hosts = [host_of(app) for app in (here, there)]
        gates = [AgentToolsLock(AgentToolsLockStore(app.database)) for app in (here, there)]
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for number in range(CHANGES):
                    tasks.start_soon(one, hosts[number % 2], agent, gates[number % 2])
        held = [tool.name for tool in await hosts[0].tools(agent)]
    assert len(done) == CHANGES
    assert not any(selection.failed for selection in done)
    assert LIMITS.min_mcp <= len(held) <= LIMITS.max_mcp
    came = [choice.name for selection in done for choice in selection.attached]
    went = [choice.name for selection in done for choice in selection.detached]
    assert {name: came.count(name) - went.count(name) for name in {*came}} == {name: name in held for name in {*came}}
    assert set(held) <= set(came)


@shows("KEPT-12")
async def test_call_tool_of_an_agent_takes_its_arguments_as_json_text(thinking: Settings) -> None:
    given = [{"text": "hello"}, '{"text": "hello"}', "", None, "[1]", '{"text": ', "hello"]
    calls = [{"name": "call_tool", "args": {"name": "post::send_mail", "arguments": one}} for one in given]
    with open_tool_server("post", [tool("send_mail", "Send a letter.")]) as server:
        async with open_app(thinking) as app:
            await app.tools.catalogue.add(ServerSpec("post", url=server.url))
            agent = (await app.host.create(NewAgent("Ada"))).id
            events = await take(app.host, agent, script({"tools": calls}, {"text": "done"}))
    told = {one.call_id: one for one in of_kind(events, ToolReturn)}
    back = [told[one.call_id] for one in of_kind(events, ToolCall)]
    assert [one.status for one in back] == [ToolStatus.OK] * 2 + [ToolStatus.ERROR] * 5
    assert all("do not fit post::send_mail" in one.text for one in back[2:4]), "they stand for no arguments"
    assert "must be a JSON object" in back[4].text
    assert all("no JSON" in one.text for one in back[5:])
