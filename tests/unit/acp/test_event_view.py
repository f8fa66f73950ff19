"""Tests what an editor shows during a turn, and when a session is replayed."""

import math
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.host import HistoryItem
from frontdesk.coding.model import FileDiff, FileLocation, TerminalOutput
from frontdesk.interfaces.acp.event_view import MAX_RAW_CHARACTERS, MAX_TEXT_CHARACTERS
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.interfaces.acp.tool_calls import TOOL_KINDS
from frontdesk.llm.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Event,
    Failed,
    FailureKind,
    MemoryEdit,
    Plan,
    PlanStep,
    Started,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolArguments,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
    UserMedia,
    UserText,
)
from tests.unit.acp.lab import ROOTS, Board, replayed, shown, texts
from tests.unit.acp.lab import said as replayed_said

# The view during a turn


START = Started("t", "conversation")
READ = ToolCall("c", "read_file", {"path": "a.py", "line": 3})
FILE = Path("/code/project/a.py")


async def test_a_message_ends_with_a_tool_call_and_with_a_change_of_tone() -> None:
    board = await shown(
        START,
        ThoughtChunk("Hm"),
        TextChunk("I "),
        TextChunk("look"),
        READ,
        ToolReturn("c", "read_file", "x"),
        TextChunk("Done"),
    )
    assert board.messages == {
        "t-0": ("agent_thought_chunk", "Hm"),
        "t-1": ("agent_message_chunk", "I look"),
        "t-2": ("agent_message_chunk", "Done"),
    }


async def test_a_call_is_announced_once_while_its_arguments_are_written() -> None:
    pieces = [ToolArguments("c", "read_file", piece) for piece in ("", '{"path":', '"a.py"}')]
    board = await shown(START, *pieces)
    assert board.kinds() == ["tool_call"]
    assert board.calls["t-c"] == {"title": "read_file", "name": "read_file", "kind": "read", "status": "pending"}


async def test_a_call_shows_what_it_does_and_where() -> None:
    board = await shown(START, ToolArguments("c", "read_file", ""), READ)
    assert board.calls["t-c"] == {
        "title": "Read a.py (from 3)",
        "name": "read_file",
        "kind": "read",
        "status": "in_progress",
        "locations": [{"path": str(FILE), "line": 3}],
        "rawInput": {"path": "a.py", "line": 3},
    }


@pytest.mark.parametrize("status", list(ToolStatus))
async def test_a_call_ends_well_only_if_the_tool_did(status: ToolStatus) -> None:
    board = await shown(START, ToolCall("c", "x", {}), ToolReturn("c", "x", "answer", status))
    call = board.calls["t-c"]
    assert call["status"] == ("completed" if status is ToolStatus.OK else "failed")
    assert (texts(call), call["rawOutput"]) == (["answer"], "answer")


async def test_what_a_command_prints_is_code() -> None:
    board = await shown(START, ToolCall("c", "run_command", {}), ToolReturn("c", "run_command", "```\n# x\n"))
    assert texts(board.calls["t-c"]) == ["````\n```\n# x\n````"]


async def test_long_answers_and_arguments_are_cut() -> None:
    call = ToolCall("c", "x", {"text": "y" * 1_000_000})
    board = await shown(START, call, ToolReturn("c", "x", "z" * 100_000))
    seen = board.calls["t-c"]
    assert set(seen["rawInput"]) == {"note"}
    assert MAX_TEXT_CHARACTERS < len(texts(seen)[0]) < MAX_TEXT_CHARACTERS + 100
    assert MAX_RAW_CHARACTERS < len(seen["rawOutput"]) < MAX_RAW_CHARACTERS + 100


async def test_arguments_that_are_no_json_are_not_sent() -> None:
    board = await shown(START, ToolCall("c", "x", {"n": math.nan}))
    assert set(board.calls["t-c"]["rawInput"]) == {"note"}


async def test_a_return_without_a_call_is_shown_whole() -> None:
    board = await shown(START, ToolReturn("c", "memory_insert", "ok"))
    assert board.kinds() == ["tool_call"]
    assert board.calls["t-c"]["status"] == "completed"


async def test_a_second_return_changes_nothing() -> None:
    board = await shown(START, READ, ToolReturn("c", "read_file", "x"), ToolReturn("c", "read_file", "y"))
    assert texts(board.calls["t-c"]) == ["```\nx\n```"]


async def test_an_id_that_a_model_uses_again_is_another_call() -> None:
    end = ToolReturn("c", "read_file", "x")
    board = await shown(START, READ, end, READ, end, Started("u", "conversation"), READ)
    assert list(board.calls) == ["t-c", "t-c-2", "u-c"]
    assert board.open() == ["u-c"]


async def test_a_call_that_waited_goes_on_under_its_id_in_the_turn_after() -> None:
    asked = ApprovalRequest("c", "read_file", READ.arguments)
    board = await shown(START, asked, Done(StopReason.REQUIRES_APPROVAL))
    assert board.calls["t-c"]["status"] == "pending"
    end = ToolReturn("c", "read_file", "x")
    board = await shown(START, asked, Done(StopReason.REQUIRES_APPROVAL), Started("u", ""), READ, end)
    assert {call_id: call["status"] for call_id, call in board.calls.items()} == {"t-c": "completed"}


async def test_a_screen_goes_on_with_what_waited_on_another() -> None:
    board = Board()
    first = board.screen()
    await first.show(START)
    await first.show(ApprovalRequest("c", "read_file", {}))
    second = board.screen(waiting=first.pending_calls())
    await second.show(ToolReturn("c", "read_file", "no", ToolStatus.DENIED))
    assert board.calls["t-c"]["status"] == "failed"
    assert not second.pending_calls()


async def test_a_memory_edit_is_a_thought_with_a_diff_of_its_file() -> None:
    board = await shown(START, MemoryEdit("human", "", "Likes tea"), MemoryEdit("human", "Likes tea", "x"))
    assert list(board.calls) == ["t-memory-0", "t-memory-1"]
    call = board.calls["t-memory-0"]
    assert (call["kind"], call["status"], call["title"]) == ("think", "completed", "Updated memory: human")
    assert call["content"] == [{"type": "diff", "path": "/data/memory/human.md", "oldText": "", "newText": "Likes tea"}]
    assert call["_meta"] == {"frontdesk": {"memory": "memory://human"}}


async def test_a_memory_edit_and_a_call_that_is_named_like_one_are_two() -> None:
    board = await shown(START, ToolCall("memory-0", "x", {}), MemoryEdit("human", "", "x"))
    assert list(board.calls) == ["t-memory-0", "t-memory-0-2"]


async def test_a_memory_edit_does_not_cut_a_message_in_two() -> None:
    board = await shown(START, TextChunk("a"), MemoryEdit("human", "", "x"), TextChunk("b"))
    assert board.messages == {"t-0": ("agent_message_chunk", "ab")}


async def test_a_plan_is_shown_whole() -> None:
    board = await shown(START, Plan([PlanStep("look")]))
    assert board.updates[-1]["entries"] == [{"content": "look", "priority": "medium", "status": "pending"}]


async def test_the_cost_is_that_of_the_session() -> None:
    first, second = (Usage(1, 1, cost_usd=cost, context_tokens=5, window=10) for cost in (0.5, 0.75))
    board = await shown(START, first, second, Started("u", ""), first, cost_usd=1.0)
    assert [update["cost"]["amount"] for update in board.updates] == [1.5, 1.75, 2.25]
    assert (board.updates[0]["used"], board.updates[0]["size"]) == (5, 10)


async def test_what_is_not_known_of_the_usage_is_not_told() -> None:
    unpriced = Usage(1, 1, context_tokens=5, window=10)
    board = await shown(START, Usage(1, 1, cost_usd=0.5), unpriced)
    assert [set(update) for update in board.updates] == [{"sessionUpdate", "used", "size"}]


async def test_a_compaction_is_shown_to_editors_that_take_it() -> None:
    assert (await shown(START, Compacted("They met"))).updates == []
    board = await shown(START, Compacted("They met"), Compacted("Again"), compaction=True)
    assert [update["compactionId"] for update in board.updates] == ["t-compaction-0", "t-compaction-1"]
    assert board.updates[0]["summary"] == [{"type": "text", "text": "They met"}]


async def test_what_the_person_says_meanwhile_is_a_message_of_its_own() -> None:
    board = await shown(START, TextChunk("a"), UserText("Stop that"), UserText("Please"), TextChunk("b"))
    assert board.messages == {
        "t-0": ("agent_message_chunk", "a"),
        "t-user-1": ("user_message_chunk", "Stop that"),
        "t-user-2": ("user_message_chunk", "Please"),
        "t-1": ("agent_message_chunk", "b"),
    }


async def test_a_picture_belongs_to_the_words_it_came_with() -> None:
    for events in ((UserText("Look"), UserMedia("image/png", b"x")), (UserMedia("image/png", b"x"), UserText("Look"))):
        board = await shown(*events, turn_id="t")
        assert list(board.messages) == ["t-user-0"]


async def test_the_files_that_came_with_words_are_not_shown_again() -> None:
    board = await shown(UserText('Look\n\n<context ref="/a">\nx\n</context>'), turn_id="t")
    assert board.messages["t-user-0"] == ("user_message_chunk", "Look")


async def test_beginnings_failures_and_ends_show_nothing() -> None:
    board = await shown(START, TextChunk(""), Failed(FailureKind.INTERNAL, "x"), Done(StopReason.ERROR))
    assert board.updates == []


async def test_what_a_tool_shows_stays_in_its_call() -> None:
    board = Board()
    screen = board.screen()
    await screen.show(START)
    await screen.show(ToolCall("c", "edit_file", {"path": "a.py"}))
    await screen.show_part("c", FileDiff(FILE, "x", "guess"))
    await screen.show_part("c", FileDiff(FILE, "x", "y"))
    await screen.show_part("c", FileLocation(FILE, 7))
    await screen.show(ToolReturn("c", "edit_file", "Edited"))
    call = board.calls["t-c"]
    assert call["content"][0] == {"type": "diff", "path": str(FILE), "oldText": "x", "newText": "y"}
    assert texts(call) == ["Edited"]
    assert call["locations"] == [{"path": str(FILE), "line": 7}]


async def test_what_a_terminal_shows_is_not_said_again_unless_it_went_wrong() -> None:
    for status, said in ((ToolStatus.OK, []), (ToolStatus.ERROR, ["```\nkilled\n```"])):
        board = Board()
        screen = board.screen()
        await screen.show(START)
        await screen.show(ToolCall("c", "run_command", {"command": "ls"}))
        await screen.show_part("c", TerminalOutput("term"))
        await screen.show_part("c", TerminalOutput("term"))
        await screen.show(ToolReturn("c", "run_command", "killed", status))
        assert board.calls["t-c"]["content"][0] == {"type": "terminal", "terminalId": "term"}
        assert texts(board.calls["t-c"]) == said


async def test_a_part_waits_for_its_call() -> None:
    board = Board()
    screen = board.screen()
    await screen.show(START)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(screen.show_part, "c", TerminalOutput("term"))
        await anyio.wait_all_tasks_blocked()
        assert board.updates == []
        await screen.show(READ)
    assert board.kinds() == ["tool_call", "tool_call_update"]


async def test_a_part_of_a_call_that_never_came_comes_with_it_when_it_does() -> None:
    board = Board()
    screen = board.screen(patience=0)
    await screen.show(START)
    await screen.show_part("c", TerminalOutput("term"))
    assert board.updates == []
    await screen.show(READ)
    assert board.calls["t-c"]["content"] == [{"type": "terminal", "terminalId": "term"}]


async def test_nobody_is_asked_before_the_call_is_seen() -> None:
    board = Board()
    screen = board.screen()
    await screen.show(START)
    asked: list[bool] = []

    async def ask() -> None:
        await screen.wait_until_shown("c")
        asked.append(screen.sent_id("c") in board.calls)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert asked == []
        await screen.show(READ)
    assert asked == [True]


async def test_the_wait_for_a_call_has_an_end() -> None:
    board = Board()
    screen = board.screen(patience=0)
    await screen.show(START)
    with anyio.fail_after(5):
        await screen.wait_until_shown("c")
    expected = screen.sent_id("c")
    await screen.show(READ)
    assert list(board.calls) == [expected]


async def test_closing_ends_every_call_and_nothing_follows() -> None:
    board = Board()
    screen = board.screen()
    for event in (START, READ, ToolArguments("d", "x", ""), ApprovalRequest("e", "y", {})):
        await screen.show(event)
    screen.sent_id("never shown")
    await screen.show_part("c", TerminalOutput("term"))
    await screen.close("cancelled")
    assert [(call["status"], texts(call)) for call in board.calls.values()] == [("failed", ["cancelled"])] * 3
    assert board.calls["t-c"]["content"][0]["type"] == "terminal"
    count = len(board.updates)
    await screen.show(TextChunk("more"))
    await screen.show_part("c", TerminalOutput("other"))
    await screen.close("again")
    assert len(board.updates) == count


async def test_a_call_whose_end_was_cut_off_is_ended_by_closing() -> None:
    board = Board()
    stuck = True

    async def send(update: Json) -> None:
        if stuck and update.get("status") == "completed":
            await anyio.sleep_forever()
        await board.take(update)

    screen = board.screen()
    screen.send = send
    await screen.show(START)
    await screen.show(READ)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(screen.show, ToolReturn("c", "read_file", "x"))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    stuck = False
    await screen.close()
    assert board.calls["t-c"]["status"] == "failed"


async def test_two_screens_without_a_turn_share_no_ids() -> None:
    board = Board()
    for _ in range(2):
        await board.screen().show(MemoryEdit("human", "", "x"))
        await board.screen().show(TextChunk("x"))
    assert (len(board.calls), len(board.messages)) == (2, 2)


# A session's history looks the same as its events did


ASKED = Done(StopReason.REQUIRES_APPROVAL)
ENDED = Done(StopReason.END_TURN)
REPLAYED_READ = ToolCall("c", "read_file", {"path": "a"})
WORDS = st.text(min_size=1, max_size=8)
# Few ids, so that they are used again.
IDS = st.sampled_from(["c", "d", "c-2", "memory-0", ""])
NAMES = st.sampled_from([*sorted(TOOL_KINDS), "other", ""])
ARGUMENTS = st.dictionaries(st.sampled_from(["path", "command", "old_string", "new_string", "content"]), WORDS)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Started, st.sampled_from(["turn1", "turn2"]), st.just("")),
    st.builds(UserText, st.text(max_size=8)),
    st.just(UserMedia("image/png", b"x")),
    st.builds(TextChunk, st.text(max_size=8)),
    st.builds(ThoughtChunk, st.text(max_size=8)),
    st.builds(ToolArguments, IDS, NAMES, WORDS),
    st.builds(ToolCall, IDS, NAMES, ARGUMENTS),
    st.builds(ToolReturn, IDS, NAMES, st.text(max_size=8), st.sampled_from(ToolStatus)),
    st.builds(ApprovalRequest, IDS, NAMES, ARGUMENTS),
    st.builds(MemoryEdit, WORDS, WORDS, WORDS),
    st.just(Plan([PlanStep("x")])),
    st.builds(Usage, st.just(1), st.just(1), context_tokens=st.integers(0, 3), window=st.integers(0, 3)),
    st.just(Compacted("x")),
    st.just(Failed(FailureKind.BUSY, "x")),
    st.builds(Done, st.sampled_from(StopReason)),
)
PARTS = st.tuples(
    IDS, st.sampled_from([FileDiff(ROOTS.cwd / "a", None, "x"), FileLocation(ROOTS.cwd), TerminalOutput("term")])
)
SAYINGS = st.one_of(st.builds(TextChunk, WORDS), st.builds(ThoughtChunk, WORDS), st.builds(UserText, WORDS))


@st.composite
def turns(draw: st.DrawFn) -> Sequence[Event]:
    """A host's events and its record of a turn: messages, and calls that end."""
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            events.append(draw(SAYINGS))
            continue
        calls = draw(
            st.lists(st.builds(ToolCall, IDS, NAMES, ARGUMENTS), max_size=3, unique_by=lambda call: call.call_id)
        )
        events += calls
        for call in draw(st.permutations(calls)):
            events.append(ToolReturn(call.call_id, call.name, draw(WORDS), draw(st.sampled_from(ToolStatus))))
            events += draw(st.lists(st.builds(MemoryEdit, WORDS, WORDS, WORDS), max_size=1))
    return events


def live(turn: Sequence[Event]) -> Sequence[Event]:
    """The turn as a stream: text in pieces, and calls announced before they run."""
    found: list[Event] = []
    for event in turn:
        match event:
            case TextChunk(text) | ThoughtChunk(text):
                found += [type(event)(letter) for letter in text]
            case ToolCall(call_id, name):
                found += [ToolArguments(call_id, name, ""), ToolArguments(call_id, name, "{}"), event]
            case _:
                found.append(event)
    return found


def without_diffs(board: Board) -> dict[str, object]:
    """The calls of a session without the diffs, which the tools themselves show in a live turn."""
    return {
        call_id: {**call, "content": [part for part in call.get("content", ()) if part["type"] != "diff"]}
        for call_id, call in board.calls.items()
    }


@given(st.lists(EVENTS | PARTS, max_size=25))
def test_whatever_happens_no_call_is_left_open(
    given: Sequence[Event | tuple[str, FileDiff | FileLocation | TerminalOutput]],
) -> None:
    board = Board()

    async def show() -> None:
        screen = board.screen(patience=0, compaction=True)
        for one in given:
            await (screen.show_part(*one) if isinstance(one, tuple) else screen.show(one))
        await screen.close()

    # The view itself ensures that ids are unique, and that every update has a form that the protocol defines.
    anyio.run(show)
    assert board.open() == []


@given(st.lists(turns(), max_size=3))
def test_a_replay_has_the_messages_and_calls_that_the_turn_had(given: Sequence[Sequence[Event]]) -> None:
    then = Board()
    past = [
        one
        for number, turn in enumerate(given)
        for one in replayed_said(f"turn{number}", UserText("Hello"), *turn, ENDED)
    ]

    async def show() -> Board:
        for number, turn in enumerate(given):
            screen = then.screen()
            for event in (Started(f"turn{number}", ""), *live(turn), ENDED):
                await screen.show(event)
            await screen.close()
        return (await replayed(past))[0]

    now = anyio.run(show)
    prompts = {f"turn{number}-user-0": ("user_message_chunk", "Hello") for number in range(len(given))}
    assert now.messages == prompts | then.messages
    assert without_diffs(now) == without_diffs(then)


async def test_the_past_is_shown_in_order() -> None:
    past = [
        *replayed_said(
            "t",
            UserText("Read it"),
            ThoughtChunk("Hm"),
            REPLAYED_READ,
            ToolReturn("c", "read_file", "x"),
            TextChunk("Ok"),
            ENDED,
        ),
        *replayed_said("u", UserText("Thanks"), TextChunk("Bye"), ENDED),
    ]
    board, waiting = await replayed(past)
    assert [update.get("messageId") or update["toolCallId"] for update in board.updates] == [
        "t-user-0",
        "t-0",
        "t-c",
        "t-c",
        "t-1",
        "u-user-0",
        "u-0",
    ]
    assert waiting == {}


@pytest.mark.parametrize(
    "end",
    [
        (),
        replayed_said("t", Done(StopReason.INTERRUPTED)),
        replayed_said("u", UserText("And now?"), TextChunk("Well")),
        [*replayed_said("t", ASKED), *replayed_said("u", UserText("Never mind"))],
    ],
)
async def test_a_call_that_an_interrupted_turn_left_open_has_failed(end: Sequence[HistoryItem]) -> None:
    board, _ = await replayed([*replayed_said("t", UserText("x"), REPLAYED_READ), *end])
    assert board.calls["t-c"]["status"] == "failed"


async def test_a_call_that_waits_for_somebodys_word_still_does() -> None:
    board, waiting = await replayed(
        replayed_said("t", UserText("x"), REPLAYED_READ, ApprovalRequest("c", "read_file", {"path": "a"}), ASKED)
    )
    assert board.calls["t-c"]["status"] == "pending"
    assert waiting == {"c": "t-c"}


async def test_a_call_that_was_approved_ends_in_the_turn_after() -> None:
    board, waiting = await replayed(
        [
            *replayed_said("t", UserText("x"), REPLAYED_READ, ASKED),
            *replayed_said("u", ToolReturn("c", "read_file", "x"), TextChunk("Ok"), ENDED),
        ]
    )
    assert {call_id: call["status"] for call_id, call in board.calls.items()} == {"t-c": "completed"}
    assert waiting == {}


async def test_a_turn_that_is_told_in_two_places_repeats_no_id() -> None:
    board, _ = await replayed(
        [*replayed_said("t", TextChunk("a")), *replayed_said("u", TextChunk("b")), *replayed_said("t", TextChunk("c"))]
    )
    assert list(board.messages) == ["t-0", "u-0", "t-1"]


async def test_an_edit_that_worked_shows_what_it_changed() -> None:
    edit = ToolCall("c", "edit_file", {"path": "a", "old_string": "x", "new_string": "y"})
    for status, diffs in ((ToolStatus.OK, 1), (ToolStatus.DENIED, 0)):
        board, _ = await replayed(
            replayed_said("t", UserText("x"), edit, ToolReturn("c", "edit_file", "z", status), ENDED)
        )
        shown = [part for part in board.calls["t-c"]["content"] if part["type"] == "diff"]
        assert [(part["oldText"], part["newText"]) for part in shown] == [("x", "y")] * diffs
