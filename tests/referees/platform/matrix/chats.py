"""Chats: all that is looked at before one is sent, and all that one can hold."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from types import SimpleNamespace
from typing import Any

from tests.referees.platform.cases import DEVELOPMENT, NONE, PRODUCTION, Case, Chat
from tests.referees.platform.matrix.ids import REAL
from tests.referees.platform.matrix.making import TYPED, turn

HALF = "half a character"
NOW = datetime(2026, 11, 18, 9, 30, 5, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "none": None,
    "empty": "",
    "spaces": "  ",
    "a line break": "\n",
    "a number": 5,
    "true": True,
    "a list": [],
    "text": "text",
    "letters of others": "caf\u00e9 \u6f22 \U0001f600 \u2028",
    "control characters": "a\0\x1b[0m\r\n",
    HALF: "a\ud800",
    "much": "a" * 100_000,
}
MESSAGES: dict[str, dict[str, Any]] = {
    "a message": {"role": "user", "content": "hi"},
    "all fields": {"id": "1", "role": "assistant", "content": "hi", "timestamp": NOW},
    "nulls": {"id": None, "role": "system", "content": "hi", "timestamp": None},
    "an empty id": {"id": "", "role": "user", "content": "hi"},
    "no zone": {"role": "user", "content": "hi", "timestamp": NOW.replace(tzinfo=None)},
    "another zone": {"role": "user", "content": "hi", "timestamp": NOW.astimezone(timezone(timedelta(hours=5.5)))},
    "microseconds": {"role": "user", "content": "hi", "timestamp": NOW.replace(microsecond=120)},
    "a time in text": {"role": "user", "content": "hi", "timestamp": "2026-11-18T09:30:05Z"},
    "a time in seconds": {"role": "user", "content": "hi", "timestamp": 1763458205},
    "no time": {"role": "user", "content": "hi", "timestamp": "soon"},
    "another role": {"role": "tool", "content": "hi"},
    "a role in capitals": {"role": "User", "content": "hi"},
    "no role": {"content": "hi"},
    "no content": {"role": "user"},
    "null content": {"role": "user", "content": None},
    "empty content": {"role": "user", "content": ""},
    "blank content": {"role": "user", "content": " \n"},
    "a number as content": {"role": "user", "content": 5},
    "a number as id": {"id": 5, "role": "user", "content": "hi"},
    "letters of others": {"role": "user", "content": "caf\u00e9 \u6f22 \U0001f600"},
    HALF: {"role": "user", "content": "a\ud800"},
    "more fields": {"role": "user", "content": "hi", "more": 1},
}


def turned(**said: Any) -> SimpleNamespace:
    usual = {"id": "message", "text": "hi", "conversation": SimpleNamespace(id="chat")}
    return turn(**{**usual, **said})


def on_conversation(said: object) -> SimpleNamespace:
    return turned(conversation=SimpleNamespace(id=said))


def refused(name: str) -> frozenset[str]:
    """Both send half a character, and the platform takes it from neither."""
    return TYPED if name == HALF else NONE


CASES = (
    Case("no turn", Chat(None)),
    Case("no messages", Chat(turned(), None)),
    Case("neither", Chat(None, None)),
    Case("an activity that is None", Chat(SimpleNamespace(activity=None))),
    Case("an activity that is 0", Chat(SimpleNamespace(activity=0))),
    Case("a conversation that is None", Chat(turned(conversation=None))),
    Case("an empty list", Chat(turned(), ())),
    *(
        Case(f"{field}: {name}", Chat(turned(**{field: value}), (MESSAGES["a message"],)), refused(name))
        for field, (name, value) in product(("id", "text"), VALUES.items())
    ),
    *(Case(f"conversation: {name}", Chat(on_conversation(value)), refused(name)) for name, value in VALUES.items()),
    *(Case(f"message: {name}", Chat(turned(), (said,)), refused(name)) for name, said in MESSAGES.items()),
    Case("many messages", Chat(turned(), tuple(list(MESSAGES.values())[:6]) * 50)),
    Case("the host's own activity", Chat(SimpleNamespace(activity=REAL))),
    Case("while developing", Chat(turned()), NONE, DEVELOPMENT),
    Case("with a token in a variable", Chat(turned()), NONE, {**PRODUCTION, "BEARER_TOKEN": "secret"}),
    Case("with an application name", Chat(turned()), NONE, {**PRODUCTION, "AGENT365_APPLICATION_NAME": "app"}),
)
