"""Frames as tests write them, and the schema against which every frame is checked."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import jsonschema

from tests.editors import node
from tests.support.desk import START_SECONDS

# Checks an agent's frames against the schema of the protocol's own SDK


Json = Mapping[str, Any]
REQUEST, NOTIFICATION, RESPONSE = "Request", "Notification", "Response"
# An agent sends its client requests and notifications; its answers belong to requests to an agent.
SIDES = {REQUEST: "client", NOTIFICATION: "client", RESPONSE: "agent"}
BOTH_SIDES = "protocol"
EXTENSION = "_"
OPEN = "_meta"


class Problem(Protocol):
    """The place of an error, and the error."""

    json_path: str
    message: str


class Validator(Protocol):
    """The library's validator, as far as its types are known."""

    def is_valid(self, instance: object) -> bool: ...

    def iter_errors(self, instance: object) -> Iterable[Problem]: ...


def check_sent(frame: Json) -> None:
    """A request or notification from an agent."""
    assert frame["jsonrpc"] == "2.0", frame
    assert set(frame) <= {"jsonrpc", "id", "method", "params"}, f"more than a request has: {frame}"
    kind = REQUEST if "id" in frame else NOTIFICATION
    if not frame["method"].startswith(EXTENSION):
        _check(definition(kind, frame["method"]), frame.get("params", {}), frame)
    if frame["method"] == "session/update":
        check_update(frame["params"]["update"])


def check_answer(method: str, frame: Json) -> None:
    """An agent's answer to a request with this method."""
    assert frame["jsonrpc"] == "2.0", frame
    assert set(frame) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), f"not one of both: {frame}"
    if "error" in frame:
        check_error(frame["error"])
    elif not method.startswith(EXTENSION):
        _check(definition(RESPONSE, method), frame["result"], frame)


def check_error(error: Json) -> None:
    """One line, and a number: the schema requires less."""
    _check("Error", error, error)
    assert error["message"].strip(), f"an error that says nothing: {error}"
    assert error["message"].splitlines() == [error["message"]], f"an error of several lines: {error}"


def check_update(update: Json) -> None:
    """An update of a session, without keys that its kind does not have."""
    kind = update.get("sessionUpdate", "")
    assert kind in _updates(), f"no such update: {update}"
    _matches(_validator_of(kind), update, update)
    _nothing_more(update, frozenset(_properties(_updates()[kind])))


def definition(kind: str, method: str) -> str:
    """The name of the definition of a method's params or result."""
    named = _by_method()
    name = named.get((kind, SIDES[kind], method)) or named.get((kind, BOTH_SIDES, method))
    assert name is not None, f"the protocol has no {kind.lower()} {method} of an agent's"
    return name


def unknown_keys(name: str, value: Json) -> set[str]:
    """Keys that a definition does not have, except `_meta`."""
    return set(value) - _keys(name) - {OPEN}


def _check(name: str, value: Any, frame: Json) -> None:
    _matches(_validator(name), value, frame)
    _nothing_more(value, _keys(name))


def _nothing_more(value: Json, allowed: frozenset[str]) -> None:
    more = set(value) - allowed - {OPEN}
    assert not more, f"{sorted(more)} belong under _meta: {value}"


def _matches(validator: Validator, value: Any, frame: Json) -> None:
    # The check alone is much faster than a list of reasons, and nearly always succeeds.
    if not validator.is_valid(value):
        why = "; ".join(f"{problem.json_path}: {problem.message}" for problem in validator.iter_errors(value))
        raise AssertionError(f"{why[:2000]}\nin {json.dumps(frame)}")


@cache
def _definitions() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(node.schema().read_text())["$defs"]
    # `check_update` checks it, since it knows the kind; trying all kinds takes six times as long.
    read["SessionNotification"]["properties"]["update"] = {"type": "object"}
    return read


@cache
def _by_method() -> dict[tuple[str, str, str], str]:
    return {
        (kind, one["x-side"], one["x-method"]): name
        for name, one in _definitions().items()
        for kind in SIDES
        if "x-method" in one and name.endswith(kind)
    }


@cache
def _validator(name: str) -> Validator:
    return _compiled({"$ref": f"#/$defs/{name}"})


@cache
def _keys(name: str) -> frozenset[str]:
    return frozenset(_properties(_definitions()[name]))


@cache
def _updates() -> dict[str, Json]:
    kinds = _definitions()["SessionUpdate"]["oneOf"]
    return {kind["properties"]["sessionUpdate"]["const"]: kind for kind in kinds}


@cache
def _validator_of(update: str) -> Validator:
    return _compiled(_updates()[update])


def _compiled(one: Json) -> Validator:
    return cast("Validator", jsonschema.Draft202012Validator({**one, "$defs": _definitions()}))


def _properties(schema: Json) -> Iterable[str]:
    yield from schema.get("properties", {})
    if "$ref" in schema:
        yield from _properties(_definitions()[schema["$ref"].rpartition("/")[2]])
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            yield from _properties(part)


# Frames, as tests write and read them


PERMISSION = "session/request_permission"
STOPS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
Id = int | str
# Actions of an agent that has sent something and works for a long time.
GOING_ON: tuple[Json, ...] = ({"text": "going on", "tool": "list_files"}, {"delay": 600, "text": "never"})
# An editor's handler for an agent's request by method; it raises `Refused` to refuse.
Answer = Callable[[Json], Awaitable[Json]]


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str = "No", data: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Frame:
    """One message; `ours` if this side sent it."""

    ours: bool
    json: Json

    @property
    def method(self) -> str:
        return self.json.get("method", "")


async def outcome(waiting: asyncio.Future[Json], seconds: float = START_SECONDS) -> Json:
    """The result of a running request; raises `Refused` if it is an error."""
    async with asyncio.timeout(seconds):
        frame = await waiting
    if "error" in frame:
        error = frame["error"]
        raise Refused(error["code"], error["message"], error.get("data"))
    return frame["result"]


def prompt(session_id: str, said: str | Sequence[Json], **more: Any) -> Json:
    blocks = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
    return {"sessionId": session_id, "prompt": blocks, **more}


def script(*steps: Json) -> str:
    """A message that makes the offline model do exactly this."""
    return f"@@{json.dumps(steps)}@@"


def update_in(frame: Frame) -> Json:
    return frame.json["params"]["update"] if frame.method == "session/update" else {}


def choosing(option: str) -> Answer:
    """A person who always makes this choice when asked for permission."""

    async def choose(params: Json) -> Json:
        offered = {one["kind"]: one["optionId"] for one in params["options"]}
        return {"outcome": {"outcome": "selected", "optionId": offered[option]}}

    return choose


ALLOW = choosing("allow_once")
REJECT = choosing("reject_once")
