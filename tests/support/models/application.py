"""The scripted model server's ASGI application, with the APIs of OpenAI and Anthropic."""

import asyncio
import json
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from pydantic_core import from_json, to_json
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk.llm.script import SCRIPT_MARK, ScriptedCall, ScriptStep, parse_script, split_arguments, split_words

# Finds the scripted step at which a conversation is, with either API


ECHOED = 200
DONE = ScriptStep(text="script done")


def next_step(messages: Sequence[Mapping[str, Any]]) -> ScriptStep:
    """The next step: its number is that of the assistant messages since the person's last message."""
    taken = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            taken += 1
        elif message["role"] == "user" and (text := _text(message["content"])):
            return _step(text, taken)
    return _step("", taken)


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    """The person's text; Anthropic's tool results also come as a user message, but as one without text parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def _step(text: str, taken: int) -> ScriptStep:
    script = _script(text)
    if script is None:
        return ScriptStep(text=f"echo: {text[-ECHOED:]}")
    return script[taken] if taken < len(script) else DONE


@lru_cache(256)
def _script(text: str) -> Sequence[ScriptStep] | None:
    script = parse_script(text)
    return parse_script(_unpacked(text)) if script is None else script


def _unpacked(text: str) -> str:
    """The marked part, unescaped: Letta packs a person's text into a JSON string within a JSON object."""
    found = SCRIPT_MARK.search(text)
    try:
        return json.loads(f'"{found[0]}"', strict=False) if found else ""
    except ValueError:
        return ""


# OpenAI's chat completions: a scripted step as one JSON answer or as a stream of chunks, and its errors


OPENAI_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def openai_answer(asked: Mapping[str, Any], step: ScriptStep) -> bytes:
    """The whole answer as one JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [_call(call, call.text) for call in step.calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(step)}
    return to_json({**_openai_head(asked, "chat.completion"), "choices": [choice], "usage": OPENAI_USAGE})


def openai_events(asked: Mapping[str, Any], step: ScriptStep) -> Generator[bytes]:
    """The answer chunk by chunk; an answer that is to be dropped ends after its text."""
    head = b"data: " + to_json(_openai_head(asked, "chat.completion.chunk"))[:-1]
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
        yield b'%b,"choices":[],"usage":%b}\n\n' % (head, to_json(OPENAI_USAGE))
    yield b"data: [DONE]\n\n"


def openai_error(status: int, message: str) -> bytes:
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


def _openai_head(asked: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    made = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": made, "object": kind, "created": int(time.time()), "model": asked["model"]}


# Anthropic's messages: a scripted step as one JSON answer or as a stream of events, and its errors


Block = Mapping[str, Any]

ANTHROPIC_USAGE = {"input_tokens": 100, "output_tokens": 10}
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


def anthropic_answer(asked: Mapping[str, Any], step: ScriptStep) -> bytes:
    """The whole answer as one JSON object."""
    content: list[Block] = []
    if step.reasoning:
        content.append({"type": "thinking", "thinking": step.reasoning, "signature": SIGNATURE})
    if step.text:
        content.append({"type": "text", "text": step.text})
    content += [_tool_use(call, _input(call)) for call in step.calls]
    told = {"content": content, "stop_reason": _stop_reason(step), "usage": ANTHROPIC_USAGE}
    return to_json({**_anthropic_head(asked), **told})


def anthropic_events(asked: Mapping[str, Any], step: ScriptStep) -> Generator[bytes]:
    """The answer event by event; an answer that is to be dropped ends within its text."""
    yield _event("message_start", message={**_anthropic_head(asked), "usage": {**ANTHROPIC_USAGE, "output_tokens": 1}})
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
    yield _event("message_delta", delta=stop, usage={"output_tokens": ANTHROPIC_USAGE["output_tokens"]})
    yield _event("message_stop")


def anthropic_error(status: int, message: str) -> bytes:
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
    """The arguments as an object; text that is not JSON can only be a string in a JSON answer."""
    try:
        return from_json(call.text)
    except ValueError:
        return call.text


def _stop_reason(step: ScriptStep) -> str:
    return "tool_use" if step.calls else "end_turn"


def _anthropic_head(asked: Mapping[str, Any]) -> Block:
    made = {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": asked["model"]}
    return {**made, "content": [], "stop_reason": None, "stop_sequence": None}


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json({"type": kind, **fields}))


# The scripted model server as a test sees it: its address, its requests, and the clients that left too early


KEPT_REQUESTS = 1000
WAIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: its path, its headers by their lower-case names, and its body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(slots=True)
class ModelServer:
    """A running server; `disconnects` counts the clients that left before their answer was complete."""

    url: str
    seen: deque[Seen] = field(default_factory=lambda: deque[Seen](maxlen=KEPT_REQUESTS))
    disconnects: int = 0
    _left: threading.Condition = field(default_factory=threading.Condition)

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def note_disconnect(self) -> None:
        with self._left:
            self.disconnects += 1
            self._left.notify_all()

    def wait_for_disconnects(self, count: int, seconds: float = WAIT_SECONDS) -> bool:
        """Whether that many clients have left, as soon as they have; blocks the calling thread."""
        with self._left:
            return self._left.wait_for(lambda: self.disconnects >= count, seconds)


# One HTTP request and its answer over plain ASGI, with pauses and with an early end


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class ClientGone(Exception):
    """The client closed its connection before the answer was complete."""


class Severable(HttpToolsProtocol):
    """Uvicorn's fast protocol, but the application may hang up, and a stop waits for no open stream."""

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"] = {"hang_up": self.transport.close}

    @override
    def shutdown(self) -> None:
        self.transport.close()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer in progress."""

    scope: Mapping[str, Any]
    receive: Receive
    send: Send

    def headers(self) -> dict[str, str]:
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.scope["headers"]}

    async def body(self) -> bytes:
        content, more = b"", True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            content += message["body"]
            more = message["more_body"]
        return content

    async def start_json(self, status: int, length: int) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def start_stream(self) -> None:
        await self.send({"type": "http.response.start", "status": 200, "headers": STREAM})

    async def write(self, body: bytes, *, more: bool = False) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def pause(self, seconds: float) -> None:
        """Wait that long, but no longer than the client does."""
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._end()
        except TimeoutError:
            return
        raise ClientGone

    async def hang_up(self) -> None:
        """Close the connection once all written data is sent."""
        self.scope["state"]["hang_up"]()
        # Uvicorn reports an answer without an end as an error, except after the connection is lost.
        await self._end()

    async def _end(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


# The scripted model server's ASGI application: authentication, routes, and the scripted answer


DIMENSIONS = 1536
CONTEXT = 128_000
MODEL = {"id": "fake-1", "object": "model", "created": 0, "owned_by": "test"}
MODELS = to_json({"object": "list", "data": [{**MODEL, "max_model_len": CONTEXT, "context_length": CONTEXT}]})


@dataclass(frozen=True, slots=True)
class Api:
    """How one API represents a step: whole, in a stream, and when it fails."""

    answer: Callable[[Mapping[str, Any], ScriptStep], bytes]
    events: Callable[[Mapping[str, Any], ScriptStep], Iterable[bytes]]
    error: Callable[[int, str], bytes]


OPENAI = Api(openai_answer, openai_events, openai_error)
APIS = {"/v1/chat/completions": OPENAI, "/v1/messages": Api(anthropic_answer, anthropic_events, anthropic_error)}


class Refused(Exception):
    """A request that gets an error instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Application:
    """The ASGI application; it stores nothing of a conversation, so any request may come twice or out of order."""

    server: ModelServer
    key: str | None

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        api = APIS.get(scope["path"], OPENAI)
        try:
            await self._serve(exchange, api)
        except Refused as refused:
            await _send_json(exchange, refused.status, api.error(refused.status, refused.message))
        except ClientGone:
            self.server.note_disconnect()

    async def _serve(self, exchange: Exchange, api: Api) -> None:
        headers, asked = exchange.headers(), _parsed(await exchange.body())
        path = exchange.scope["path"]
        self.server.seen.append(Seen(path, headers, asked))
        if not self._admits(headers):
            raise Refused(401, "This key is not the one the server was started with")
        match exchange.scope["method"], path:
            case "GET", "/v1/models":
                await _send_json(exchange, 200, MODELS)
            case "POST", "/v1/embeddings":
                await _send_json(exchange, 200, _embeddings(asked))
            case "POST", known if known in APIS:
                await _play(exchange, api, asked)
            case method, _:
                raise Refused(404, f"There is no {method} {path} here")

    def _admits(self, headers: Mapping[str, str]) -> bool:
        bearer = headers.get("authorization") == f"Bearer {self.key}"
        return self.key is None or bearer or headers.get("x-api-key") == self.key


def _parsed(content: bytes) -> Mapping[str, Any]:
    try:
        asked = from_json(content or b"{}")
    except ValueError as error:
        raise Refused(400, f"The body is not JSON: {error}") from error
    if not isinstance(asked, dict):
        raise Refused(400, "The body is not a JSON object")
    return cast("Mapping[str, Any]", asked)


def _require(asked: Mapping[str, Any], *names: str) -> None:
    missing = [name for name in names if name not in asked]
    if missing:
        raise Refused(400, f"Missing: {', '.join(missing)}")


async def _play(exchange: Exchange, api: Api, asked: Mapping[str, Any]) -> None:
    _require(asked, "model", "messages")
    step = next_step(asked["messages"])
    await exchange.pause(step.delay)
    if step.error:
        raise Refused(step.error, "scripted failure")
    if asked.get("stream"):
        await _stream(exchange, step, api.events(asked, step))
    elif step.drop:
        await _break_off(exchange, api.answer(asked, step))
    else:
        await _send_json(exchange, 200, api.answer(asked, step))


async def _stream(exchange: Exchange, step: ScriptStep, events: Iterable[bytes]) -> None:
    await exchange.start_stream()
    if step.chunk_delay:
        for number, event in enumerate(events):
            await exchange.pause(step.chunk_delay if number else 0)
            await exchange.write(event, more=True)
        await exchange.write(b"", more=step.drop)
    else:
        # One write for all events: a benchmark with this server should not pay for a system call per event.
        await exchange.write(b"".join(events), more=step.drop)
    if step.drop:
        await exchange.hang_up()


async def _break_off(exchange: Exchange, body: bytes) -> None:
    await exchange.start_json(200, len(body))
    await exchange.write(body[: len(body) // 2], more=True)
    await exchange.hang_up()


async def _send_json(exchange: Exchange, status: int, body: bytes) -> None:
    await exchange.start_json(status, len(body))
    await exchange.write(body)


def _embeddings(asked: Mapping[str, Any]) -> bytes:
    _require(asked, "model", "input")
    given: str | list[Any] = asked["input"]
    texts = given if isinstance(given, list) else [given]
    size = asked.get("dimensions") or DIMENSIONS
    data = [
        {"object": "embedding", "index": index, "embedding": _embedding(str(text), size)}
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return to_json({"object": "list", "model": asked["model"], "data": data, "usage": usage})


def _embedding(text: str, size: int) -> list[float]:
    """The same numbers for the same text, in every process."""
    return [number / 1000 for number in random.Random(text).choices(range(1000), k=size)]
