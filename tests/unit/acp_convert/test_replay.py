"""The past of a session, and that it looks as it did when it happened."""

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.host import HistoryItem
from frontdesk.coding.model import FileDiff, FileLocation, TerminalOutput
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
from tests.unit.acp_convert.board import ROOTS, Board, replayed, said

ASKED = Done(StopReason.REQUIRES_APPROVAL)
ENDED = Done(StopReason.END_TURN)
READ = ToolCall("c", "read_file", {"path": "a"})
WORDS = st.text(min_size=1, max_size=8)
# Few of them, so that they are used again.
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
    """What a host tells of a turn, and keeps of it: what is said, and calls that come to an end."""
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
    """The turn as it streams: text in pieces, and calls announced before they run."""
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
    """The calls of a session, but for the diffs, which in a live turn the tools themselves show."""
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

    # The board itself sees to it that ids are unique, and that every update is one that the protocol has.
    anyio.run(show)
    assert board.open() == []


@given(st.lists(turns(), max_size=3))
def test_a_replay_has_the_messages_and_calls_that_the_turn_had(given: Sequence[Sequence[Event]]) -> None:
    then = Board()
    past = [one for number, turn in enumerate(given) for one in said(f"turn{number}", UserText("Hello"), *turn, ENDED)]

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
        *said(
            "t",
            UserText("Read it"),
            ThoughtChunk("Hm"),
            READ,
            ToolReturn("c", "read_file", "x"),
            TextChunk("Ok"),
            ENDED,
        ),
        *said("u", UserText("Thanks"), TextChunk("Bye"), ENDED),
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
        said("t", Done(StopReason.INTERRUPTED)),
        said("u", UserText("And now?"), TextChunk("Well")),
        [*said("t", ASKED), *said("u", UserText("Never mind"))],
    ],
)
async def test_a_call_that_an_interrupted_turn_left_open_has_failed(end: Sequence[HistoryItem]) -> None:
    board, _ = await replayed([*said("t", UserText("x"), READ), *end])
    assert board.calls["t-c"]["status"] == "failed"


async def test_a_call_that_waits_for_somebodys_word_still_does() -> None:
    board, waiting = await replayed(
        said("t", UserText("x"), READ, ApprovalRequest("c", "read_file", {"path": "a"}), ASKED)
    )
    assert board.calls["t-c"]["status"] == "pending"
    assert waiting == {"c": "t-c"}


async def test_a_call_that_was_approved_ends_in_the_turn_after() -> None:
    board, waiting = await replayed(
        [*said("t", UserText("x"), READ, ASKED), *said("u", ToolReturn("c", "read_file", "x"), TextChunk("Ok"), ENDED)]
    )
    assert {call_id: call["status"] for call_id, call in board.calls.items()} == {"t-c": "completed"}
    assert waiting == {}


async def test_a_turn_that_is_told_in_two_places_repeats_no_id() -> None:
    board, _ = await replayed([*said("t", TextChunk("a")), *said("u", TextChunk("b")), *said("t", TextChunk("c"))])
    assert list(board.messages) == ["t-0", "u-0", "t-1"]


async def test_an_edit_that_worked_shows_what_it_changed() -> None:
    edit = ToolCall("c", "edit_file", {"path": "a", "old_string": "x", "new_string": "y"})
    for status, diffs in ((ToolStatus.OK, 1), (ToolStatus.DENIED, 0)):
        board, _ = await replayed(said("t", UserText("x"), edit, ToolReturn("c", "edit_file", "z", status), ENDED))
        shown = [part for part in board.calls["t-c"]["content"] if part["type"] == "diff"]
        assert [(part["oldText"], part["newText"]) for part in shown] == [("x", "y")] * diffs
