"""Tests the behaviour that all agent hosts share, on each of them."""

from contextlib import aclosing

import anyio
import pytest

from frontdesk.agents.host import AgentHost, Approval, MemoryBlock, NewAgent, Prompt
from frontdesk.agents.memory_blocks import value_fingerprint
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.agents.turns.operations import AGENT_DELETED, cancel_turn, list_turns, read_turn
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict, Invalid, NotFound, PendingApproval
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    Event,
    Failed,
    FailureKind,
    MemoryEdit,
    Started,
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
from tests.hosts.lab import CALLER, SECONDS, Lab, client_tool, of_kind, said, script, take
from tests.requirements import shows
from tests.support.browsers import browsing, text_of
from tests.support.chat import script as pages_script

LONG = "word " * 400


@shows("HOST")
async def test_an_agent_is_made_found_listed_and_deleted(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host, human="Likes tea")
        found = await host.find(agent.id)
        assert found is not None
        assert (found.id, found.name) == (agent.id, "Ada")
        assert agent.id in {one.id for one in await host.list(1000)}
        assert "Likes tea" in {block.value for block in await host.blocks(agent.id)}
        talk = await host.start_conversation(agent.id)
        assert not await host.pending(agent.id, talk.id)
        await host.delete(agent.id)
        assert await host.find(agent.id) is None
        for conversation_id in (None, talk.id):
            with pytest.raises(NotFound):
                await take(host, agent.id, "hello", conversation_id=conversation_id)
            with pytest.raises(NotFound):
                await host.pending(agent.id, conversation_id)


@shows("HOST")
async def test_an_answer_comes_in_pieces_with_thoughts_usage_and_an_end(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"reasoning": "let me see", "text": "one two three four"}))
    assert isinstance(events[0], Started)
    assert said(events) == "one two three four"
    assert len(of_kind(events, TextChunk)) > 1
    assert "".join(chunk.text for chunk in of_kind(events, ThoughtChunk)) == "let me see"
    assert of_kind(events, Usage)[-1].output_tokens > 0
    assert events[-1] == Done(StopReason.END_TURN)
    assert len(of_kind(events, Done)) == 1


@shows("HOST")
async def test_cancelling_in_the_middle_of_an_answer_stops_the_work(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        prompt = Prompt(agent.id, CALLER, script({"text": LONG, "chunk_delay": 0.02}))
        seen: list[object] = []
        with anyio.fail_after(SECONDS):
            async with aclosing(host.send(prompt)) as events, anyio.create_task_group() as tasks:
                async for event in events:
                    seen.append(event)
                    if isinstance(event, TextChunk) and len(seen) < 20:
                        tasks.start_soon(host.cancel, agent.id)
        assert seen[-1] == Done(StopReason.CANCELLED)
        assert len(seen) < 350
        assert said(await take(host, agent.id, script({"text": "still here"}))) == "still here"


@shows("HOST")
async def test_leaving_a_turn_early_cancels_it(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        prompt = Prompt(agent.id, CALLER, script({"text": LONG, "chunk_delay": 0.02}))
        with anyio.fail_after(SECONDS):
            async with aclosing(host.send(prompt)) as events:
                async for event in events:
                    if isinstance(event, TextChunk):
                        break
        assert await host.cancel(agent.id) is False
        assert said(await take(host, agent.id, script({"text": "next"}))) == "next"


@shows("HOST")
async def test_a_tool_of_the_caller_runs_and_its_arguments_are_streamed(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        tool = client_tool("shout", lambda arguments: arguments["x"].upper())
        events = await take(
            host, agent.id, script({"tool": "shout", "args": {"x": "hello there"}}, {"text": "ok"}), tools=[tool]
        )
    call = of_kind(events, ToolCall)[0]
    assert (call.name, call.arguments["x"]) == ("shout", "hello there")
    pieces = [piece for piece in of_kind(events, ToolArguments) if piece.call_id == call.call_id]
    assert len(pieces) > 1
    assert [(back.text, back.status) for back in of_kind(events, ToolReturn)] == [("HELLO THERE", ToolStatus.OK)]
    assert events[-1] == Done(StopReason.END_TURN)


@shows("HOST")
@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_that_needs_approval_waits_for_it_even_across_a_restart(lab: Lab, approve: bool) -> None:
    ran: list[str] = []

    def run(arguments: dict[str, str]) -> str:
        ran.append(arguments["x"])
        return "it is done"

    tool = client_tool("risky", run, needs_approval=True)
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(
            host, agent.id, script({"tool": "risky", "args": {"x": "1"}}, {"text": "so be it"}), tools=[tool]
        )
        request = of_kind(events, ApprovalRequest)[0]
        assert (request.name, request.arguments["x"]) == ("risky", "1")
        assert events[-1] == Done(StopReason.REQUIRES_APPROVAL)
        with pytest.raises(PendingApproval, match=request.call_id):
            await take(host, agent.id, "and now?")
        with pytest.raises(Invalid):
            await take(host, agent.id, approvals=[Approval("somebody-else", approve=True)])
    async with lab.open() as host:
        assert [waiting.call_id for waiting in await host.pending(agent.id)] == [request.call_id]
        word = Approval(request.call_id, approve=approve, reason="not today")
        events = await take(host, agent.id, approvals=[word], tools=[tool])
        assert ran == (["1"] if approve else [])
        back = of_kind(events, ToolReturn)[-1]
        assert back.status is (ToolStatus.OK if approve else ToolStatus.DENIED)
        assert ("it is done" if approve else "not today") in back.text
        assert events[-1] == Done(StopReason.END_TURN)
        assert said(events) == "so be it"
        assert not await host.pending(agent.id)
        with pytest.raises(Invalid):
            await take(host, agent.id, approvals=[word])


@shows("HOST")
async def test_an_edit_of_memory_is_shown_with_before_and_after_and_stays(lab: Lab) -> None:
    edit = {"label": "human", "old_string": "tea", "new_string": "coffee"}
    async with lab.open() as host:
        agent = await lab.agent(host, human="Likes tea")
        events = await take(host, agent.id, script({"tool": "memory_replace", "args": edit}, {"text": "noted"}))
        assert of_kind(events, MemoryEdit) == [MemoryEdit("human", "Likes tea", "Likes coffee")]
    async with lab.open() as host:
        assert {block.label: block.value for block in await host.blocks(agent.id)}["human"] == "Likes coffee"
        await host.write_block(agent.id, "human", "Likes both")
        assert "Likes both" in {block.value for block in await host.blocks(agent.id)}
        with pytest.raises(NotFound):
            await host.write_block(agent.id, "nothing", "x")


@shows("HOST")
async def test_a_block_is_written_within_its_limit_and_never_where_it_is_read_only(lab: Lab) -> None:
    law, short = MemoryBlock("law", "never", read_only=True), MemoryBlock("short", "abc", limit=5)
    async with lab.open() as host:
        agent = await host.create(NewAgent("Ada", "A test.", lab.model, [law, short]))
        with pytest.raises(Invalid, match="The memory block 'law' is read-only"):
            await host.write_block(agent.id, "law", "always")
        with pytest.raises(Invalid, match="The memory block 'short' takes 5 characters; this is 6"):
            await host.write_block(agent.id, "short", "abcdef")
        assert (await host.write_block(agent.id, "short", "a\0b")).value == "ab"
        kept = {block.label: (block.value, block.read_only) for block in await host.blocks(agent.id)}
    assert (kept["law"], kept["short"]) == (("never", True), ("ab", False))


@shows("HOST")
@pytest.mark.parametrize(
    "blocks",
    [
        [MemoryBlock("", "")],
        [MemoryBlock("x" * 101, "")],
        [MemoryBlock("a", ""), MemoryBlock("a", "")],
        [MemoryBlock("a", "xx", limit=1)],
        [MemoryBlock("a", "\0")],
        [MemoryBlock(str(number), "") for number in range(50)],
    ],
)
async def test_an_agent_with_blocks_that_cannot_be_is_not_made(lab: Lab, blocks: list[MemoryBlock]) -> None:
    async with lab.open() as host:
        with pytest.raises(Invalid):
            await host.create(NewAgent("Unfit", "A test.", lab.model, blocks))
        assert "Unfit" not in {one.name for one in await host.list(1000)}


@shows("HOST")
async def test_what_was_said_is_replayed_in_order_by_another_process(lab: Lab) -> None:
    first = script({"tool": "shout", "args": {"x": "a"}}, {"text": "the answer"})
    async with lab.open() as host:
        agent = await lab.agent(host)
        await take(host, agent.id, first, tools=[client_tool("shout", lambda _: "A!")])
        await take(host, agent.id, script({"text": "the second"}))
    async with lab.open() as host:
        told = [one.event for one in await host.history(agent.id)]
    kinds = [event for event in told if isinstance(event, UserText | ToolCall | ToolReturn | TextChunk)]
    names = [type(event).__name__ for event in kinds]
    start = names.index("UserText")
    assert names[start:] == ["UserText", "ToolCall", "ToolReturn", "TextChunk", "UserText", "TextChunk"]
    assert [event.text for event in of_kind(kinds[start:], UserText)] == [first, script({"text": "the second"})]
    assert [event.text for event in of_kind(kinds[start:], TextChunk)] == ["the answer", "the second"]
    assert of_kind(kinds, ToolReturn)[0].text == "A!"


@shows("HOST")
async def test_sends_at_the_same_time_are_taken_one_after_the_other(lab: Lab) -> None:
    order: list[tuple[int, str]] = []
    async with lab.open() as host:
        agent = await lab.agent(host)

        def note(number: int, event: Event) -> None:
            order.append((number, type(event).__name__))

        async def one(number: int) -> None:
            prompt = Prompt(agent.id, CALLER, script({"text": f"answer {number}", "chunk_delay": 0.02}))
            async with aclosing(host.send(prompt)) as events:
                async for event in events:
                    note(number, event)

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for number in range(4):
                    tasks.start_soon(one, number)
        turns = [number for number, kind in order if kind == "Started"]
        assert sorted(turns) == [0, 1, 2, 3]
        assert [number for number, _ in order] == sorted((number for number, _ in order), key=turns.index)
        told = "".join(said([one.event]) for one in await host.history(agent.id))
        assert all(f"answer {number}" in told for number in range(4))


@shows("HOST")
async def test_conversations_are_apart_and_share_the_memory(lab: Lab) -> None:
    edit = {"label": "human", "old_string": "tea", "new_string": "coffee"}
    async with lab.open() as host:
        agent = await lab.agent(host, human="Likes tea")
        one = await host.start_conversation(agent.id)
        await take(
            host,
            agent.id,
            script({"tool": "memory_replace", "args": edit}, {"text": "first"}),
            conversation_id=one.id,
        )
        # Letta reads the blocks into a conversation when it begins.
        two = await host.start_conversation(agent.id)
        await take(host, agent.id, script({"text": "second"}), conversation_id=two.id)
        assert {one.id, two.id} <= {thread.id for thread in await host.conversations(agent.id, 10)}
        assert said([past.event for past in await host.history(agent.id, one.id)]) == "first"
        assert said([past.event for past in await host.history(agent.id, two.id)]) == "second"
        seen = lab.models.seen[-1].body
        assert "Likes coffee" in str(seen), "the other conversation's model sees the edited block"
        with pytest.raises(NotFound):
            await take(host, agent.id, "hello", conversation_id="conv-00000000-0000-4000-8000-000000000000")


@shows("HOST")
async def test_a_turn_stops_at_its_limit_and_says_so(lab: Lab) -> None:
    steps = [{"tool": "shout", "args": {"x": str(number)}} for number in range(6)]
    async with lab.open() as host:
        agent = await lab.agent(host)
        tool = client_tool("shout", lambda _: "again")
        events = await take(host, agent.id, script(*steps), tools=[tool], max_steps=3)
    assert len(of_kind(events, ToolCall)) == 3
    assert events[-1] == Done(StopReason.MAX_STEPS)


@shows("HOST")
@pytest.mark.parametrize("trouble", [FailureKind.UNAVAILABLE, FailureKind.UNAUTHENTICATED])
async def test_a_dead_server_or_a_bad_key_ends_the_turn_with_what_to_do(lab: Lab, trouble: FailureKind) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
    async with lab.open(lab.dead if trouble is FailureKind.UNAVAILABLE else lab.bad_key) as host:
        events = await take(host, agent.id, "hello")
    failed = of_kind(events, Failed)[0]
    assert failed.trouble is trouble
    assert "check" in failed.message
    assert events[-1] == Done(StopReason.ERROR)
    async with lab.open() as host:
        assert said(await take(host, agent.id, script({"text": "back"}))) == "back"


@shows("HOST")
async def test_a_model_that_fails_ends_the_turn_and_not_the_conversation(lab: Lab) -> None:
    async with lab.open() as host:
        agent = await lab.agent(host)
        events = await take(host, agent.id, script({"error": 400}))
        assert events[-1] == Done(StopReason.ERROR)
        assert of_kind(events, Failed)
        assert said(await take(host, agent.id, script({"text": "back"}))) == "back"


# A finished turn can be read again, on every host as far as the host keeps it


OPERATOR = Caller("req-look", local=True, any_agent=True)


@shows("WEB-TURNS")
async def test_each_turn_is_told_with_what_was_said_in_it_and_nothing_else(lab: Lab) -> None:
    tool = client_tool("look", lambda _: "a cat")
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        first = script({"tool": "look", "args": {"x": "1"}}, {"text": "It is a cat."})
        turns = [await take(app.host, agent, text, tools=[tool]) for text in (first, script({"text": "Good night."}))]
        ids = [of_kind(events, Started)[0].turn_id for events in turns]
        told = [await read_turn(app.host, app.turns, OPERATOR, one) for one in ids]
        events = [[one.event for one in account.said] for account in told]
        assert [len(of_kind(some, UserText)) for some in events] == [1, 1]
        assert [of_kind(some, TextChunk)[-1].text for some in events] == ["It is a cat.", "Good night."]
        assert of_kind(events[0], ToolCall)[0].arguments == {"x": "1"}
        assert "a cat" in of_kind(events[0], ToolReturn)[0].text
        assert (told[0].after, told[1].before, told[0].trouble) == (ids[1], ids[0], None)
        found = await app.turns.list(TurnQuery(agent_id=agent))
        assert [one.id for one in found] == ids[::-1]
        assert all(one.input_tokens > 0 for one in found)


@shows("WEB-TURNS")
async def test_a_turn_whose_agent_is_gone_is_told_without_words_where_it_is_kept_at_all(lab: Lab) -> None:
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        await take(app.host, agent, "hello")
        await app.host.delete(agent)
        for record in await app.turns.list(TurnQuery(agent_id=agent)):
            told = await read_turn(app.host, app.turns, OPERATOR, record.id)
            assert (told.said, told.trouble) == ((), AGENT_DELETED)


@shows("WEB-TURNS")
async def test_turns_are_listed_also_while_the_server_behind_the_host_is_away(lab: Lab) -> None:
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        one = of_kind(await take(app.host, agent, "hello"), Started)[0].turn_id
    async with open_app(lab.dead) as app:
        away = not app.host.features.keeps_turns
        found = await list_turns(app.host, app.turns, OPERATOR, TurnQuery(agent_id=agent))
        told = await read_turn(app.host, app.turns, OPERATOR, one)
        assert [turn.id for turn in found.turns] == [one]
        assert (bool(found.trouble), bool(told.trouble), bool(told.said)) == (away, away, not away)


# Two concurrent changes of the same memory: the second fails with a conflict


async def value_of(host: AgentHost, agent_id: str) -> str:
    return {block.label: block.value for block in await host.blocks(agent_id)}["human"]


async def test_a_block_is_written_only_over_what_was_seen(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await lab.agent(host, human="one")).id
        assert (await host.write_block(agent, "human", "two", value_fingerprint("one"))).value == "two"
        for stale in (value_fingerprint("one"), ""):
            with pytest.raises(Conflict, match="was changed meanwhile"):
                await host.write_block(agent, "human", "three", stale)
        assert await value_of(host, agent) == "two"


@pytest.mark.parametrize("lab", ["sqlite", "postgresql"], indirect=True)
async def test_of_several_who_saw_the_same_one_gets_to_write(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await lab.agent(host, human="first")).id
        for number in range(10):
            seen = value_fingerprint(await value_of(host, agent))
            written: list[str] = []

            async def write(value: str, seen: str = seen, written: list[str] = written) -> None:
                try:
                    written.append((await host.write_block(agent, "human", value, seen)).value)
                except Conflict:
                    return

            async with anyio.create_task_group() as tasks:
                for who in "ABCD":
                    tasks.start_soon(write, f"{who}{number}")
            assert written == [await value_of(host, agent)]


# Turns that wait for a decision are listed until the decision or the end of the turn


BUY = client_tool("buy", lambda _: "bought", needs_approval=True)


async def waiting(app: App) -> list[str]:
    return [turn.id for turn in await app.turns.list(TurnQuery(waiting=True))]


async def test_a_turn_waits_until_its_calls_are_answered_or_given_up(lab: Lab) -> None:
    async with open_app(lab.settings) as app:
        agent = (await lab.agent(app.host)).id
        asks = script({"tool": "buy", "args": {"x": "cups"}}, {"text": "As you wish."})
        events = await take(app.host, agent, asks, tools=[BUY])
        assert await waiting(app) == [of_kind(events, Started)[0].turn_id]
        [request] = of_kind(events, ApprovalRequest)
        await take(app.host, agent, approvals=[Approval(request.call_id, approve=False)], tools=[BUY])
        assert await waiting(app) == []
        again = of_kind(await take(app.host, agent, asks, tools=[BUY]), Started)[0].turn_id
        assert await waiting(app) == [again]
        await cancel_turn(app.host, app.turns, OPERATOR, again)
        assert await waiting(app) == []


# The pages of agents, on each host


@shows("WEB-AGENTS")
async def test_an_agent_of_either_host_is_made_shown_talked_with_edited_and_deleted(lab: Lab) -> None:
    async with open_app(lab.settings) as app, browsing(build_application(app)) as web:
        made = text_of(await web.post("/agents/new", {"name": "Grace", "model": lab.model or ""}))
        assert "Grace is made" in made
        [agent] = [agent for agent in await app.host.list(1000) if agent.name == "Grace"]
        assert await app.host.names({agent.id, "agent-of-nobody"}) == {agent.id: "Grace"}
        base = f"/agents/{agent.id}"
        said = await web.post(f"{base}/talk", {"text": pages_script({"text": "A moth is in relay 70"})})
        assert "A moth is in relay 70" in text_of(said.split("@@")[-1])
        begun = await web.post(f"{base}/talk/new")
        assert "There are no messages yet" in begun
        page = await web.get(f"{base}/memory", block="human")
        seen = page.split('name="seen" value="')[1].split('"')[0]
        form = {"label": "human", "value": "Likes moths", "seen": seen}
        assert "Saved human" in text_of(await web.post(f"{base}/memory", form))
        assert "Likes moths" in text_of(await web.get(base))
        assert "Grace is deleted" in text_of(await web.post(f"{base}/delete"))
        await app.journal.flush()
        assert "The agent host has no agent of this id" in text_of(await web.get(base))
