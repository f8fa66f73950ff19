"""The pure parts of the built-in agent: messages kept fit, memory edits, model names, scripts, compaction."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from pydantic_ai.exceptions import ModelAPIError, ModelContextWindowExceededError, ModelNotFoundError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

from frontdesk.agents.embedded.compaction import compact_if_full, count_to_summarise, quote_person, summarise_oldest
from frontdesk.agents.embedded.conversation import StoredMessage
from frontdesk.agents.embedded.own_tools import insert_line, replace_passage
from frontdesk.errors import Invalid
from frontdesk.llm.access import ANTHROPIC_DEFAULT, OFFLINE, OPENAI_DEFAULT, ModelAccess
from frontdesk.llm.events import Failed, FailureKind, MemoryEdit, Plan, PlanStep, StepStatus, TextChunk, ToolStatus
from frontdesk.llm.messages import (
    CONTENT_LEFT_OUT,
    estimate_tokens,
    make_tool_return,
    message_text,
    repair_messages,
    stored_events,
    tool_return_status,
    trim_messages,
    unanswered_calls,
    user_message,
)
from frontdesk.llm.models import ModelPool
from frontdesk.llm.script import parse_script, split_arguments, split_words
from frontdesk.llm.scripted_models import OFFLINE_ANSWER, next_script_step
from frontdesk.llm.tools import TOOL_SECONDS, Tool, ToolOutcome, run_tool
from frontdesk.llm.turn import StreamConverter, UsageTotal, describe_model_error
from frontdesk.text import parse_json_object
from tests.requirements import shows

KEY = SecretStr("sk-1")


def call(number: int) -> ToolCallPart:
    return ToolCallPart("tool", {"x": number}, f"call-{number}")


@given(st.lists(st.sampled_from(["user", "text", "call", "calls", "answer"]), max_size=12))
def test_whatever_was_lost_the_model_gets_every_call_answered(kinds: list[str]) -> None:
    messages: list[ModelMessage] = []
    for number, kind in enumerate(kinds):
        match kind:
            case "user":
                messages.append(user_message(f"words {number}"))
            case "text":
                messages.append(ModelResponse(parts=[TextPart(f"text {number}")]))
            case "call":
                messages.append(ModelResponse(parts=[call(number)]))
            case "calls":
                messages.append(ModelResponse(parts=[call(number), call(number + 100)]))
            case _:
                since = max((at for at, one in enumerate(messages) if isinstance(one, ModelResponse)), default=0)
                waiting = unanswered_calls(messages[since:])
                spoken = any(message_text(one) for one in messages[since:] if isinstance(one, ModelRequest))
                if waiting and not spoken:
                    messages.append(ModelRequest(parts=[make_tool_return(waiting[0], "yes", ToolStatus.OK)]))
    whole = repair_messages(messages)
    assert unanswered_calls(whole) == []
    requests = [isinstance(message, ModelRequest) for message in whole]
    assert not any(one and two for one, two in pairwise(requests)), "requests are joined"
    kept = [part for message in messages for part in message.parts]
    assert [part for message in whole for part in message.parts if part in kept] == kept, "nothing is lost or moved"
    assert repair_messages(whole) == whole


def test_an_answer_that_comes_too_late_or_twice_is_left_out() -> None:
    late = ModelRequest(parts=[make_tool_return(call(1), "late", ToolStatus.OK)])
    talk: list[ModelMessage] = [ModelResponse(parts=[call(1)]), user_message("well?"), late]
    answers = [part for message in repair_messages(talk) for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [tool_return_status(part) for part in answers] == [ToolStatus.INTERRUPTED]
    again: list[ModelMessage] = [ModelResponse(parts=[call(1)]), late, ModelResponse(parts=[call(1)])]
    assert [part.tool_call_id for part in unanswered_calls(again)] == ["call-1"], "an id may be used again"
    assert unanswered_calls(repair_messages(again, {"call-1"})) == unanswered_calls(again), "what is pending stays open"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ({"a": "x\0y"}, {"a": "xy"}),
        ('{"a": "\\ud83d\\ude00 \\ud83d"}', {"a": "\U0001f600 \ufffd"}),
        ('{"a": NaN}', None),
        ({"a": float("inf")}, None),
        ("[1]", None),
        ('{"a": ', None),
        (f'{{"a": {"[" * 500}{"]" * 500}}}', None),
        (f'{{"a": {"[" * 60}{"]" * 60}}}', ...),
    ],
)
def test_arguments_are_handed_on_only_as_sound_json(given: object, expected: object) -> None:
    found = parse_json_object(given)
    assert found == expected or (expected is ... and found is not None)


@pytest.mark.anyio
async def test_a_character_cut_in_two_by_a_stream_is_said_whole() -> None:
    said: list[object] = []

    async def emit(event: object) -> None:
        said.append(event)

    speech = StreamConverter(emit)
    for piece in ("a\ud83d", "\ude00b", "c"):
        await speech.feed(PartDeltaEvent(index=0, delta=TextPartDelta(content_delta=piece)))
    assert said == [TextChunk("a"), TextChunk("\U0001f600b"), TextChunk("c")]


def test_a_tool_answer_carries_what_it_showed() -> None:
    events = (MemoryEdit("human", "a", "b"), Plan((PlanStep("go", StepStatus.COMPLETED),)))
    part = make_tool_return(call(1), "done", ToolStatus.DENIED, events)
    assert stored_events(part) == list(events)
    assert tool_return_status(part) is ToolStatus.DENIED
    assert part.outcome == "denied"


def test_old_tool_answers_make_room_and_the_newest_stay() -> None:
    messages: list[ModelMessage] = []
    for number in range(10):
        messages.append(ModelResponse(parts=[call(number)]))
        messages.append(ModelRequest(parts=[make_tool_return(call(number), "x" * 4000, ToolStatus.OK)]))
    fit = trim_messages(messages, 5000)
    texts = [
        part.content
        for message in fit
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert texts[0] == CONTENT_LEFT_OUT
    assert texts[-1] == "x" * 4000
    assert sum(map(estimate_tokens, fit)) <= 5000
    assert unanswered_calls(fit) == []
    assert trim_messages(messages, 10**6) == messages


def stored(messages: list[ModelMessage]) -> list[StoredMessage]:
    return [
        StoredMessage(number, "turn", datetime(2026, 1, 1, tzinfo=UTC), message)
        for number, message in enumerate(messages, 1)
    ]


def test_only_a_full_conversation_is_cut_and_only_between_turns() -> None:
    messages: list[ModelMessage] = []
    for number in range(20):
        messages += [user_message("w" * 400), ModelResponse(parts=[call(number)])]
        messages += [ModelRequest(parts=[make_tool_return(call(number), "r" * 400, ToolStatus.OK)])]
        messages += [ModelResponse(parts=[TextPart("t" * 400)])]
    assert count_to_summarise(stored(messages), 100_000) == 0
    cut = count_to_summarise(stored(messages), 8000)
    assert cut % 4 == 0
    assert 0 < cut < len(messages)
    assert sum(map(estimate_tokens, messages[cut:])) <= 8000 * 0.25
    assert count_to_summarise(stored(messages[:4]), 10) == 0, "a turn that is alone is never cut"


def test_without_a_model_a_summary_holds_the_persons_words() -> None:
    text = quote_person("Before.", [user_message("I like tea"), ModelResponse(parts=[TextPart("Noted")])])
    assert text == "Before.\nThe person said: I like tea"


@shows("KEPT-11")
@pytest.mark.parametrize("said", ["", "  ", None])
async def test_a_model_without_a_summary_is_told_of_and_what_has_to_give_way_is_shortened(said: str | None) -> None:
    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if said is None:
            raise ModelAPIError("m", "no")
        return ModelResponse(parts=[TextPart(said)])

    now = datetime.now(UTC)
    spoken = [user_message(f"Tea {number} {'x' * 100_000}") for number in range(8)]
    past = [StoredMessage(number, f"turn-{number}", now, one) for number, one in enumerate(spoken)]
    model, spent = FunctionModel(answer), UsageTotal(0)
    asked = await summarise_oldest(model, None, past, 2, spent)
    assert isinstance(asked, Failed), "who asks for it is told why there is none"
    forced = await compact_if_full(model, None, past, spent)
    assert forced is not None
    assert (forced.by_model, "Tea 0" in forced.summary) == (False, True)


@pytest.mark.parametrize(
    ("line", "expected"), [(-1, "a\nb\nnew"), (0, "new\na\nb"), (1, "a\nnew\nb"), (2, "a\nb\nnew")]
)
def test_a_line_is_inserted_where_it_is_wanted(line: int, expected: str) -> None:
    assert insert_line("a\nb", "new", line) == expected


def test_an_edit_that_does_not_fit_says_why() -> None:
    assert insert_line("", "first", -1) == "first"
    with pytest.raises(Invalid, match="no line 5"):
        insert_line("a", "b", 5)
    with pytest.raises(Invalid, match="2 times"):
        replace_passage("tea and tea", "tea", "coffee")
    assert replace_passage("tea and milk", "tea", "coffee") == "coffee and milk"


@pytest.mark.parametrize(
    ("access", "chosen"),
    [
        (ModelAccess(), OFFLINE),
        (ModelAccess(openai_key=KEY), OPENAI_DEFAULT),
        (ModelAccess(openai_key=KEY, anthropic_key=KEY), ANTHROPIC_DEFAULT),
        (ModelAccess(openai_key=KEY, openai_url="http://127.0.0.1/v1"), OFFLINE),
        (ModelAccess("groq:llama", openai_key=KEY), "groq:llama"),
    ],
)
def test_the_keys_choose_the_model_where_no_name_does(access: ModelAccess, chosen: str) -> None:
    assert access.default_model == chosen


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "access", "kind", "model"),
    [
        ("anthropic:claude-x", ModelAccess(anthropic_key=KEY), AnthropicModel, "claude-x"),
        ("openai:gpt-x", ModelAccess(openai_key=KEY), OpenAIResponsesModel, "gpt-x"),
        ("openai/gpt-x", ModelAccess(openai_key=KEY), OpenAIResponsesModel, "gpt-x"),
        ("openai:org/m:7b", ModelAccess(openai_url="http://127.0.0.1/v1"), OpenAIChatModel, "org/m:7b"),
        ("openai-chat:gpt-x", ModelAccess(openai_key=KEY), OpenAIChatModel, "gpt-x"),
        ("openai:gpt-audio-x", ModelAccess(openai_key=KEY), OpenAIChatModel, "gpt-audio-x"),
    ],
)
async def test_a_model_string_opens_the_model_it_names(
    name: str, access: ModelAccess, kind: type[object], model: str
) -> None:
    models = ModelPool(access)
    opened = await models.open(name)
    assert isinstance(opened, kind)
    assert opened.model_name == model
    assert await models.open(name) is opened
    await models.close()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["gpt", "nobody:x", "openai:x", "anthropic:x"])
async def test_a_model_that_cannot_be_used_says_what_to_do(name: str) -> None:
    with pytest.raises(Invalid, match=r"PROVIDER:MODEL|cannot be used"):
        await ModelPool(ModelAccess()).open(name)


def test_the_offline_model_is_honest_and_follows_a_script() -> None:
    assert next_script_step([user_message("What is the capital of France?")]).text == OFFLINE_ANSWER
    talk: list[ModelMessage] = [user_message('@@[{"tool": "t"}, {"text": "b"}]@@')]
    assert next_script_step(talk).calls[0].name == "t"
    talk += [ModelResponse(parts=[call(1)]), ModelRequest(parts=[make_tool_return(call(1), "", ToolStatus.OK)])]
    assert next_script_step(talk).text == "b"
    talk.append(ModelResponse(parts=[TextPart("b")]))
    assert "no more steps" in next_script_step(talk).text


@given(st.text())
def test_any_message_is_read_as_a_script_or_is_none(text: str) -> None:
    script = parse_script(f"@@[{text}]@@")
    assert script is None or isinstance(script, list)
    assert "".join(split_arguments(text)) == text
    assert "".join(split_words(text)).strip() == text.strip()


def test_what_goes_wrong_is_told_without_a_secret() -> None:
    told = describe_model_error(ModelAPIError("gpt-x", "Incorrect API key provided: sk-1234"))
    assert told.trouble is FailureKind.UNAVAILABLE
    assert "sk-1234" not in told.message
    assert describe_model_error(UserError("set X")).trouble is FailureKind.INVALID


@pytest.mark.parametrize(
    ("kind", "trouble"),
    [(ModelNotFoundError, FailureKind.NOT_FOUND), (ModelContextWindowExceededError, FailureKind.TOO_LONG)],
)
def test_a_model_that_is_not_there_or_full_is_told_apart(kind: type[ModelAPIError], trouble: FailureKind) -> None:
    told = describe_model_error(kind("gpt-x", "so it is"))
    assert told.trouble is trouble
    assert "'gpt-x'" in told.message


@pytest.mark.anyio
async def test_a_tool_with_a_time_of_its_own_has_that_and_is_told_its_call() -> None:
    left: list[float] = []

    async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
        left.append(anyio.current_effective_deadline() - anyio.current_time())
        return ToolOutcome(f"run {arguments['x']}")

    async def run_call(call_id: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome(f"{call_id} {(await run(arguments)).text}")

    patient = Tool("patient", "", {}, run, run_call=run_call, seconds=3600)
    assert (await run_tool(patient, {"x": 1}, "call-1")).text == "call-1 run 1"
    assert (await run_tool(Tool("plain", "", {}, run), {"x": 2}, "call-2")).text == "run 2"
    assert left[0] > TOOL_SECONDS >= left[1]


def test_the_text_of_a_message_is_what_was_said() -> None:
    assert message_text(user_message("hello")) == "hello"
    assert message_text(ModelResponse(parts=[TextPart("one "), call(1), TextPart("two")])) == "one two"
    assert message_text(ModelRequest(parts=[make_tool_return(call(1), "secret result", ToolStatus.OK)])) == ""
