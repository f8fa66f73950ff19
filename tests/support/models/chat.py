"""OpenAI's chat completions: a scripted step as one JSON answer or as a stream of chunks, and its errors."""

import secrets
import time
from collections.abc import Generator, Mapping
from typing import Any

from pydantic_core import to_json

from frontdesk.llm.script import ScriptedCall, ScriptStep, split_arguments, split_words

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def answer(asked: Mapping[str, Any], step: ScriptStep) -> bytes:
    """The whole answer as one JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [_call(call, call.text) for call in step.calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(step)}
    return to_json({**_head(asked, "chat.completion"), "choices": [choice], "usage": USAGE})


def events(asked: Mapping[str, Any], step: ScriptStep) -> Generator[bytes]:
    """The answer chunk by chunk; one that is to be dropped ends after its text."""
    head = b"data: " + to_json(_head(asked, "chat.completion.chunk"))[:-1]
    options: Mapping[str, Any] = asked.get("stream_options") or {}
    counted = options.get("include_usage")
    tail = b',"usage":null}\n\n' if counted else b"}\n\n"
    for delta in _deltas(step):
        yield b'%b,"choices":[{"index":0,"delta":%b,"finish_reason":null}]%b' % (head, to_json(delta), tail)
    if step.drop:
        return
    if step.cut:
        yield b"data: [DONE]\n\n"
        return
    finish = to_json(_finish(step))
    yield b'%b,"choices":[{"index":0,"delta":{},"finish_reason":%b}]%b' % (head, finish, tail)
    if counted:
        yield b'%b,"choices":[],"usage":%b}\n\n' % (head, to_json(USAGE))
    yield b"data: [DONE]\n\n"


def error(status: int, message: str) -> bytes:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return to_json({"error": {"message": message, "type": kind, "param": None, "code": None}})


def _deltas(step: ScriptStep) -> Generator[Mapping[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in split_words(step.reasoning):
        yield {"reasoning_content": piece}
    for piece in split_words(step.text):
        yield {"content": piece}
    if step.drop:
        return
    for index, call in enumerate(step.calls):
        yield {"tool_calls": [{"index": index, **_call(call, "")}]}
        for piece in split_arguments(call.text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(call: ScriptedCall, arguments: str) -> Mapping[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def _finish(step: ScriptStep) -> str:
    return "tool_calls" if step.calls else "stop"


def _head(asked: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    made = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": made, "object": kind, "created": int(time.time()), "model": asked["model"]}
