"""Tests the scripted model server with the client libraries of OpenAI and Anthropic."""

import json
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message, MessageParam, RawMessageStreamEvent, ToolResultBlockParam, ToolUseBlock
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionMessageParam,
)

from tests.support.desk import ROOT
from tests.support.models import open_models
from tests.support.models.application import ModelServer

KEY = "sk-right"
SECONDS = 10
THOUGHT_AND_TEXT = {"reasoning": "let me see", "text": "it is  four"}
TWO_CALLS = {
    "text": "looking",
    "tools": [{"name": "find", "args": {"query": "a long enough question"}}, {"name": "whoami"}],
}
CALLED: list[tuple[str, dict[str, Any]]] = [("find", {"query": "a long enough question"}), ("whoami", {})]
CUT_SHORT = {"text": "half a", "tool": "find", "drop": True}


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with open_models(KEY) as server:
        yield server


@pytest.fixture(scope="module")
def chat(models: ModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=models.openai_url, api_key=KEY, max_retries=0, timeout=SECONDS) as client:
        yield client


@pytest.fixture(scope="module")
def claude(models: ModelServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=models.anthropic_url, api_key=KEY, max_retries=0, timeout=SECONDS) as client:
        yield client


def script(*steps: Mapping[str, Any]) -> str:
    return f"Please do this: @@{json.dumps(steps)}@@"


def complete(client: openai.OpenAI, text: str, later: Sequence[ChatCompletionMessageParam] = ()) -> ChatCompletion:
    return client.chat.completions.create(model="fake-1", messages=[{"role": "user", "content": text}, *later])


def chunks(client: openai.OpenAI, text: str) -> openai.Stream[ChatCompletionChunk]:
    return client.chat.completions.create(
        model="fake-1",
        messages=[{"role": "user", "content": text}],
        stream=True,
        stream_options={"include_usage": True},
    )


def message(client: anthropic.Anthropic, text: str, later: Sequence[MessageParam] = ()) -> Message:
    asked: list[MessageParam] = [{"role": "user", "content": text}, *later]
    return client.messages.create(model="fake-1", max_tokens=100, messages=asked)


def events(client: anthropic.Anthropic, text: str) -> anthropic.Stream[RawMessageStreamEvent]:
    asked: list[MessageParam] = [{"role": "user", "content": text}]
    return client.messages.create(model="fake-1", max_tokens=100, messages=asked, stream=True)


def functions(answer: ChatCompletion) -> list[ChatCompletionMessageFunctionToolCall]:
    return [call for call in answer.choices[0].message.tool_calls or [] if call.type == "function"]


def uses(answer: Message) -> list[ToolUseBlock]:
    return [block for block in answer.content if block.type == "tool_use"]


def spoken(answer: Message) -> str:
    return "".join(block.text for block in answer.content if block.type == "text")


def test_openai_streams_thought_then_text_word_by_word_then_the_usage(chat: openai.OpenAI) -> None:
    *told, last = chunks(chat, script(THOUGHT_AND_TEXT))
    deltas = [chunk.choices[0].delta for chunk in told]
    thoughts = [delta.model_extra["reasoning_content"] for delta in deltas if delta.model_extra]
    assert thoughts == ["let ", "me ", "see"]
    assert [delta.content for delta in deltas if delta.content] == ["it ", "is  ", "four"]
    assert told[-1].choices[0].finish_reason == "stop"
    assert last.usage is not None
    assert (last.choices, last.usage.total_tokens) == ([], 110)


def test_openai_streams_the_arguments_of_parallel_calls_in_parts(chat: openai.OpenAI) -> None:
    parts = [
        call
        for chunk in chunks(chat, script(TWO_CALLS))
        for choice in chunk.choices
        for call in choice.delta.tool_calls or []
    ]
    assert len({part.id for part in parts if part.id}) == 2
    assert len([part for part in parts if part.index == 0]) > 2
    called = [[part.function for part in parts if part.index == index and part.function] for index in (0, 1)]
    names = ["".join(part.name or "" for part in call) for call in called]
    arguments = [json.loads("".join(part.arguments or "" for part in call)) for call in called]
    assert list(zip(names, arguments, strict=True)) == CALLED


def test_openai_answers_in_one_piece_as_well(chat: openai.OpenAI) -> None:
    spoken = complete(chat, script(THOUGHT_AND_TEXT)).choices[0]
    assert (spoken.message.content, spoken.finish_reason) == ("it is  four", "stop")
    assert spoken.message.model_extra == {"reasoning_content": "let me see"}
    called = complete(chat, script(TWO_CALLS))
    assert called.choices[0].finish_reason == "tool_calls"
    assert [(call.function.name, json.loads(call.function.arguments)) for call in functions(called)] == CALLED


def test_openai_walks_through_ten_tool_steps_to_the_end(chat: openai.OpenAI) -> None:
    text = script(*({"tool": f"step_{number}"} for number in range(10)), {"text": "all done"})
    later: list[ChatCompletionMessageParam] = []
    for number in range(10):
        (call,) = functions(complete(chat, text, later))
        assert call.function.name == f"step_{number}"
        given: ChatCompletionMessageFunctionToolCallParam = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        later.append({"role": "assistant", "tool_calls": [given]})
        later.append({"role": "tool", "tool_call_id": call.id, "content": "ok"})
    assert complete(chat, text, later).choices[0].message.content == "all done"
    later.append({"role": "assistant", "content": "all done"})
    assert complete(chat, text, later).choices[0].message.content == "script done"
    later.append({"role": "user", "content": "and now?"})
    assert complete(chat, text, later).choices[0].message.content == "echo: and now?"


def test_openai_fails_with_the_scripted_status(chat: openai.OpenAI) -> None:
    with pytest.raises(openai.RateLimitError, match="scripted failure"):
        complete(chat, script({"error": 429}))
    with pytest.raises(openai.InternalServerError, match="scripted failure"):
        chunks(chat, script({"error": 503}))


def test_openai_drops_the_connection_after_the_text(chat: openai.OpenAI) -> None:
    told: list[ChatCompletionChunk] = []
    with pytest.raises(openai.APIConnectionError):
        told.extend(chunks(chat, script(CUT_SHORT)))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in told) == "half a"
    with pytest.raises(openai.APIConnectionError):
        complete(chat, script(CUT_SHORT))


def test_anthropic_streams_thought_then_text_word_by_word_then_the_usage(claude: anthropic.Anthropic) -> None:
    told = list(events(claude, script(THOUGHT_AND_TEXT)))
    deltas = [event.delta for event in told if event.type == "content_block_delta"]
    assert [delta.thinking for delta in deltas if delta.type == "thinking_delta"] == ["let ", "me ", "see"]
    assert [delta.text for delta in deltas if delta.type == "text_delta"] == ["it ", "is  ", "four"]
    (closing,) = [event for event in told if event.type == "message_delta"]
    assert (closing.delta.stop_reason, closing.usage.output_tokens) == ("end_turn", 10)


def test_anthropic_streams_blocks_one_after_the_other_within_a_message(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": script({"reasoning": "hm", "text": "so", "tool": "find"})}]
    with claude.messages.with_streaming_response.create(
        model="fake-1", max_tokens=100, messages=asked, stream=True
    ) as raw:
        names = [line.removeprefix("event: ") for line in raw.iter_lines() if line.startswith("event: ")]
    start, delta, stop = (f"content_block_{moment}" for moment in ("start", "delta", "stop"))
    thought, text, call = [start, delta, delta, stop], [start, delta, stop], [start, delta, delta, stop]
    assert names == ["message_start", "ping", *thought, *text, *call, "message_delta", "message_stop"]


def test_anthropic_streams_the_arguments_of_parallel_calls_in_parts(claude: anthropic.Anthropic) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": script(TWO_CALLS)}]
    with claude.messages.stream(model="fake-1", max_tokens=100, messages=asked) as stream:
        parts = [event.partial_json for event in stream if event.type == "input_json"]
        whole = stream.get_final_message()
    assert len(parts) > 4
    called = [block for block in whole.content if block.type == "tool_use"]
    assert [(call.name, call.input) for call in called] == CALLED
    assert len({call.id for call in called}) == 2
    assert whole.stop_reason == "tool_use"


def test_anthropic_answers_in_one_piece_as_well(claude: anthropic.Anthropic) -> None:
    answer = message(claude, script(THOUGHT_AND_TEXT))
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert [block.thinking for block in answer.content if block.type == "thinking"] == ["let me see"]
    assert (spoken(answer), answer.stop_reason) == ("it is  four", "end_turn")
    called = message(claude, script(TWO_CALLS))
    assert called.stop_reason == "tool_use"
    assert [(call.name, call.input) for call in uses(called)] == CALLED


def test_anthropic_walks_through_ten_tool_steps_to_the_end(claude: anthropic.Anthropic) -> None:
    text = script(*({"tool": f"step_{number}"} for number in range(10)), {"text": "all done"})
    later: list[MessageParam] = []
    for number in range(10):
        answer = message(claude, text, later)
        (call,) = uses(answer)
        assert call.name == f"step_{number}"
        later.append(answer.to_param())
        result: ToolResultBlockParam = {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
        later.append({"role": "user", "content": [result]})
    assert spoken(message(claude, text, later)) == "all done"
    later.append({"role": "assistant", "content": "all done"})
    assert spoken(message(claude, text, later)) == "script done"
    later.append({"role": "user", "content": [{"type": "text", "text": "and now?"}]})
    assert spoken(message(claude, text, later)) == "echo: and now?"


def test_anthropic_fails_with_the_scripted_status(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.RateLimitError, match="rate_limit_error"):
        message(claude, script({"error": 429}))
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error") as failed:
        events(claude, script({"error": 529}))
    assert failed.value.status_code == 529


def test_anthropic_drops_the_connection_after_the_text(claude: anthropic.Anthropic) -> None:
    told: list[RawMessageStreamEvent] = []
    with pytest.raises(httpx2.RemoteProtocolError):
        told.extend(events(claude, script(CUT_SHORT)))
    deltas = [event.delta for event in told if event.type == "content_block_delta"]
    assert "".join(delta.text for delta in deltas if delta.type == "text_delta") == "half a"
    with pytest.raises(anthropic.APIConnectionError):
        message(claude, script(CUT_SHORT))


def test_a_wrong_key_is_turned_away_in_the_words_of_each_api(chat: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    with pytest.raises(openai.AuthenticationError, match="not the one"):
        complete(chat.with_options(api_key="sk-wrong"), "hello")
    with pytest.raises(anthropic.AuthenticationError, match="authentication_error"):
        message(claude.with_options(api_key="sk-wrong"), "hello")


def test_models_and_embeddings_are_there_too(chat: openai.OpenAI) -> None:
    (model,) = chat.models.list()
    assert (model.id, model.model_extra) == ("fake-1", {"max_model_len": 128000, "context_length": 128000})
    made = chat.embeddings.create(model="fake-1", input=["one", "two", "one"], dimensions=8)
    one, two, again = (found.embedding for found in made.data)
    assert len(one) == 8
    assert one == again != two


def test_a_script_that_letta_packed_is_read_like_any_other(chat: openai.OpenAI) -> None:
    said = 'she said "caf\u00e9" \u4f60\n'
    text = f"@@{json.dumps([{'text': said}], ensure_ascii=False)}@@"
    for plain in (True, False):
        packed = json.dumps({"type": "user_message", "message": text, "time": "now"}, indent=2, ensure_ascii=plain)
        assert complete(chat, packed).choices[0].message.content == said


def test_arguments_that_are_no_json_are_sent_as_they_are(chat: openai.OpenAI) -> None:
    (call,) = functions(complete(chat, script({"tools": [{"name": "find", "raw": '{"query": '}]})))
    assert call.function.arguments == '{"query": '


def test_a_request_that_cannot_be_read_is_refused_in_the_words_of_each_api(models: ModelServer) -> None:
    headers = {"x-api-key": KEY}
    told = httpx2.post(f"{models.url}/v1/chat/completions", content=b"[]", headers=headers, timeout=SECONDS)
    assert (told.status_code, told.json()["error"]["type"]) == (400, "invalid_request_error")
    told = httpx2.post(f"{models.url}/v1/messages", json={"model": "fake-1"}, headers=headers, timeout=SECONDS)
    assert (told.status_code, told.json()["error"]["message"]) == (400, "Missing: messages")
    assert httpx2.get(f"{models.url}/v1/files", headers=headers, timeout=SECONDS).status_code == 404


def test_requests_are_kept_for_the_test_to_look_at(models: ModelServer, chat: openai.OpenAI) -> None:
    complete(chat, "hello")
    last = models.seen[-1]
    assert (last.path, last.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert last.body["messages"] == [{"role": "user", "content": "hello"}]


def test_a_client_that_leaves_within_a_stream_or_before_it_is_counted(models: ModelServer, chat: openai.OpenAI) -> None:
    before = models.disconnects
    with chunks(chat, script({"text": "one two", "chunk_delay": 60})) as stream:
        assert next(stream).choices[0].delta.role == "assistant"
    assert models.wait_for_disconnects(before + 1)
    with pytest.raises(openai.APITimeoutError):
        complete(chat.with_options(timeout=openai.Timeout(SECONDS, read=0.05)), script({"text": "late", "delay": 60}))
    assert models.wait_for_disconnects(before + 2)


def test_the_server_stops_though_a_client_still_waits() -> None:
    with open_models() as models:
        client = openai.OpenAI(base_url=models.openai_url, api_key="any", max_retries=0, timeout=SECONDS)
        stream = chunks(client, script({"text": "one two", "chunk_delay": 60}))
        next(stream)
    with client, pytest.raises(openai.APIConnectionError):
        list(stream)


def test_the_server_runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.support.models", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], SECONDS)[0], "the server did not open"
            url = process.stdout.readline().strip()
            assert httpx2.get(f"{url}/v1/models", timeout=SECONDS).json()["data"][0]["id"] == "fake-1"
        finally:
            process.terminate()
            process.wait(SECONDS)
