"""Tests prompts with more than text, on every host: pictures, the work folder, another model; and the listeners."""

import base64
import json
from typing import Any

import anyio
import pytest

from frontdesk.agents.host import Media
from frontdesk.errors import Invalid, Unavailable
from frontdesk.llm.events import Done, Failed, StopReason, ToolCall, ToolReturn, ToolStatus, Usage, UserMedia, UserText
from frontdesk.llm.tools import Tool, ToolOutcome
from tests.hosts.lab import Lab, of_kind, said, script, take
from tests.requirements import shows

# One red pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
PICTURE = Media("image/png", PNG)
SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}


def told_last(lab: Lab) -> str:
    """The last request to the model."""
    return json.dumps(lab.models.seen[-1].body)


@shows("HOST")
async def test_a_picture_goes_to_the_model_and_is_told_in_the_history(lab: Lab) -> None:
    words = script({"text": "red"})
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, words, media=[PICTURE])
        assert said(events) == "red"
        assert base64.b64encode(PNG).decode() in told_last(lab)
        await take(host, agent.id, script({"text": "still red"}))
        assert base64.b64encode(PNG).decode() in told_last(lab), "it stays before the model's eyes"
    async with lab.open() as host:
        told = [one.event for one in await host.history(agent.id)]
    place = told.index(UserText(words))
    assert told[place + 1] == UserMedia("image/png", PNG)
    assert len(of_kind(told, UserMedia)) == 1


@shows("HOST")
async def test_where_the_agent_is_is_told_to_the_model_and_is_nobodys_words(lab: Lab) -> None:
    words = script({"text": "I see"})
    async with lab.open() as host:
        agent = await lab.agent(host)
        assert said(await take(host, agent.id, words, context="You are in the folder /tmp/attic.")) == "I see"
        assert "You are in the folder /tmp/attic." in told_last(lab)
        told = [one.event for one in await host.history(agent.id)]
    assert [event.text for event in of_kind(told, UserText)][-1] == words
    assert "attic" not in str(told)


@shows("HOST")
async def test_a_turn_says_how_full_the_model_is(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"text": "full"}))
    usage = of_kind(events, Usage)[-1]
    assert usage.context_tokens > 0


@shows("HOST")
async def test_a_tool_is_told_the_id_of_its_call(lab: Lab) -> None:
    told: list[tuple[str, Any]] = []

    async def never(_arguments: Any) -> ToolOutcome:
        raise AssertionError("the other way is to be taken")

    async def run(call_id: str, arguments: Any) -> ToolOutcome:
        told.append((call_id, arguments["x"]))
        return ToolOutcome("noted")

    tool = Tool("note", "Notes.", SCHEMA, never, run_call=run)
    async with lab.open() as host:
        agent = await lab.agent(host)
        steps = script({"tool": "note", "args": {"x": "a"}}, {"tool": "note", "args": {"x": "b"}}, {"text": "ok"})
        events = await take(host, agent.id, steps, tools=[tool])
    calls = of_kind(events, ToolCall)
    assert told == [(call.call_id, call.arguments["x"]) for call in calls]
    assert [back.call_id for back in of_kind(events, ToolReturn)] == [call.call_id for call in calls]


@shows("HOST")
async def test_what_a_prompt_may_name_as_its_model_is_listed_and_taken(lab: Lab) -> None:
    async with lab.open() as host:
        first = (await host.models())[0]
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"text": "as you wish"}), model=first.name)
    assert said(events) == "as you wish"
    assert lab.models.seen[-1].body["model"] == "fake-1"


@shows("HOST")
async def test_a_model_that_cannot_be_had_ends_the_turn_and_not_the_conversation(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, "hello", model="nobody/nothing-1")
        assert of_kind(events, Failed)
        assert events[-1] == Done(StopReason.ERROR)
        assert said(await take(host, agent.id, script({"text": "back"}))) == "back"


@shows("HOST")
async def test_a_copy_of_a_conversation_goes_its_own_way(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        talk = await host.start_conversation(agent.id, title="Plans")
        await take(host, agent.id, script({"text": "the first"}), conversation_id=talk.id)
        copy = await host.fork(agent.id, talk.id)
        assert copy.id != talk.id
        assert copy.id in {one.id for one in await host.conversations(agent.id, 10)}
        await take(host, agent.id, script({"text": "the second"}), conversation_id=copy.id)
        assert "the first" in told_last(lab)
        assert said([one.event for one in await host.history(agent.id, copy.id)]).endswith("the second")
        assert said([one.event for one in await host.history(agent.id, talk.id)]) == "the first"


@shows("HOST")
async def test_the_first_conversation_stays(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        await take(host, agent.id, script({"text": "at first"}))
        first = (await host.conversations(agent.id, 10))[0]
        await host.forget(agent.id, first.id)
        assert "at first" in said([one.event for one in await host.history(agent.id)])


@shows("HOST")
async def test_a_conversation_that_is_forgotten_is_gone(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        talk, other = await host.start_conversation(agent.id), await host.start_conversation(agent.id)
        for one in (talk, other):
            await take(host, agent.id, script({"text": "a secret"}), conversation_id=one.id)
        await host.forget(agent.id, talk.id)
        left = {one.id for one in await host.conversations(agent.id, 10)}
        assert talk.id not in left
        assert other.id in left
        await host.forget(agent.id, talk.id)
        await host.forget((await lab.agent(host)).id, other.id)
        await host.forget(agent.id, "conv-00000000-0000-4000-8000-000000000000")
        assert said([one.event for one in await host.history(agent.id, other.id)]) == "a secret"


@shows("HOST")
async def test_a_long_conversation_is_summed_up_when_somebody_asks_for_it(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        talk = await host.start_conversation(agent.id)
        assert await host.compact(agent.id, talk.id) is None
        for number in range(4):
            words = f"Chapter {number}. {'blah ' * 300}{script({'text': f'read {number}'})}"
            await take(host, agent.id, words, conversation_id=talk.id)
        assert await host.compact(agent.id, talk.id)
        assert said(await take(host, agent.id, script({"text": "on"}), conversation_id=talk.id)) == "on"
        assert "Chapter 0. blah blah" not in told_last(lab)


@shows("KEPT-11")
async def test_a_summary_that_failed_is_told_and_changes_nothing(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        talk = await host.start_conversation(agent.id)
        for number in range(4):
            words = f"Chapter {number}. {'blah ' * 300}{script({'text': f'read {number}'})}"
            await take(host, agent.id, words, conversation_id=talk.id)
    async with lab.open(lab.dead) as host:
        with pytest.raises(Unavailable):
            await host.compact(agent.id, talk.id)
    async with lab.open() as host:
        assert said(await take(host, agent.id, script({"text": "on"}), conversation_id=talk.id)) == "on"
        assert "Chapter 0. blah blah" in told_last(lab)


@shows("HOST")
async def test_a_host_refuses_what_its_traits_do_not_have(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        await take(host, agent.id, script({"text": "one"}))
        if host.features.can_rewind:
            assert await host.rewind(agent.id, None, 1) == 1
        else:
            with pytest.raises(Invalid):
                await host.rewind(agent.id, None, 1)


@shows("HOST")
async def test_a_tool_that_may_take_no_time_is_stopped_at_once_and_the_turn_goes_on(lab: Lab) -> None:
    async def run(_arguments: Any) -> ToolOutcome:
        await anyio.sleep_forever()
        raise AssertionError

    tool = Tool("slow", "Never ends.", SCHEMA, run, seconds=0.05)
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"tool": "slow"}, {"text": "well"}), tools=[tool])
    back = of_kind(events, ToolReturn)[0]
    assert (back.status, back.text) == (ToolStatus.ERROR, "No answer in 0.05 s; the tool was stopped")
    assert said(events) == "well"
