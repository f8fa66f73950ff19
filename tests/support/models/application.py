"""The scripted model server's ASGI application: who may ask, what for, and the scripted answer."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import from_json, to_json

from frontdesk.llm.script import ScriptStep
from tests.support.models import chat, messages
from tests.support.models.conversation import next_step
from tests.support.models.exchange import ClientGone, Exchange, Receive, Send
from tests.support.models.record import ModelServer, Seen

DIMENSIONS = 1536
CONTEXT = 128_000
MODEL = {"id": "fake-1", "object": "model", "created": 0, "owned_by": "test"}
MODELS = to_json({"object": "list", "data": [{**MODEL, "max_model_len": CONTEXT, "context_length": CONTEXT}]})


@dataclass(frozen=True, slots=True)
class Api:
    """How one API words a step: whole, in a stream, and when it fails."""

    answer: Callable[[Mapping[str, Any], ScriptStep], bytes]
    events: Callable[[Mapping[str, Any], ScriptStep], Iterable[bytes]]
    error: Callable[[int, str], bytes]


OPENAI = Api(chat.answer, chat.events, chat.error)
APIS = {"/v1/chat/completions": OPENAI, "/v1/messages": Api(messages.answer, messages.events, messages.error)}


class Refused(Exception):
    """A request that gets an error instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Application:
    """The ASGI application; it keeps nothing of a conversation, so any request may come twice or out of order."""

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
        # One write for all: a benchmark that stands on this server should not pay for a system call per event.
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
