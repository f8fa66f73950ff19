"""Tests the built-in host's own features in a turn, and tools that change during one."""

import base64
import json
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.embedded.host import EmbeddedHost
from frontdesk.agents.embedded.tools import ToolBinder
from frontdesk.agents.host import Approval, HeldTool, Media, NewAgent, Prompt
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.llm.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Failed,
    FailureKind,
    StopReason,
    TextChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
    UserMedia,
    UserText,
)
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
from tests.hosts.conftest import BUILT_IN, KEY
from tests.hosts.lab import CALLER, Lab, client_tool, of_kind, opened, said, script, take
from tests.hosts.test_prompts import PICTURE, PNG
from tests.requirements import shows
from tests.support.models.application import ModelServer
from tests.support.tool_servers import open_tool_server, tool

# The built-in host's own features: questions to the person, later messages, going back, thinking, compaction


on_both_databases = pytest.mark.parametrize("lab", BUILT_IN, indirect=True)

SOUND = Media("audio/wav", b"RIFF....WAVE")


def saying(*said: Sequence[str]) -> Any:
    """A person who gives these answers, one for each question."""
    words: Iterator[Sequence[str]] = iter(said)
    return lambda: next(words, ())


@on_both_databases
@shows("HOST")
async def test_a_tool_that_a_prompt_names_waits_this_time_and_again_after_the_approval(lab: Lab) -> None:
    ran: list[str] = []
    tool = client_tool("shout", lambda given: ran.append(given["x"]) or "done")
    steps = script({"tool": "shout", "args": {"x": "1"}}, {"tool": "shout", "args": {"x": "2"}}, {"text": "so be it"})
    asks = frozenset({"shout"})
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, steps, tools=[tool], asks=asks)
        assert events[-1] == Done(StopReason.REQUIRES_APPROVAL)
        assert ran == []
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=True)
        events = await take(host, agent.id, approvals=[word], tools=[tool], asks=asks)
        assert ran == ["1"]
        assert events[-1] == Done(StopReason.REQUIRES_APPROVAL)
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=False)
        events = await take(host, agent.id, approvals=[word], tools=[tool], asks=asks)
        assert (ran, said(events)) == (["1"], "so be it")
        events = await take(host, agent.id, script({"tool": "shout", "args": {"x": "3"}}, {"text": "k"}), tools=[tool])
        assert (ran, events[-1]) == (["1", "3"], Done(StopReason.END_TURN))


@on_both_databases
@shows("HOST")
async def test_what_is_said_while_the_agent_works_is_heard_before_it_goes_on(lab: Lab) -> None:
    more = script({"text": "as you say"})
    async with lab.open() as host:
        agent = await lab.agent(host)
        steps = script({"tool": "shout", "args": {"x": "1"}}, {"text": "never said"})
        tool = client_tool("shout", lambda _: "done")
        events = await take(host, agent.id, steps, tools=[tool], heard=saying([more]))
        assert said(events) == "as you say"
        places = [type(event).__name__ for event in events if isinstance(event, ToolReturn | UserText | TextChunk)]
        assert list(dict.fromkeys(places)) == ["ToolReturn", "UserText", "TextChunk"]
        assert of_kind(events, UserText) == [UserText(more)]
        roles = [message["role"] for message in lab.models.seen[-1].body["messages"]]
        assert roles[-3:] == ["assistant", "tool", "user"]
    async with lab.open() as host:
        told = [one for one in await host.history(agent.id) if isinstance(one.event, UserText)]
        assert [one.event for one in told] == [UserText(steps), UserText(more)]
        assert told[0].turn_id == told[1].turn_id
        assert said(await take(host, agent.id, script({"text": "next"}))) == "next"


@on_both_databases
@shows("HOST")
async def test_what_is_said_at_the_end_keeps_the_turn_going(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        heard = saying([script({"text": "two "}), "  "], [script({"text": "three"})])
        events = await take(host, agent.id, script({"text": "one "}), heard=heard)
        assert said(events) == "one two three"
        assert len(of_kind(events, Done)) == 1
        told = [one.event for one in await host.history(agent.id)]
        assert [type(one).__name__ for one in told] == ["UserText", "TextChunk"] * 3 + ["Done"]


@on_both_databases
@shows("HOST")
async def test_what_is_said_after_the_last_step_is_left_for_the_next_turn(lab: Lab) -> None:
    asked: list[int] = []

    def heard() -> Sequence[str]:
        asked.append(1)
        return ["too late"]

    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"text": "one"}), heard=heard, max_steps=1)
        steps = script({"tool": "shout", "args": {"x": "1"}})
        cut = await take(host, agent.id, steps, tools=[client_tool("shout", lambda _: "")], heard=heard, max_steps=1)
    assert (said(events), events[-1], cut[-1]) == ("one", Done(StopReason.END_TURN), Done(StopReason.MAX_STEPS))
    assert asked == []


@on_both_databases
@shows("HOST")
async def test_the_newest_turns_are_taken_back_with_all_that_belongs_to_them(lab: Lab) -> None:
    tool = client_tool("risky", lambda _: "done", needs_approval=True)
    async with lab.open() as host:
        agent = await lab.agent(host)
        await take(host, agent.id, script({"text": "one"}))
        steps = script({"tool": "risky", "args": {"x": "1"}}, {"text": "two"})
        events = await take(host, agent.id, steps, tools=[tool])
        with pytest.raises(Conflict, match="waits for approval"):
            await host.rewind(agent.id, None, 1)
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=True)
        await take(host, agent.id, approvals=[word], tools=[tool])
        await take(host, agent.id, script({"text": "three"}), heard=saying([script({"text": " and a half"})]))
        assert await host.rewind(agent.id, None, 2) == 2
        told = [one.event for one in await host.history(agent.id)]
        assert (said(told), of_kind(told, ToolReturn), told[-1]) == ("one", [], Done(StopReason.END_TURN))
        assert await host.rewind(agent.id, None, 9) == 1
        assert await host.rewind(agent.id, None, 1) == 0
        assert await host.history(agent.id) == []
        with pytest.raises(Invalid):
            await host.rewind(agent.id, None, 0)
        with pytest.raises(NotFound):
            await host.rewind(agent.id, "conv-nowhere", 1)


@on_both_databases
@shows("HOST")
async def test_nothing_is_taken_back_under_a_turn_that_runs(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        prompt = Prompt(agent.id, CALLER, script({"text": "word " * 500, "chunk_delay": 0.02}))
        with anyio.fail_after(30):
            async with aclosing(host.send(prompt)) as events:
                async for event in events:
                    if isinstance(event, TextChunk):
                        break
                with pytest.raises(Conflict, match="in the middle of a turn"):
                    await host.rewind(agent.id, None, 1)
        assert await host.rewind(agent.id, None, 1) == 1


@on_both_databases
@shows("HOST")
async def test_a_copy_has_the_summary_the_endings_and_no_open_calls(lab: Lab) -> None:
    tool = client_tool("risky", lambda _: "done", needs_approval=True)
    async with lab.open() as host:
        agent = await lab.agent(host)
        for number in range(3):
            await take(host, agent.id, f"Chapter {number}. {script({'text': f'read {number}'})}")
        assert await host.compact(agent.id, None)
        await take(host, agent.id, script({"tool": "risky", "args": {"x": "1"}}), tools=[tool])
        copy = (await host.fork(agent.id, None)).id
        assert await host.pending(agent.id)
        assert not await host.pending(agent.id, copy)
        told = [one.event for one in await host.history(agent.id, copy)]
        assert of_kind(told, Done) == [Done(StopReason.END_TURN)] * 3 + [Done(StopReason.INTERRUPTED)]
        assert said(await take(host, agent.id, script({"text": "on"}), conversation_id=copy)) == "on"
        body = json.dumps(lab.models.seen[-1].body)
        assert "Earlier in this conversation" in body
        assert "Chapter 2." in body
        with pytest.raises(NotFound):
            await host.fork(agent.id, "conv-nowhere")
        assert "read 0" in said([one.event for one in await host.history(agent.id)])


@on_both_databases
@shows("HOST")
async def test_going_back_behind_a_summary_has_it_forgotten(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        for number in range(3):
            await take(host, agent.id, f"Chapter {number}. {script({'text': f'read {number}'})}")
        assert await host.compact(agent.id, None)
        assert await host.rewind(agent.id, None, 2) == 2
        await take(host, agent.id, script({"text": "on"}))
        body = json.dumps(lab.models.seen[-1].body)
        assert "Earlier in this conversation" not in body
        assert "Chapter 0." in body
        assert "Chapter 1." not in body


@on_both_databases
@shows("HOST")
async def test_a_turn_that_makes_room_first_says_so(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        told: list[Compacted] = []
        for number in range(6):
            words = f"Chapter {number}. {'blah ' * 14_000}{script({'text': f'read {number}'})}"
            told += of_kind(await take(host, agent.id, words), Compacted)
    assert told
    assert all(one.summary for one in told)


@on_both_databases
@shows("HOST")
async def test_a_picture_that_went_unanswered_does_not_spoil_the_turns_to_come(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"error": 400}), media=[PICTURE])
        assert events[-1] == Done(StopReason.ERROR)
        assert said(await take(host, agent.id, script({"text": "on"}))) == "on"
        body = json.dumps(lab.models.seen[-1].body)
        assert base64.b64encode(PNG).decode() not in body
        assert "a picture was sent here that you never got" in body
        assert of_kind([one.event for one in await host.history(agent.id)], UserMedia)


@on_both_databases
@shows("HOST")
async def test_media_that_nobody_takes_is_refused_and_other_media_only_where_the_model_takes_it(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        with pytest.raises(Invalid, match="image/bmp"):
            await take(host, agent.id, "look", media=[Media("image/bmp", b"BM")])
        events = await take(host, agent.id, "listen", media=[SOUND])
        assert [(one.trouble, "takes no sounds" in one.message) for one in of_kind(events, Failed)] == [
            (FailureKind.INVALID, True)
        ]
        events = await take(host, agent.id, "", media=[SOUND], model="openai:fake-audio")
        assert events[-1] == Done(StopReason.END_TURN)
        assert "input_audio" in json.dumps(lab.models.seen[-1].body)
        await take(host, agent.id, "and now?")
        assert "a sound was sent here, which you cannot take" in json.dumps(lab.models.seen[-1].body)
        kinds = [type(one.event).__name__ for one in await host.history(agent.id)]
        assert kinds[:4] == ["UserText", "UserMedia", "Done", "UserMedia"], "no words, no text"


@on_both_databases
@shows("HOST")
async def test_how_hard_to_think_is_told_to_a_model_that_thinks(lab: Lab, tmp_path: Path, models: ModelServer) -> None:
    reach = {"ANTHROPIC_BASE_URL": models.anthropic_url, "ANTHROPIC_API_KEY": KEY}
    async with opened(settings_with(FRONTDESK_DATA=tmp_path / "thinking", **reach)) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        default = (await host.models())[0]
        assert default.efforts == ("low", "medium", "high")
        bodies: list[str] = []
        for effort in default.efforts:
            events = await take(host, agent, script({"text": "thought"}), effort=effort)
            assert said(events) == "thought"
            bodies.append(json.dumps({**models.seen[-1].body, "messages": []}))
            assert of_kind(events, Usage)[-1].window > 100_000
        assert len(set(bodies)) == 3
        with pytest.raises(Invalid, match="not an effort"):
            await take(host, agent, "hello", effort="enormous")
    del lab


@on_both_databases
@shows("HOST")
async def test_a_model_that_cannot_be_had_says_what_to_do(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, "hello", model="anthropic:claude-sonnet-5-5")
        assert [(one.trouble, "ANTHROPIC_API_KEY" in one.message) for one in of_kind(events, Failed)] == [
            (FailureKind.INVALID, True)
        ]
        events = await take(host, agent.id, script({"error": 404}))
        assert of_kind(events, Failed)[0].trouble is FailureKind.NOT_FOUND


# Tools of the built-in agents that change: within a turn, and by many at the same time


SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
SECONDS = 60
LIMITS = ToolLimits(max_total=12, max_mcp=10, min_mcp=3)
CHANGES = 200


async def answer(_caller: Caller, _server: str, tool: str, given: Mapping[str, Any], _token: object) -> ToolOutcome:
    """The answer of any tool of any server here: its name and its arguments."""
    return ToolOutcome(f"{tool}: {given.get('x')}")


def host_of(app: App, own_tools: ToolProvider = lambda _caller, _token: ()) -> EmbeddedHost:
    """A host on the app's database whose tools answer without a server."""
    assert isinstance(app.host, EmbeddedHost)
    toolbox = ToolBinder(answer, KnownServers(()), McpClientPool())
    return EmbeddedHost(app.database, app.turns, app.host._access, lambda: toolbox, own_tools)


@asynccontextmanager
async def tools_opened(
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
    """The names of the tools in each request to the model since then."""
    bodies = [seen.body for seen in list(models.seen)[before:]]
    return [[tool["function"]["name"] for tool in body["tools"]] for body in bodies]


@shows("LOOP")
async def test_a_tool_that_comes_in_a_turn_is_used_in_the_same_turn(thinking: Settings, models: ModelServer) -> None:
    async with tools_opened(thinking) as host:
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
    async with tools_opened(thinking) as host:
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
    async with tools_opened(thinking) as host:
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

    async with tools_opened(thinking, own) as host:
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
    """Does the work of `find_tools`, with a search that returns these tools."""
    numbers = dice.sample(range(40), dice.randint(1, 8))
    matches = [ToolCandidate(f"shop::t{number}", f"shop__t{number}", 90) for number in numbers]
    tools = {match.id: shop(match.name.removeprefix("shop__")) for match in matches}

    async def decide(held: Sequence[HeldTool]) -> SelectionPlan:
        return plan_selection(
            [CurrentTool(tool.name, f"{tool.server}::{tool.remote_name}") for tool in held], matches, LIMITS
        )

    return await change_agent_tools(host, agent, decide, tools, tools_lock)


async def test_two_hundred_changes_at_once_leave_every_limit_kept_and_no_tool_lost(settings: Settings) -> None:
    """Two processes on one database are two apps here: their locks share nothing else."""
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


# Which libraries the built-in host loads for its turns, and in which thread


# A process of its own: this one has loaded the libraries already.
PROGRAM = """
import sys, threading

import anyio

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.settings import Settings

LIBRARIES = ("pydantic_ai", "openai")
seen = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in LIBRARIES:
            seen[name] = threading.current_thread() is threading.main_thread()
        return None

async def talk():
    given = {"FRONTDESK_DATA": sys.argv[1], "FRONTDESK_MODEL": "openai:x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    async with open_app(Settings.model_validate(given)) as app:
        agent = await app.host.create(NewAgent("Ada"))
        conversation = await app.host.start_conversation(agent.id)
        assert not any(seen.values()), seen
        async for _ in app.host.send(Prompt(agent.id, Caller("r"), "hello", conversation_id=conversation.id)):
            pass

assert not {*LIBRARIES, "aiohttp"} & set(sys.modules), "something loads them from the start"
sys.meta_path.insert(0, Watch())
anyio.run(talk)
print(sorted(seen.items()))
"""


def test_the_first_talk_loads_the_model_library_aside_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.stdout.strip() == "[('openai', False), ('pydantic_ai', False)]", ended.stderr
