"""The built-in agent's turn, on both model APIs: ten requests, tools of every kind, and the limit."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.llm.events import (
    Done,
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
from tests.conftest import settings_with
from tests.hosts.conftest import KEY
from tests.hosts.lab import CALLER, client_tool, of_kind, opened, said, script, take
from tests.requirements import shows
from tests.support.models import ModelServer

pytestmark = pytest.mark.anyio
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
    """A tool that answers only once so many calls of it are under way: it hangs unless they run at once."""
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
