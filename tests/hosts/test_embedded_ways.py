"""What only the built-in host does with a turn: ask first, listen on, go back; and how it thinks and makes room."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import Approval, Media, NewAgent, Prompt
from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.llm.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Failed,
    FailureKind,
    StopReason,
    TextChunk,
    ToolReturn,
    Usage,
    UserMedia,
    UserText,
)
from tests.conftest import settings_with
from tests.hosts.conftest import BUILT_IN, KEY
from tests.hosts.lab import CALLER, Lab, client_tool, of_kind, opened, said, script, take
from tests.hosts.test_prompts import PICTURE, PNG
from tests.requirements import shows
from tests.support.models import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("lab", BUILT_IN, indirect=True)]
SOUND = Media("audio/wav", b"RIFF....WAVE")


def saying(*said: Sequence[str]) -> Any:
    """Somebody who says this, each time they are asked the next."""
    words: Iterator[Sequence[str]] = iter(said)
    return lambda: next(words, ())


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
