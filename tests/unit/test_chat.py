"""Tests which events of a turn belong to the reply, and how a terminal chat shows them safely."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agents.chat.model import ReplyBuilder, dump_reply_events, load_reply_events
from frontdesk.interfaces.cli.chat import ApprovalReply, event_name, parse_approval
from frontdesk.interfaces.cli.chat_display import TerminalState, describe_approval, describe_usage, draw_event
from frontdesk.interfaces.cli.output import format_arguments, printable_line, printable_text, reveal_hidden
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
    StepStatus,
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
from tests.requirements import shows

# Which events of a turn are text of the reply


@pytest.mark.parametrize(
    "event",
    [
        UserText("hello"),
        UserMedia("image/png", b"png"),
        ToolArguments("call-1", "tool", "{"),
        Compacted("about tea"),
        Failed(FailureKind.TOO_LONG, "It no longer fits"),
    ],
)
def test_what_is_not_of_the_reply_is_no_word_of_it(event: Event) -> None:
    assert ReplyBuilder().add_event(event) is None


def test_what_a_turn_took_is_told_as_it_is_stored() -> None:
    usage = Usage(1, 2, 3, "m", 0.5, 40, 100)
    assert ReplyBuilder().add_event(usage) is usage
    assert load_reply_events(dump_reply_events([usage])) == [usage]


# How a chat shows agents' actions, and protects the terminal from their text


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x1bc\rover\x08\x07\x00\u202egnp"


def draw(*events: Event, colour: bool = False) -> str:
    pen, shown = TerminalState(colour), ""
    for event in events:
        text, pen = draw_event(event, pen)
        shown += text
    return shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m and \x1b[1;5;38;2;1;2;3mloud\x1b[m", "red and loud"),
        ("\x1b]0;new title\x07\x1b]52;c;cm0gLXJm\x1b\\text", "text"),
        ("\x1b]8;;http://evil.example\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1b]0;never ends", "0;never ends"),
        ("\x1b\x1b[31m[2Jnested", "[2Jnested"),
        ("\x9b2Jone byte\x9d0;title\x9c", "one byte"),
        ("dos\r\nlines, and back\rover\x08\x7f", "dos\nlines, and backover"),
        ("pay \u202ennA\u202c \u2066x\u2069", "pay nnA x"),
        ("half a pair \ud83d", "half a pair \N{REPLACEMENT CHARACTER}"),
        ("مرحبا 👩\u200d🚀 café", "مرحبا 👩\u200d🚀 café"),
    ],
)
def test_what_a_terminal_would_obey_is_taken_out_and_the_rest_stays(said: str, shown: str) -> None:
    assert printable_text(said) == shown


@shows("CLI-SAFE")
@given(st.text(st.characters(codec=None)))
def test_no_text_at_all_gets_a_control_character_through(text: str) -> None:
    for shown in (printable_text(text), printable_line(text), reveal_hidden(text), format_arguments({text: text}, 20)):
        controls = {char for char in shown if unicodedata.category(char) == "Cc"}
        assert controls <= {"\n", "\t"}
        shown.encode()


def test_every_event_with_hostile_words_is_drawn_without_them() -> None:
    events: list[Event] = [
        Started("turn-1", HOSTILE),
        UserText(HOSTILE),
        UserMedia(HOSTILE, b"png"),
        Compacted(HOSTILE),
        TextChunk(HOSTILE),
        ThoughtChunk(HOSTILE),
        ToolArguments("1", HOSTILE, HOSTILE),
        ToolCall("1", HOSTILE, {HOSTILE: HOSTILE}),
        ToolReturn("1", HOSTILE, HOSTILE, ToolStatus.ERROR),
        ApprovalRequest("1", HOSTILE, {HOSTILE: [HOSTILE]}),
        MemoryEdit(HOSTILE, HOSTILE, f"{HOSTILE}\nmore"),
        Plan([PlanStep(HOSTILE)]),
        Failed(FailureKind.INTERNAL, HOSTILE),
        Usage(1, 1, model=HOSTILE),
        Done(StopReason.END_TURN),
    ]
    shown = draw(*events) + describe_approval(
        ApprovalRequest("1", HOSTILE, {HOSTILE: [HOSTILE]}), (1, 1), TerminalState()
    )
    assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cf") and char != "\n"]


def test_what_does_not_show_is_written_out_where_a_person_approves_it() -> None:
    hidden = {"path": "/tmp/\u200bx\u202e", "note": "a\U000e0041b", "text": "one\ntwo"}
    shown = describe_approval(ApprovalRequest("1", "delete", hidden), (2, 3), TerminalState())
    assert "delete (2 of 3)" in shown
    assert r"/tmp/\u200bx\u202e" in shown
    assert r"a\U000e0041b" in shown
    assert r"one\ntwo" in shown


def test_words_stream_on_one_line_and_thoughts_and_tools_stand_apart() -> None:
    shown = draw(
        ThoughtChunk("\n\nLet me "),
        ThoughtChunk("see."),
        TextChunk("It is "),
        Usage(1000, 5),
        TextChunk("late."),
        ToolCall("1", "look", {"where": "here", "deep": True}),
        ToolReturn("1", "look", "a\n  b" + "c" * 200),
        TextChunk("Done.\n"),
        Usage(2000, 50, 10, "a-model", 0.0123),
        Done(StopReason.END_TURN),
    )
    thought, text, call, result, end, usage = shown.splitlines()
    assert thought == "(thinking) Let me see."
    assert text == "It is late."
    assert call == '→ look(where="here", deep=true)'
    assert result.startswith("  ✓ look a bc")
    assert result.endswith("…")
    assert end == "Done."
    assert usage == "2,000 tokens in (10 cached), 50 out, $0.0123, a-model"


def test_a_line_that_was_begun_is_ended_when_the_turn_is() -> None:
    assert draw(TextChunk("Yes."), Done(StopReason.END_TURN)) == "Yes.\n"
    assert draw(TextChunk("Yes.\n"), Done(StopReason.END_TURN)) == "Yes.\n"
    assert draw(Done(StopReason.END_TURN)) == ""


def test_a_memory_edit_is_a_diff_of_lines() -> None:
    before = "Name: Ann\nCity: Rome\nPet: cat\nFood: rice\nTea: black"
    after = "Name: Ann\nCity: Oslo\nPet: cat\nFood: rice\nTea: black\nJob: pilot"
    assert draw(MemoryEdit("human", before, after)).splitlines() == [
        "  memory: human",
        "    Name: Ann",
        "  - City: Rome",
        "  + City: Oslo",
        "    Pet: cat",
        "  ⋮",
        "    Tea: black",
        "  + Job: pilot",
    ]
    assert draw(MemoryEdit("human", "", "Likes tea")).splitlines() == ["  memory: human", "  + Likes tea"]
    assert draw(MemoryEdit("human", "-- x", "++ y"), colour=True).splitlines() == [
        "  memory: human",
        "\x1b[31m  - -- x\x1b[0m",
        "\x1b[32m  + ++ y\x1b[0m",
    ]


def test_a_plan_is_a_checklist() -> None:
    steps = [PlanStep("look", StepStatus.COMPLETED), PlanStep("think", StepStatus.IN_PROGRESS), PlanStep("act")]
    assert draw(Plan(steps)).splitlines() == ["  plan", "  [x] look", "  [>] think", "  [ ] act"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (ToolStatus.ERROR, "  ✗ look no such file"),
        (ToolStatus.DENIED, "  ✗ look denied: no such file"),
        (ToolStatus.UNKNOWN, "  ✗ look unknown tool: no such file"),
        (ToolStatus.INTERRUPTED, "  ✗ look interrupted: no such file"),
    ],
)
def test_a_tool_that_did_not_work_says_how(status: ToolStatus, shown: str) -> None:
    assert draw(ToolReturn("1", "look", "no such file", status)).rstrip("\n") == shown


@pytest.mark.parametrize("stop", ["max_steps", "max_tokens", "refusal", "cancelled", "interrupted"])
def test_a_turn_that_ended_otherwise_says_so(stop: str) -> None:
    assert draw(TextChunk("half"), Done(StopReason(stop))).count("\n") == 2


def test_a_failure_is_said_in_words() -> None:
    failure = Failed(FailureKind.UNAVAILABLE, "The model does not answer")
    shown = draw(failure, Done(StopReason.ERROR))
    assert "failed (unavailable): The model does not answer" in shown
    assert shown.count("failed") == 1


def test_a_failure_whose_reason_was_not_kept_is_said_too_for_each_turn() -> None:
    failure = Failed(FailureKind.UNAVAILABLE, "The model does not answer")
    shown = draw(failure, Done(StopReason.ERROR), UserText("again"), Done(StopReason.ERROR))
    assert shown.endswith("you> again\n✗ The turn failed.\n")


def test_what_came_with_words_and_what_was_summed_up_are_lines_of_their_own() -> None:
    shown = draw(UserText("look"), UserMedia("image/png", b"x" * 2000), Compacted("all about tea"))
    assert shown == (
        "you> look\nyou> [image/png, 2,000 bytes]\n  What was said earlier has been summed up, to make room.\n"
    )


def test_a_plan_without_steps_is_not_drawn() -> None:
    assert draw(Plan(())) == ""


def test_without_colour_there_is_no_escape_and_with_it_every_one_is_closed() -> None:
    events = (ThoughtChunk("hm"), ToolCall("1", "x", {}), ToolReturn("1", "x", "y"), Done(StopReason.CANCELLED))
    assert "\x1b" not in draw(*events)
    coloured = draw(*events, colour=True)
    assert coloured.count("\x1b[0m") * 2 == coloured.count("\x1b")


def test_tokens_are_told_without_a_price_where_none_is_known() -> None:
    assert describe_usage(Usage(12, 3)) == "12 tokens in, 3 out"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("y", ApprovalReply(approve=True)),
        (" YES ", ApprovalReply(approve=True)),
        ("a", ApprovalReply(approve=True, always=True)),
        ("always", ApprovalReply(approve=True, always=True)),
        ("n", ApprovalReply(approve=False)),
        ("no, too risky", ApprovalReply(approve=False, reason="too risky")),
        ("n: too risky", ApprovalReply(approve=False, reason="too risky")),
        ("", None),
        ("yes but only once", None),
        ("maybe", None),
    ],
)
def test_a_word_on_an_approval_is_yes_no_or_always_and_nothing_by_accident(
    typed: str, meant: ApprovalReply | None
) -> None:
    assert parse_approval(typed) == meant


def test_an_event_goes_by_the_name_of_its_kind() -> None:
    assert event_name(TextChunk("x")) == "text_chunk"
    assert event_name(Done(StopReason.END_TURN)) == "done"
