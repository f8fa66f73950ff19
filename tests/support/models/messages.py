"""Anthropic's messages: a scripted step as one JSON answer or as a stream of events, and its errors."""

import secrets
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from frontdesk.llm.script import ScriptedCall, ScriptStep, split_arguments, split_words

Block = Mapping[str, Any]

USAGE = {"input_tokens": 100, "output_tokens": 10}
SIGNATURE = "c2NyaXB0ZWQ="
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def answer(asked: Mapping[str, Any], step: ScriptStep) -> bytes:
    """The whole answer as one JSON object."""
    content: list[Block] = []
    if step.reasoning:
        content.append({"type": "thinking", "thinking": step.reasoning, "signature": SIGNATURE})
    if step.text:
        content.append({"type": "text", "text": step.text})
    content += [_tool_use(call, _input(call)) for call in step.calls]
    told = {"content": content, "stop_reason": _stop_reason(step), "usage": USAGE}
    return to_json({**_head(asked), **told})


def events(asked: Mapping[str, Any], step: ScriptStep) -> Generator[bytes]:
    """The answer event by event; one that is to be dropped ends within its text."""
    yield _event("message_start", message={**_head(asked), "usage": {**USAGE, "output_tokens": 1}})
    yield PING
    for index, (block, deltas) in enumerate(_blocks(step)):
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        if step.drop and block["type"] == "text":
            return
        yield _event("content_block_stop", index=index)
    if step.drop or step.cut:
        return
    stop = {"stop_reason": _stop_reason(step), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": USAGE["output_tokens"]})
    yield _event("message_stop")


def error(status: int, message: str) -> bytes:
    told = {"type": KINDS.get(status, "api_error"), "message": message}
    return to_json({"type": "error", "error": told})


def _blocks(step: ScriptStep) -> Generator[tuple[Block, Sequence[Block]]]:
    """Each content block as it starts, and the deltas that fill it."""
    if step.reasoning:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in split_words(step.reasoning)]
        signed = {"type": "signature_delta", "signature": SIGNATURE}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    if step.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in split_words(step.text)]
    if step.drop:
        return
    for call in step.calls:
        parts = ["", *split_arguments(call.text)]
        yield _tool_use(call, {}), [{"type": "input_json_delta", "partial_json": part} for part in parts]


def _tool_use(call: ScriptedCall, given: Any) -> Block:
    return {"type": "tool_use", "id": f"toolu_{secrets.token_hex(12)}", "name": call.name, "input": given}


def _input(call: ScriptedCall) -> Any:
    """The arguments as an object; what is no JSON has no place in a JSON answer but a string's."""
    try:
        return from_json(call.text)
    except ValueError:
        return call.text


def _stop_reason(step: ScriptStep) -> str:
    return "tool_use" if step.calls else "end_turn"


def _head(asked: Mapping[str, Any]) -> Block:
    made = {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": asked["model"]}
    return {**made, "content": [], "stop_reason": None, "stop_sequence": None}


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json({"type": kind, **fields}))
