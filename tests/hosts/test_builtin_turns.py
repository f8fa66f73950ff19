"""Tests the built-in agent's turn on both model APIs: the loop, the order of tool calls, and approvals."""

import json
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import Approval, NewAgent, Prompt
from frontdesk.agents.letta.turn import run_client_tools
from frontdesk.app import App, open_app
from frontdesk.errors import Invalid
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    Event,
    Failed,
    FailureKind,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolArguments,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
    UserText,
)
from frontdesk.llm.tools import Tool, ToolOutcome
from frontdesk.settings import Settings
from frontdesk.tools.servers import ServerSpec
from tests.conftest import settings_with
from tests.hosts.conftest import BUILT_IN, KEY
from tests.hosts.lab import CALLER, client_tool, of_kind, opened, said, script, take
from tests.requirements import shows
from tests.support.models.application import ModelServer
from tests.support.postgres import Postgres
from tests.support.tool_servers import open_tool_server, tool

# The loop on both model APIs: ten requests, tools of every kind, and the limit


SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}


@pytest.fixture(params=["openai", "anthropic"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, models: ModelServer) -> Settings:
    data = {"FRONTDESK_DATA": tmp_path / "data"}
    if request.param == "openai":
        reach = {"OPENAI_BASE_URL": models.openai_url, "OPENAI_API_KEY": KEY, "FRONTDESK_MODEL": "openai:fake-1"}
    else:
        reach = {
            "ANTHROPIC_BASE_URL": models.anthropic_url,
            "ANTHROPIC_API_KEY": KEY,
            "FRONTDESK_MODEL": "anthropic:claude-fake-1",
        }
    return settings_with(**data, **reach)


def meeting(parties: int) -> Tool:
    """A tool that answers only when this many calls of it are running: it hangs unless they run concurrently."""
    waiting: list[anyio.Event] = []

    async def run(arguments: Any) -> ToolOutcome:
        here = anyio.Event()
        waiting.append(here)
        if len(waiting) == parties:
            for event in waiting:
                event.set()
        with anyio.fail_after(20):
            await here.wait()
        return ToolOutcome(f"met as {arguments['x']}")

    return Tool("meet", "Waits for the others.", SCHEMA, run, reads_only=True)


def broken() -> Tool:
    async def run(_arguments: Any) -> ToolOutcome:
        raise RuntimeError("the pipes are frozen")

    return Tool("broken", "Always fails.", SCHEMA, run)


@shows("LOOP")
async def test_a_ten_turn_conversation_with_tools_of_every_kind(settings: Settings, models: ModelServer) -> None:
    steps: list[dict[str, Any]] = [
        {"reasoning": "first a word", "text": "Let me look. ", "tool": "shout", "args": {"x": "a rather long word"}},
        {"tools": [{"name": "meet", "args": {"x": name}} for name in ("one", "two", "three")]},
        {"tool": "broken", "args": {}},
        {"tool": "nowhere", "args": {"x": "y"}},
        {"tools": [{"name": "shout", "raw": '{"x": '}]},
        *({"tool": "shout", "args": {"x": f"step {number}"}} for number in range(4)),
        {"text": "All done."},
    ]
    tools = [client_tool("shout", lambda given: given["x"].upper()), meeting(3), broken()]
    before = len(models.seen)
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script(*steps), tools=tools)
        assert len(models.seen) - before == 10
        assert events[-1] == Done(StopReason.END_TURN)
        assert said(events) == "Let me look. All done."
        assert "".join(chunk.text for chunk in of_kind(events, ThoughtChunk)) == "first a word"
        first = of_kind(events, ToolCall)[0]
        pieces = [piece.delta for piece in of_kind(events, ToolArguments) if piece.call_id == first.call_id]
        assert len(pieces) > 1
        assert "a rather long word" in "".join(pieces)
        answers = [(back.name, back.status) for back in of_kind(events, ToolReturn)]
        assert sorted(answers[1:4]) == [("meet", ToolStatus.OK)] * 3
        assert answers[4] == ("broken", ToolStatus.ERROR)
        assert answers[5] == ("nowhere", ToolStatus.UNKNOWN)
        assert answers[6] == ("shout", ToolStatus.ERROR)
        assert answers[7:] == [("shout", ToolStatus.OK)] * 4
        calls = [call.call_id for call in of_kind(events, ToolCall)]
        assert sorted(calls) == sorted(back.call_id for back in of_kind(events, ToolReturn))
        assert len(set(calls)) == len(calls)
        told = json.dumps(models.seen[-1].body)
        for text in ("A RATHER LONG WORD", "met as two", "the pipes are frozen", "Tool 'nowhere' not found"):
            assert text in told, "every answer was fed back"
        assert of_kind(events, Usage)[-1].input_tokens == 1000
        assert said(await take(host, agent, script({"text": "And on we go."}))) == "And on we go."


@shows("LOOP")
async def test_ten_requests_are_the_limit_by_default(settings: Settings, models: ModelServer) -> None:
    before = len(models.seen)
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        steps = [{"tool": "shout", "args": {"x": str(number)}} for number in range(15)]
        events = await take(host, agent, script(*steps), tools=[client_tool("shout", lambda _: "more")])
        assert events[-1] == Done(StopReason.MAX_STEPS)
        assert len(of_kind(events, ToolReturn)) == 10
        assert len(models.seen) - before == 10
        assert said(await take(host, agent, script({"text": "fresh start"}))) == "fresh start"


@shows("LOOP")
async def test_an_answer_that_breaks_off_is_told_and_its_beginning_kept(settings: Settings) -> None:
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"text": "so far so good", "drop": True}))
        assert said(events) == "so far so good"
        assert of_kind(events, Failed)[0].trouble is FailureKind.UNAVAILABLE
        assert events[-1] == Done(StopReason.ERROR)
        told = [one.event for one in await host.history(agent)]
        assert TextChunk("so far so good") in told
        assert told[-1] == Done(StopReason.ERROR)
        assert said(await take(host, agent, script({"text": "whole again"}))) == "whole again"


@shows("KEPT-11")
@pytest.mark.parametrize("calls", [0, 2])
async def test_an_answer_that_ends_without_a_reason_is_broken_off_and_its_calls_do_not_run(
    settings: Settings, calls: int
) -> None:
    async def run(_arguments: Any) -> ToolOutcome:
        raise AssertionError("half an answer was acted on")

    tools = [Tool("act", "Acts.", SCHEMA, run)]
    called = [{"name": "act", "args": {"x": "a rather long word"}}] * calls
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"text": "so far", "tools": called, "cut": True}), tools=tools)
        assert [one.trouble for one in of_kind(events, Failed)] == [FailureKind.UNAVAILABLE]
        assert "broke its answer off" in of_kind(events, Failed)[0].message
        assert events[-1] == Done(StopReason.ERROR)
        assert of_kind(events, ToolCall) == []
        assert said([one.event for one in await host.history(agent)]) == "so far"
        assert said(await take(host, agent, script({"text": "whole again"}), tools=tools)) == "whole again"


@shows("LOOP")
@pytest.mark.parametrize(("status", "trouble"), [(429, FailureKind.RATE_LIMITED), (500, FailureKind.UNAVAILABLE)])
async def test_what_the_provider_says_is_told_in_words(settings: Settings, status: int, trouble: FailureKind) -> None:
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"error": status}))
    assert of_kind(events, Failed)[0].trouble is trouble
    assert KEY not in str(events)


@shows("LOOP")
async def test_when_the_caller_leaves_the_model_is_left_too(settings: Settings, models: ModelServer) -> None:
    gone = models.disconnects
    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        prompt = Prompt(agent, CALLER, script({"text": "word " * 500, "chunk_delay": 0.02}))
        async with aclosing(host.send(prompt)) as events:
            async for event in events:
                if isinstance(event, TextChunk):
                    break
        told = [one.event for one in await host.history(agent)]
    assert told[-1] == Done(StopReason.CANCELLED)
    assert said(told).startswith("word ")
    assert await anyio.to_thread.run_sync(models.wait_for_disconnects, gone + 1)


@shows("LOOP")
async def test_a_conversation_that_fills_the_model_is_summed_up_and_stays_whole(
    settings: Settings, models: ModelServer
) -> None:
    def long(number: int) -> str:
        return f"Chapter {number}. {'blah ' * 14_000}{script({'text': f'read {number}'})}"

    async with opened(settings) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        for number in range(6):
            assert said(await take(host, agent, long(number))) == f"read {number}"
        told = json.dumps(models.seen[-1].body)
        assert "Earlier in this conversation" in told
        assert "Chapter 0" not in told
        assert "Chapter 5" in told
        assert any("Sum up the conversation" in json.dumps(seen.body) for seen in models.seen)
        history = [one.event for one in await host.history(agent)]
        assert [event.text[:9] for event in of_kind(history, UserText)] == [f"Chapter {n}" for n in range(6)]


# The order of the tool calls of one model turn: as the model made them; calls that only read run concurrently


ANN = Caller("req-test", user_id="ann", source=AgentIdSource.CREDENTIAL, verified=True)
BATCHES = 25


@pytest.fixture(scope="module", params=BUILT_IN)
async def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[App]:
    """Our own agents with an offline model, on either database."""
    data: dict[str, Any] = {"FRONTDESK_DATA": tmp_path_factory.mktemp("order"), "FRONTDESK_EMBEDDINGS": "off"}
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        data["FRONTDESK_DATABASE_URL"] = server.create_database()
    async with open_app(settings_with(**data)) as opened:
        yield opened


@dataclass
class Bench:
    """Tools that record when they begin and end. Reading tools wait until all that may run with them have begun."""

    began: list[str] = field(default_factory=list[str])
    log: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    meet: dict[str, tuple[int, anyio.Event]] = field(default_factory=dict[str, tuple[int, anyio.Event]])

    def tools(self) -> Sequence[Tool]:
        read = Tool("read", "Reads.", SCHEMA, self._read, reads_only=True)
        return [read, Tool("change", "Changes.", SCHEMA, self._change)]

    def plan(self, kinds: Sequence[str]) -> list[dict[str, Any]]:
        """Calls of these kinds; all calls of one run of reading tools wait for each other."""
        calls: list[dict[str, Any]] = []
        group: list[str] = []
        for number, kind in enumerate([*kinds, ""]):
            name = f"{kind} {number}"
            if kind == "read":
                group.append(name)
            else:
                meeting = (len(group), anyio.Event())
                self.meet |= dict.fromkeys(group, meeting)
                group = []
            if kind:
                calls.append({"name": kind, "args": {"x": name}})
        return calls

    async def _read(self, given: Any) -> ToolOutcome:
        name = given["x"]
        self.log.append(("begins", name))
        self.began.append(name)
        count, event = self.meet[name]
        if sum(self.meet[one][1] is event for one in self.began if one in self.meet) == count:
            event.set()
        with anyio.fail_after(20):
            await event.wait()
        self.log.append(("ends", name))
        return ToolOutcome(name)

    async def _change(self, given: Any) -> ToolOutcome:
        self.log.append(("begins", given["x"]))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        self.log.append(("ends", given["x"]))
        return ToolOutcome(given["x"])

    def check(self, kinds: Sequence[str]) -> None:
        """A call that changes something runs after all earlier calls and before all later ones."""
        at = {(what, name): place for place, (what, name) in enumerate(self.log)}
        names = [f"{kind} {number}" for number, kind in enumerate(kinds)]
        assert len(self.log) == 2 * len(names)
        for number, name in enumerate(names):
            for later in names[number + 1 :]:
                if "change" in name + later:
                    assert at["ends", name] < at["begins", later], (kinds, self.log)


@shows("KEPT-09")
async def test_a_search_after_a_create_in_one_batch_finds_what_was_created(app: App) -> None:
    agent = (await app.host.create(NewAgent("Ada"))).id
    for number in range(5):
        calls = [
            {"name": "search_tasks", "args": {"keyword": f"errand{number}"}},
            {"name": "create_task", "args": {"title": f"errand{number}"}},
            {"name": "search_tasks", "args": {"keyword": f"errand{number}"}},
        ]
        events = await take(app.host, agent, script({"tools": calls}, {"text": "done"}), caller=ANN)
        returns = _returns(events)
        assert [back.status for back in returns] == [ToolStatus.OK] * 3
        assert [f"errand{number}" in back.text for back in returns] == [False, True, True]


@shows("KEPT-09")
async def test_calls_run_in_the_order_given_and_reads_beside_each_other(app: App) -> None:
    agent, chance = (await app.host.create(NewAgent("Ada"))).id, random.Random(9)
    for _ in range(BATCHES):
        kinds = chance.choices(["read", "change"], [2, 1], k=chance.randint(1, 10))
        bench = Bench()
        said = script({"tools": bench.plan(kinds)}, {"text": "done"})
        events = await take(app.host, agent, said, tools=bench.tools())
        bench.check(kinds)
        assert [call.arguments["x"] for call in of_kind(events, ToolCall)] == _names(kinds)
        assert {back.text for back in of_kind(events, ToolReturn)} == set(_names(kinds))


@shows("KEPT-09")
async def test_the_caller_s_tools_of_a_letta_agent_run_in_the_order_given() -> None:
    chance = random.Random(90)
    for _ in range(BATCHES):
        kinds = chance.choices(["read", "change"], [2, 1], k=chance.randint(1, 10))
        bench, heard = Bench(), list[Event]()
        tools = {one.name: one for one in bench.tools()}
        planned = [ApprovalRequest(f"call-{at}", one["name"], one["args"]) for at, one in enumerate(bench.plan(kinds))]

        async def emit(event: Event, heard: list[Event] = heard) -> None:
            heard.append(event)

        answers = await run_client_tools(planned, tools, emit)
        bench.check(kinds)
        assert [one["tool_return"] for one in answers] == _names(kinds)
        assert [call.arguments["x"] for call in of_kind(heard, ToolCall)] == _names(kinds)


@shows("KEPT-09")
async def test_a_server_s_word_that_a_tool_reads_only_counts_for_the_order(app: App) -> None:
    looks = {**tool("look"), "annotations": {"readOnlyHint": True}}
    listed = [looks, tool("burn"), {**tool("lie"), "annotations": {"readOnlyHint": "yes"}}]
    with open_tool_server("shed", listed) as server:
        await app.tools.catalogue.add(ServerSpec("shed", url=server.url))
        known = [await app.tools.dispatcher.reads_only(f"shed::{name}") for name in ("look", "burn", "lie", "gone")]
        assert known == [True, False, False, False]
        await app.tools.catalogue.remove("shed")


@shows("KEPT-09")
async def test_a_turn_that_is_left_runs_nothing_more_and_the_next_is_told(app: App) -> None:
    ran: list[str] = []

    async def hang(given: Any) -> ToolOutcome:
        ran.append(given["x"])
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    reached = anyio.Event()
    tools = [Tool("hang", "Hangs.", SCHEMA, hang)]
    agent = (await app.host.create(NewAgent("Ada"))).id
    calls = [{"name": "hang", "args": {"x": str(number)}} for number in range(3)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: take(app.host, agent, script({"tools": calls}), tools=tools))
        await reached.wait()
        assert await app.host.cancel(agent)
    assert ran == ["0"]
    told = [one.event for one in await app.host.history(agent)]
    assert len(of_kind(told, ToolReturn)) == 3, "each call has an end"
    events = await take(app.host, agent, script({"text": "on"}))
    assert getattr(events[-1], "stop", None) is StopReason.END_TURN


def _names(kinds: Sequence[str]) -> list[str]:
    return [f"{kind} {number}" for number, kind in enumerate(kinds)]


def _returns(events: Sequence[Event]) -> list[ToolReturn]:
    """In the order of their calls."""
    back = {one.call_id: one for one in of_kind(events, ToolReturn)}
    return [back[call.call_id] for call in of_kind(events, ToolCall)]


# Approvals: turns that are given up or lost, and an endpoint's odd ids


@pytest.fixture
def thinking(tmp_path: Path, models: ModelServer) -> Settings:
    return settings_with(
        FRONTDESK_DATA=tmp_path / "data",
        OPENAI_BASE_URL=models.openai_url,
        OPENAI_API_KEY=KEY,
        FRONTDESK_MODEL="openai:fake-1",
    )


@shows("HOST")
async def test_a_cancelled_approval_says_that_nothing_ran(thinking: Settings) -> None:
    tools = [client_tool("risky", lambda _: "done", needs_approval=True), client_tool("free", lambda _: "done")]
    calls: list[Mapping[str, Any]] = [{"name": name, "args": {}} for name in ("risky", "free")]
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await take(host, agent, script({"tools": calls}), tools=tools)
        assert await host.cancel(agent)
        assert not await host.pending(agent)
        told = [one.event for one in await host.history(agent)]
        ended = of_kind(told, ToolReturn)
        assert [back.status for back in ended] == [ToolStatus.DENIED] * 2, (
            "what was held back with it did not run either"
        )
        assert all("did not run" in back.text for back in ended)
        assert told[-1] == Done(StopReason.CANCELLED)
        assert said(await take(host, agent, script({"text": "on"}))) == "on"


@shows("HOST")
async def test_what_comes_after_a_call_that_needs_approval_runs_after_it(thinking: Settings) -> None:
    ran: list[str] = []

    def note(answer: str) -> Callable[[dict[str, str]], str]:
        def run(given: dict[str, str]) -> str:
            ran.append(given["x"])
            return answer

        return run

    tools = [
        client_tool("free", note("free went")),
        client_tool("risky", note("risky went"), needs_approval=True),
    ]
    named = (("free", "0"), ("risky", "1"), ("free", "2"), ("risky", "3"), ("free", "4"))
    calls = [{"name": name, "args": {"x": x}} for name, x in named]
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"tools": calls}, {"text": "all done"}), tools=tools)
        assert ran == ["0"]
        told = [one.event for one in await host.history(agent)]
        assert [back.status for back in of_kind(told, ToolReturn)] == [ToolStatus.OK], "nothing else came to an end"
        first, second = of_kind(events, ApprovalRequest)
        with pytest.raises(Invalid, match="each of"):
            await take(host, agent, approvals=[Approval(first.call_id, approve=True)], tools=tools)
        words = [Approval(first.call_id, approve=True), Approval(second.call_id, approve=False, reason="no")]
        events = await take(host, agent, approvals=words, tools=tools)
        assert ran == ["0", "1", "2", "4"]
        ended = [back.status for back in of_kind(events, ToolReturn)]
        assert ended == [ToolStatus.DENIED, ToolStatus.OK, ToolStatus.OK, ToolStatus.OK]
        assert said(events) == "all done"
        assert events[-1] == Done(StopReason.END_TURN)


@shows("HOST")
async def test_an_approval_after_an_interrupted_tool_sends_the_model_a_sound_history(
    thinking: Settings, models: ModelServer
) -> None:
    risky = client_tool("risky", lambda _: "went", needs_approval=True)
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        await take(host, agent, script({"tool": "risky", "args": {}}), tools=[risky])
        await host.cancel(agent)
        events = await take(host, agent, script({"tool": "risky", "args": {}}, {"text": "ok"}), tools=[risky])
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=True)
        events = await take(host, agent, approvals=[word], tools=[risky])
        assert said(events) == "ok"
    messages = models.seen[-1].body["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert asked == answered


@shows("HOST")
async def test_an_approved_call_whose_tool_is_gone_is_told_to_the_model(thinking: Settings) -> None:
    tool = client_tool("risky", lambda _: "went", needs_approval=True)
    async with opened(thinking) as host:
        agent = (await host.create(NewAgent("Ada"))).id
        events = await take(host, agent, script({"tool": "risky", "args": {}}, {"text": "pity"}), tools=[tool])
        word = Approval(of_kind(events, ApprovalRequest)[0].call_id, approve=True)
        events = await take(host, agent, approvals=[word])
        assert of_kind(events, ToolReturn)[0].status is ToolStatus.UNKNOWN
        assert said(events) == "pity"
