"""What goes over the wire as tests write it, and the schema that every frame is held against."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import jsonschema

from tests.editors import node
from tests.support.desk import START_SECONDS

# Holds what an agent sends against the schema that the protocol's own SDK ships.


Json = Mapping[str, Any]
REQUEST, NOTIFICATION, RESPONSE = "Request", "Notification", "Response"
# An agent asks and tells its client; what it answers was asked of an agent.
SIDES = {REQUEST: "client", NOTIFICATION: "client", RESPONSE: "agent"}
BOTH_SIDES = "protocol"
EXTENSION = "_"
OPEN = "_meta"


class Problem(Protocol):
    """Where something is wrong, and what."""

    json_path: str
    message: str


class Validator(Protocol):
    """The library's, as far as its types are known."""

    def is_valid(self, instance: object) -> bool: ...

    def iter_errors(self, instance: object) -> Iterable[Problem]: ...


def check_sent(frame: Json) -> None:
    """A request or notification of an agent's."""
    assert frame["jsonrpc"] == "2.0", frame
    assert set(frame) <= {"jsonrpc", "id", "method", "params"}, f"more than a request has: {frame}"
    kind = REQUEST if "id" in frame else NOTIFICATION
    if not frame["method"].startswith(EXTENSION):
        _check(definition(kind, frame["method"]), frame.get("params", {}), frame)
    if frame["method"] == "session/update":
        check_update(frame["params"]["update"])


def check_answer(method: str, frame: Json) -> None:
    """What an agent answered a request with this method."""
    assert frame["jsonrpc"] == "2.0", frame
    assert set(frame) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), f"not one of both: {frame}"
    if "error" in frame:
        check_error(frame["error"])
    elif not method.startswith(EXTENSION):
        _check(definition(RESPONSE, method), frame["result"], frame)


def check_error(error: Json) -> None:
    """One line and a number: the schema asks for less."""
    _check("Error", error, error)
    assert error["message"].strip(), f"an error that says nothing: {error}"
    assert error["message"].splitlines() == [error["message"]], f"an error of several lines: {error}"


def check_update(update: Json) -> None:
    """What is told of a session, without anything that its kind does not have."""
    kind = update.get("sessionUpdate", "")
    assert kind in _updates(), f"no such update: {update}"
    _matches(_validator_of(kind), update, update)
    _nothing_more(update, frozenset(_properties(_updates()[kind])))


def definition(kind: str, method: str) -> str:
    """The name of what a method's params or result are to be."""
    named = _by_method()
    name = named.get((kind, SIDES[kind], method)) or named.get((kind, BOTH_SIDES, method))
    assert name is not None, f"the protocol has no {kind.lower()} {method} of an agent's"
    return name


def unknown_keys(name: str, value: Json) -> set[str]:
    """Keys that a definition does not have, `_meta` aside."""
    return set(value) - _keys(name) - {OPEN}


def _check(name: str, value: Any, frame: Json) -> None:
    _matches(_validator(name), value, frame)
    _nothing_more(value, _keys(name))


def _nothing_more(value: Json, allowed: frozenset[str]) -> None:
    more = set(value) - allowed - {OPEN}
    assert not more, f"{sorted(more)} belong under _meta: {value}"


def _matches(validator: Validator, value: Any, frame: Json) -> None:
    # Asking whether is much quicker than asking why, and the answer is nearly always yes.
    if not validator.is_valid(value):
        why = "; ".join(f"{problem.json_path}: {problem.message}" for problem in validator.iter_errors(value))
        raise AssertionError(f"{why[:2000]}\nin {json.dumps(frame)}")


@cache
def _definitions() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(node.schema().read_text())["$defs"]
    # `check_update` looks at it, knowing its kind; to try all kinds takes six times as long.
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


# What goes over the wire, as tests write and read it.


PERMISSION = "session/request_permission"
STOPS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
Id = int | str
# What an agent does that has said something and is not done for a long time.
GOING_ON: tuple[Json, ...] = ({"text": "going on", "tool": "list_files"}, {"delay": 600, "text": "never"})
# What an editor does when its agent asks it by a method; raises `Refused` where it will not.
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
    """One message; `ours` where this side sent it."""

    ours: bool
    json: Json

    @property
    def method(self) -> str:
        return self.json.get("method", "")


async def outcome(waiting: asyncio.Future[Json], seconds: float = START_SECONDS) -> Json:
    """What a request under way comes to; `Refused` where that is an error."""
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
    """Words that make the offline model do exactly this."""
    return f"@@{json.dumps(steps)}@@"


def update_in(frame: Frame) -> Json:
    return frame.json["params"]["update"] if frame.method == "session/update" else {}


def choosing(option: str) -> Answer:
    """A person who always chooses this, when asked for permission."""

    async def choose(params: Json) -> Json:
        offered = {one["kind"]: one["optionId"] for one in params["options"]}
        return {"outcome": {"outcome": "selected", "optionId": offered[option]}}

    return choose


ALLOW = choosing("allow_once")
REJECT = choosing("reject_once")
