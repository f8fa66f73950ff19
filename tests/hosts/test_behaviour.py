"""What every agent host does, shown on each of them."""

from contextlib import aclosing

import anyio
import pytest

from frontdesk.agents.host import Approval, MemoryBlock, NewAgent, Prompt
from frontdesk.errors import Invalid, NotFound, PendingApproval
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

pytestmark = pytest.mark.anyio
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
