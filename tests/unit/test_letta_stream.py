"""Tests how output of a real Letta 0.16.8 server becomes the events of a turn."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from letta_client import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    UnprocessableEntityError,
)
from letta_client.types.agents import LettaStreamingResponse, Message
from pydantic import TypeAdapter

from frontdesk.agents.host import Approval, Prompt
from frontdesk.agents.letta.convert import (
    build_history,
    find_answer,
    memory_edits,
    memory_may_have_changed,
    oldest_first,
)
from frontdesk.agents.letta.server import LettaFailure, translate_error
from frontdesk.agents.letta.turn import RunReader, why_refused
from frontdesk.errors import FrontdeskError, Invalid, NotFound, PendingApproval, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.llm.events import (
    ApprovalRequest,
    Event,
    FailureKind,
    MemoryEdit,
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
from frontdesk.llm.tools import Tool, ToolOutcome

RECORDING: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("letta_recording.json").read_text())
STREAMED: TypeAdapter[LettaStreamingResponse] = TypeAdapter(LettaStreamingResponse)
KEPT: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
URL = "http://letta.example"


def read(reader: RunReader, recording: str) -> list[Event]:
    reader.begin_run()
    return [event for chunk in RECORDING[recording] for event in reader.read(STREAMED.validate_python(chunk))]


def without_pieces(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, ToolArguments)]


def kept() -> list[Message]:
    return KEPT.validate_python(RECORDING["history"])


def test_thought_and_text_come_token_by_token() -> None:
    reader = RunReader()

    events = read(reader, "thought_and_text")

    assert events == [
        *(ThoughtChunk(piece) for piece in ("let ", "me ", "think")),
        *(TextChunk(piece) for piece in ("it ", "is ", "four")),
        Usage(100, 10, context_tokens=110),
    ]
    assert (reader.stop, reader.steps) == ("end_turn", 1)
    assert reader.run_id == RECORDING["thought_and_text"][0]["run_id"]


def test_a_call_is_told_in_pieces_then_whole_and_before_it_has_run() -> None:
    events = read(RunReader(), "memory_tool")

    pieces = [event for event in events if isinstance(event, ToolArguments)]
    arguments = {"label": "human", "new_string": "likes tea"}
    call = next(event for event in events if isinstance(event, ToolCall))
    assert "".join(piece.delta for piece in pieces) == json.dumps(arguments)
    assert {piece.name for piece in pieces} == {"memory_insert"}
    assert call.arguments == arguments
    assert without_pieces(events)[1:3] == [call, ToolReturn(call.call_id, "memory_insert", "Ann\nlikes tea")]


def test_a_call_is_whole_with_its_last_piece_and_does_not_wait_for_the_return() -> None:
    reader = RunReader()
    chunks = [STREAMED.validate_python(chunk) for chunk in RECORDING["memory_tool"]]
    last_piece = max(index for index, chunk in enumerate(chunks) if chunk.message_type == "tool_call_message")

    before = [event for chunk in chunks[: last_piece + 1] for event in reader.read(chunk)]

    assert isinstance(before[-1], ToolCall)


def test_several_returns_in_one_message_go_to_the_calls_they_belong_to() -> None:
    events = read(RunReader(), "several_calls")

    returns = [(event.name, event.status) for event in events if isinstance(event, ToolReturn)]
    assert returns == [("memory_insert", ToolStatus.OK), ("nothere", ToolStatus.UNKNOWN)]


def test_a_call_that_letta_drops_gets_a_return_that_says_so() -> None:
    reader = RunReader()
    calls = [event for event in read(reader, "second_call_dropped") if isinstance(event, ToolCall)]

    left = reader.leftovers()

    assert [event.status for event in left if isinstance(event, ToolReturn)] == [ToolStatus.INTERRUPTED]
    assert [event.call_id for event in left if isinstance(event, ToolReturn)] == [calls[1].call_id]
    assert reader.leftovers() == []


def test_a_call_that_letta_keeps_until_others_are_approved_gets_no_return_before_it_ran() -> None:
    reader = RunReader()
    held = next(event for event in read(reader, "calls_of_both_sides") if isinstance(event, ToolCall))
    assert reader.open_calls()

    left = reader.leftovers({held.call_id})

    assert left == []
    back = [event.call_id for event in read(reader, "answers_of_both_sides") if isinstance(event, ToolReturn)]
    assert held.call_id in back
    assert not reader.open_calls()


def test_a_return_that_we_gave_ourselves_is_not_told_a_second_time() -> None:
    reader = RunReader()
    asked = [chunk for chunk in RECORDING["calls_of_both_sides"] if chunk["message_type"] == "approval_request_message"]
    ours = asked[0]["tool_call"]["tool_call_id"]
    first = read(reader, "calls_of_both_sides")
    reader.expect(ours, "read_file")
    reader.returned(ours)

    second = read(reader, "answers_of_both_sides")

    assert [event.name for event in first if isinstance(event, ToolCall)] == ["conversation_search"]
    assert [event.name for event in second if isinstance(event, ToolReturn)] == ["conversation_search"]
    assert reader.leftovers() == []


def test_usage_counts_on_over_the_runs_of_a_turn() -> None:
    reader = RunReader()
    read(reader, "calls_of_both_sides")

    events = read(reader, "answers_of_both_sides")

    assert events[-1] == Usage(200, 20, context_tokens=110)
    assert reader.steps == 1


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("", {}),
        ('{"a": 1', {"_raw": '{"a": 1'}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a": NaN}', {"_raw": '{"a": NaN}'}),
        ('{"a": ' * 100 + "1" + "}" * 100, {"_raw": '{"a": ' * 100 + "1" + "}" * 100}),
        (r'{"a": "\ud83d\u0000"}', {"a": "\N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_arguments_that_are_no_json_object_are_kept_as_they_were_written(
    written: str, arguments: dict[str, object]
) -> None:
    call = {"tool_call_id": "call-1", "name": "search", "arguments": written}
    chunks: list[dict[str, Any]] = [
        {"id": "m", "date": "2026-11-16T03:55:44Z", "message_type": "tool_call_message", "tool_call": call},
        {"message_type": "stop_reason", "stop_reason": "end_turn"},
    ]
    reader = RunReader()

    events = [event for chunk in chunks for event in reader.read(STREAMED.validate_python(chunk))]

    assert events[-1] == ToolCall("call-1", "search", arguments)


def test_a_history_tells_calls_with_their_returns_and_ends_with_what_waits() -> None:
    told_again = [said.event for said in build_history(kept())]

    words = [(type(event).__name__, getattr(event, "name", "")) for event in told_again]
    assert words == [
        ("UserText", ""),
        ("ToolCall", "memory_insert"),
        ("ToolCall", "nothere"),
        ("ToolReturn", "memory_insert"),
        ("ToolReturn", "nothere"),
        ("TextChunk", ""),
        ("UserText", ""),
        ("TextChunk", ""),
        ("ToolCall", "conversation_search"),
        ("ToolCall", "read_file"),
        ("ToolReturn", "read_file"),
        ("ToolReturn", "conversation_search"),
        ("TextChunk", ""),
        ("UserText", ""),
        ("ToolCall", "read_file"),
        ("ToolReturn", "read_file"),
        ("TextChunk", ""),
        ("UserText", ""),
        ("ApprovalRequest", "read_file"),
    ]
    denied = [event for event in told_again if isinstance(event, ToolReturn) and event.status is ToolStatus.DENIED]
    assert ["private" in event.text for event in denied] == [True]


def test_a_history_says_nothing_of_how_a_call_went_that_runs_after_an_approval() -> None:
    messages = kept()
    asked = next(index for index, one in enumerate(messages) if one.message_type == "approval_request_message")

    told_again = [said.event for said in build_history(messages[: asked + 1])]

    assert [type(event) for event in told_again[-2:]] == [ToolCall, ApprovalRequest]


def test_a_turn_of_the_past_goes_from_one_word_of_the_person_to_the_next() -> None:
    said = build_history(kept())

    opened = [one.turn_id for one in said if isinstance(one.event, UserText)]
    assert len(set(opened)) == 4
    assert {one.turn_id for one in said} == set(opened)
    assert len({one.id for one in said}) == len(said)


def test_messages_are_put_in_order_whichever_end_the_server_began_with() -> None:
    messages = kept()
    groups = [[message for message in messages if message.id == name] for name in dict.fromkeys(m.id for m in messages)]
    reversed_page = [message for group in reversed(groups) for message in group]

    assert oldest_first(reversed_page, newest_first=True) == messages
    assert oldest_first(messages, newest_first=False) == messages
    assert oldest_first(messages, newest_first=True) == messages


def test_a_return_whose_call_lies_before_the_page_is_left_out() -> None:
    messages = kept()
    first_return = next(index for index, one in enumerate(messages) if one.message_type == "tool_return_message")

    said = build_history(messages[first_return:])

    assert isinstance(said[0].event, TextChunk)


def test_what_letta_says_in_the_persons_place_is_not_the_persons_word() -> None:
    alert = {"type": "system_alert", "message": "prior messages have been hidden"}
    packed = [json.dumps(alert), "<system-alert>Automated keep-alive ping</system-alert>", '{"type": "order"}']
    messages = KEPT.validate_python(
        [
            {"id": f"m{number}", "date": "2026-11-16T03:55:44Z", "message_type": "user_message", "content": text}
            for number, text in enumerate(packed)
        ]
    )

    assert [said.event for said in build_history(messages)] == [UserText('{"type": "order"}')]


def test_a_picture_without_a_word_begins_a_turn_and_one_without_data_is_left_out() -> None:
    def picture(**source: str) -> dict[str, object]:
        return {"type": "image", "source": source}

    letta = picture(type="letta", file_id="file-1", data="cG5n", media_type="image/png")
    away = picture(type="url", url="https://example.com/a.png")
    kinds = [("user_message", "hi"), ("assistant_message", "one"), ("user_message", [letta, away])]
    messages = KEPT.validate_python(
        [
            {"id": f"m{at}", "date": "2026-11-16T03:55:44Z", "message_type": kind, "content": said, "otid": f"o{at}"}
            for at, (kind, said) in enumerate([*kinds, ("assistant_message", "two")])
        ]
    )

    said = build_history(messages)

    assert [one.event for one in said] == [
        UserText("hi"),
        TextChunk("one"),
        UserMedia("image/png", b"png"),
        TextChunk("two"),
    ]
    assert [one.turn_id for one in said] == ["m0", "m0", "m2", "m2"]
    assert (find_answer(messages, "o0"), find_answer(messages, "o2")) == ("one", "two")


def test_an_edit_shows_blocks_that_changed_came_or_went() -> None:
    before, after = {"human": "Ann", "old": "x", "same": "s"}, {"human": "Ann, tea", "same": "s", "new": "y"}

    assert memory_edits(before, after) == [
        MemoryEdit("human", "Ann", "Ann, tea"),
        MemoryEdit("new", "", "y"),
        MemoryEdit("old", "x", ""),
    ]


def test_only_a_memory_tool_that_worked_may_have_changed_memory() -> None:
    assert memory_may_have_changed([ToolReturn("c", "memory_insert", "")])
    assert not memory_may_have_changed(
        [ToolReturn("c", "memory_insert", "", ToolStatus.ERROR), ToolReturn("c", "search", "")]
    )


async def nothing(_arguments: object) -> ToolOutcome:
    return ToolOutcome("")


WAITING = (ApprovalRequest("call-1", "delete_file", {}), ApprovalRequest("call-2", "read_file", {}))
READ = Tool("read_file", "", {}, nothing)
DELETE = Tool("delete_file", "", {}, nothing, needs_approval=True)


@pytest.mark.parametrize(
    ("text", "approved", "tools", "pending", "mistake"),
    [
        ("hello", (), (), (), None),
        ("hello", (), (), WAITING, PendingApproval),
        (None, ("call-1",), (), (), Invalid),
        (None, ("call-1",), (), WAITING, Invalid),
        (None, ("call-3",), (), WAITING, Invalid),
        (None, ("call-1", "call-2"), (), WAITING, None),
        (None, ("call-1",), (READ, DELETE), WAITING, None),
        (None, ("call-2",), (READ, DELETE), WAITING, Invalid),
    ],
)
def test_each_call_that_waits_needs_a_word_but_the_callers_own_that_need_none(
    text: str | None,
    approved: Sequence[str],
    tools: Sequence[Tool],
    pending: Sequence[ApprovalRequest],
    mistake: type[FrontdeskError] | None,
) -> None:
    approvals = [Approval(call_id, approve=True) for call_id in approved]
    prompt = Prompt("agent-1", Caller("request-1"), text, approvals, tools=tools)

    assert type(why_refused(prompt, pending)) is (mistake or type(None))


def answered(status: int, body: object, kind: type[APIStatusError] = APIStatusError) -> APIStatusError:
    return kind("said", response=httpx.Response(status, request=httpx.Request("GET", URL)), body=body)


def in_stream(error_type: str, message: str, detail: str = "") -> APIStatusError:
    return answered(200, {"error_type": error_type, "message": message, "detail": detail})


@pytest.mark.parametrize(
    ("error", "trouble", "hint"),
    [
        (answered(401, {}, AuthenticationError), FailureKind.UNAUTHENTICATED, "LETTA_API_KEY or LETTA_SERVER_PASSWORD"),
        (APIConnectionError(request=httpx.Request("GET", URL)), FailureKind.UNAVAILABLE, "LETTA_BASE_URL"),
        (httpx.ReadTimeout("silence"), FailureKind.UNAVAILABLE, "LETTA_BASE_URL"),
        (answered(500, {}), FailureKind.UNAVAILABLE, "500"),
        (
            in_stream("llm_authentication", "Failed", "401 from the provider"),
            FailureKind.UNAUTHENTICATED,
            "provider's key",
        ),
        (in_stream("llm_rate_limit", "Slow down"), FailureKind.RATE_LIMITED, "Slow down"),
        (
            in_stream("internal_error", "Odd", "Connection error during streaming"),
            FailureKind.UNAVAILABLE,
            "Connection",
        ),
        (in_stream("internal_error", "Odd"), FailureKind.INTERNAL, "Odd"),
        (in_stream("context_window_overflow_in_system_prompt", "Full"), FailureKind.TOO_LONG, "Full"),
        (in_stream("llm_error", "Failed", "This model's maximum context length is 9"), FailureKind.TOO_LONG, "new one"),
        (answered(400, {"detail": "context_window_exceeded"}, BadRequestError), FailureKind.TOO_LONG, "larger context"),
        (answered(404, {"detail": "NOT_FOUND: Handle a/b not found"}, NotFoundError), FailureKind.NOT_FOUND, "'a/b'"),
    ],
)
def test_what_letta_does_wrong_says_what_to_check(error: Exception, trouble: FailureKind, hint: str) -> None:
    found = translate_error(error, URL, "agent 'agent-1'")

    assert isinstance(found, LettaFailure)
    assert isinstance(found, Unavailable)
    assert found.trouble is trouble
    assert hint in str(found)
    assert type(error).__name__ not in str(found)


def test_an_approval_that_waits_is_recognised_in_a_stream_that_had_begun() -> None:
    message = "CONFLICT: Cannot send a new message: The agent is waiting for approval on a tool call."

    assert isinstance(translate_error(in_stream("internal_error", message), URL, "agent 'agent-1'"), PendingApproval)


@pytest.mark.parametrize("detail", ["[{'loc': ('path', 'agent_id'), 'msg': 'too short'}]", "Invalid agent ID format"])
def test_an_id_that_does_not_look_like_one_is_of_nothing_that_is_there(detail: str) -> None:
    error = answered(422, {"detail": detail}, UnprocessableEntityError)

    assert isinstance(translate_error(error, URL, "agent 'nonsense'"), NotFound)


def test_what_is_not_there_is_named_without_what_the_server_says_of_itself() -> None:
    found = translate_error(
        answered(404, {"detail": "actor='user-0' not found"}, NotFoundError), URL, "agent 'agent-1'"
    )

    assert isinstance(found, NotFound)
    assert str(found) == "The Letta server has no agent 'agent-1'"
