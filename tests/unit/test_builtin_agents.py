"""Tests the pure parts of the built-in agents: messages, memory blocks, compaction, and the choice of models."""

from collections.abc import Mapping, Sequence
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
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import known_model_names
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

from frontdesk.agents.embedded.compaction import compact_if_full, count_to_summarise, quote_person, summarise_oldest
from frontdesk.agents.embedded.conversation import StoredMessage
from frontdesk.agents.embedded.own_tools import insert_line, replace_passage
from frontdesk.agents.embedded.resources import MAX_MODELS, list_model_choices, newest_models
from frontdesk.agents.host import MemoryBlock
from frontdesk.agents.memory_blocks import change_block, initial_blocks
from frontdesk.errors import Invalid
from frontdesk.llm.access import (
    ANTHROPIC_DEFAULT,
    OFFLINE,
    OPENAI_DEFAULT,
    ModelAccess,
    accepted_media,
    split_model_name,
)
from frontdesk.llm.events import Failed, FailureKind, MemoryEdit, Plan, PlanStep, StepStatus, TextChunk, ToolStatus
from frontdesk.llm.messages import (
    CONTENT_LEFT_OUT,
    estimate_tokens,
    make_tool_return,
    message_text,
    prompt_media,
    prompt_text,
    repair_messages,
    replace_unfit_media,
    stored_events,
    tool_return_status,
    trim_messages,
    unanswered_calls,
    user_message,
)
from frontdesk.llm.models import ModelPool, model_profile
from frontdesk.llm.script import parse_script, split_arguments, split_words
from frontdesk.llm.scripted_models import OFFLINE_ANSWER, next_script_step
from frontdesk.llm.tools import TOOL_SECONDS, Tool, ToolOutcome, run_tool
from frontdesk.llm.turn import StreamConverter, UsageTotal, describe_model_error
from frontdesk.text import parse_json_object
from tests.requirements import shows

# Pure parts: valid message histories, memory edits, model names, scripts, compaction


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


# Valid contents of an agent's memory, on each host


LAW = MemoryBlock("law", "never", read_only=True)


def test_an_agent_starts_with_the_usual_blocks_unless_its_own_stand_there() -> None:
    human = MemoryBlock("human", "Likes tea")
    assert [block.label for block in initial_blocks("Ada", [])] == ["persona", "human"]
    assert initial_blocks("Ada", [LAW, human])[1:] == [LAW, human]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([MemoryBlock("", "")], "1 to 100 characters"),
        ([MemoryBlock("x" * 101, "")], "1 to 100 characters"),
        ([MemoryBlock("a", ""), MemoryBlock("a", "")], "same label"),
        ([MemoryBlock("a", "xx", limit=1)], "takes 1 characters; this is 2"),
        ([MemoryBlock("a\0", "")], "cannot be stored"),
        ([MemoryBlock("a", "\ud800")], "cannot be stored"),
        ([MemoryBlock("a", "", "\0")], "cannot be stored"),
        ([MemoryBlock(str(number), "") for number in range(49)], "at most 50"),
    ],
)
def test_blocks_that_cannot_be_are_refused_with_the_reason(given: list[MemoryBlock], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        initial_blocks("Ada", given)


def test_a_change_is_made_by_the_rules_of_the_block() -> None:
    block = MemoryBlock("human", "tea", "Who", limit=5)
    assert change_block(block, lambda value: f"{value}\0s") == MemoryBlock("human", "teas", "Who", limit=5)
    with pytest.raises(Invalid, match="The memory block 'human' takes 5 characters; this is 6"):
        change_block(block, lambda value: value * 2)


def test_a_block_that_is_read_only_is_not_even_tried() -> None:
    with pytest.raises(Invalid, match="The memory block 'law' is read-only; write to another one"):
        change_block(LAW, lambda _value: pytest.fail("tried"))


# Selectable models, the media that each accepts, and the treatment of pictures and sounds it does not accept


PICTURE = BinaryContent(b"png", media_type="image/png")
SOUND = BinaryContent(b"wav", media_type="audio/wav")


def named(access: ModelAccess) -> list[str]:
    return [one.name for one in list_model_choices(access, known_model_names(), model_profile)]


def prompts(messages: Sequence[ModelMessage]) -> list[UserPromptPart]:
    return [part for one in messages for part in one.parts if isinstance(part, UserPromptPart)]


@pytest.mark.parametrize(
    ("access", "first", "providers"),
    [
        (ModelAccess(), OFFLINE, {OFFLINE}),
        (ModelAccess(anthropic_key=KEY), ANTHROPIC_DEFAULT, {"anthropic"}),
        (ModelAccess(openai_key=KEY), OPENAI_DEFAULT, {"openai"}),
        (ModelAccess(openai_key=KEY, anthropic_key=KEY), ANTHROPIC_DEFAULT, {"openai", "anthropic"}),
        (ModelAccess("openai:gpt-6-sol", KEY, None, KEY), "openai:gpt-6-sol", {"openai", "anthropic"}),
        (ModelAccess("openai:mine", KEY, "http://127.0.0.1/v1"), "openai:mine", {"openai"}),
    ],
)
def test_the_default_is_first_and_only_providers_with_a_key_are_asked(
    access: ModelAccess, first: str, providers: set[str]
) -> None:
    names = named(access)
    assert names[0] == first
    assert {split_model_name(name)[0] for name in names} == providers
    assert len(names) == len(set(names)) <= MAX_MODELS


def test_behind_an_address_of_ones_own_only_the_model_that_is_set_is_known() -> None:
    assert named(ModelAccess("openai:mine", KEY, "http://127.0.0.1/v1")) == ["openai:mine"]


def test_the_newest_are_first_and_no_model_is_there_twice_or_for_another_purpose() -> None:
    known = ["p:a-4-5", "p:a-5-5-20260101", "p:a-5-5", "p:a-5", "p:a-10", "q:a-9", "p:a-realtime-11", "p:a-latest"]
    assert newest_models(known, "p") == ["p:a-10", "p:a-5-5", "p:a-5", "p:a-4-5"]
    every = named(ModelAccess(openai_key=KEY))
    assert not [name for name in every if any(word in name for word in ("2025", "2026", "realtime", "search"))]
    assert "openai:gpt-audio-mini" in every, "it talks, and takes sounds"


def test_a_choice_says_what_the_model_takes() -> None:
    def profile(name: str) -> Mapping[str, Any]:
        return {"supports_thinking": name == "openai:thinker", "supports_image_input": name != "openai:gpt-5-blind"}

    one, two, three = (
        list_model_choices(ModelAccess(name, openai_url="x"), (), profile)[0]
        for name in ("openai:thinker", "openai:gpt-5-blind", "google:gemini-seer")
    )
    assert (one.title, one.efforts, one.images, one.sounds) == ("thinker", ("low", "medium", "high"), False, False)
    assert (two.efforts, two.images, two.sounds) == ((), False, False)
    assert (three.images, three.sounds) == (True, True)


def test_a_default_whose_library_is_not_installed_is_listed_all_the_same() -> None:
    assert named(ModelAccess("google:gemini-3")) == ["google:gemini-3"]
    assert model_profile("openai/gpt-6-luna") == model_profile("openai:gpt-6-luna") != model_profile(OFFLINE)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (OFFLINE, (True, True)),
        ("anthropic:claude-sonnet-5-5", (True, False)),
        ("openai/gpt-6-luna", (True, False)),
        ("openai:gpt-3.5-turbo", (False, False)),
        ("openai:gpt-4", (False, False)),
        ("openai:gpt-4.1", (True, False)),
        ("openai:gpt-audio-mini", (False, True)),
        ("google:gemini-3", (True, True)),
        ("deepseek:deepseek-chat", (False, False)),
        ("openai:o3", (True, False)),
        ("openai:o3-mini", (False, False)),
        ("openrouter:openai/o3-pro", (True, False)),
        ("ollama:marco-o1", (False, False)),
        ("openai:gpt-4o", (True, False)),
        ("openai:gpt-oss-120b", (False, False)),
        ("openai:qwen3", (False, False)),
        ("openai:qwen3-vl:8b", (True, False)),
        ("openrouter:anthropic/claude-sonnet-5-5", (True, False)),
        ("anthropic:claude-2.1", (False, False)),
        ("google:gemma-2-9b", (False, False)),
        ("openai:vllm-served", (False, False)),
        ("nobody:knows", (False, False)),
        ("", (False, False)),
    ],
)
@shows("KEPT-11")
def test_what_a_model_sees_and_hears_is_told_by_its_name(name: str, expected: tuple[bool, bool]) -> None:
    assert accepted_media(name) == expected


@shows("KEPT-11")
@pytest.mark.parametrize("said", ["openai:mine", "openai/mine"])
def test_the_operator_says_of_a_model_that_it_takes_pictures(said: str) -> None:
    assert accepted_media("openai:mine", (said,)) == (True, False)
    assert accepted_media("openai:mine-too", (said,)) == (False, False)
    access = ModelAccess("openai:mine", KEY, "http://127.0.0.1/v1", image_models=(said,))
    assert list_model_choices(access, (), model_profile)[0].images


@given(st.text())
def test_any_name_is_told_from(name: str) -> None:
    assert all(isinstance(one, bool) for one in accepted_media(name))


def test_words_are_found_beside_a_picture_and_a_picture_takes_room() -> None:
    message = user_message("what is this?", [PICTURE])
    assert message_text(message) == "what is this?"
    assert estimate_tokens(message) > estimate_tokens(user_message("what is this?")) + 1000
    silent = prompts([user_message("  ", [PICTURE])])[0]
    assert (prompt_text(silent), prompt_media(silent)) == ("", [PICTURE])


def test_what_a_model_cannot_take_is_told_to_it_in_words() -> None:
    talk: list[ModelMessage] = [user_message("here", [PICTURE, SOUND]), ModelResponse(parts=[TextPart("ok")])]
    (part,) = prompts(replace_unfit_media(talk, images=True, sounds=False))
    assert list(prompt_media(part)) == [PICTURE]
    assert prompt_text(part) == "here\n[a sound was sent here, which you cannot take]"
    assert replace_unfit_media(talk, images=True, sounds=True) == talk
    assert not prompt_media(prompts(replace_unfit_media(talk, images=False, sounds=False))[0])


def test_what_came_with_words_that_were_never_answered_is_not_sent_again() -> None:
    lost, asked = user_message("look", [PICTURE]), user_message("and this?", [PICTURE])
    first, second = prompts(replace_unfit_media([lost, asked], images=True, sounds=True))
    assert not prompt_media(first)
    assert "never got" in prompt_text(first)
    assert list(prompt_media(second)) == [PICTURE]
    assert replace_unfit_media([lost, ModelRequest(parts=[])], images=True, sounds=True)[0] == lost
