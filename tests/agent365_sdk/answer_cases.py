"""Cases of answers: statuses, bodies, redirects, dropped connections and time-outs; and of sent chats."""

import gzip
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from types import SimpleNamespace
from typing import Any

from tests.agent365_sdk.cases import DEVELOPMENT, NONE, PRODUCTION, TYPED, Case, Chat, Listing, manifest, turn
from tests.agent365_sdk.relay import Answer, HungUp, Relayed, RelayedAnswer, Silent
from tests.agent365_sdk.request_cases import REAL

# Answers of the platform: statuses, bodies, charsets, redirects, dropped connections and time-outs


MAIL = manifest({"mcpServerName": "mail"})
CHAT = Chat(
    turn(id="message", text="hi", conversation=SimpleNamespace(id="chat")), ({"role": "user", "content": "hi"},)
)
CALLS = {"listing": Listing(), "chat": CHAT}
STATUSES = (
    201,
    202,
    203,
    204,
    206,
    300,
    304,
    400,
    401,
    403,
    404,
    408,
    409,
    418,
    422,
    429,
    500,
    501,
    502,
    503,
    504,
    599,
)
BODIES = {
    "nothing": "",
    "text": "no",
    "JSON": '{"error": "no"}',
    "servers": MAIL.decode(),
    "letters of others": "caf\u00e9 \u6f22",
    "lines": "a\r\nb\n",
    "2000 characters": "a" * 2000,
}
SOON = 0.25
MIB = 1024 * 1024


def statuses() -> tuple[Case, ...]:
    """Every status with every body, at both endpoints, from the local platform itself."""
    return tuple(
        Case(f"{call}: {status} with {name}", CALLS[call], TYPED, answers=(_fault(status, body),))
        for call, status, (name, body) in product(CALLS, STATUSES, BODIES.items())
    )


def _fault(status: int, body: str, **headers: str) -> Relayed:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return Relayed({"status": status, "body": body, "headers": said})


def redirects() -> tuple[Case, ...]:
    there = {name: {"location": place} for name, place in {"nearby": "/elsewhere", "a way up": "../x"}.items()}
    cases = [
        Case(
            f"{call}: {status} {name}",
            CALLS[call],
            frozenset({"redirects"}),
            answers=(_fault(status, "moved", **where), RelayedAnswer(200, MAIL)),
        )
        for call, status, (name, where) in product(CALLS, (301, 302, 303, 307, 308), there.items())
    ]
    cases += [
        Case(f"{call}: {status} to nowhere", CALLS[call], TYPED, answers=(_fault(status, "moved"),))
        for call, status in product(CALLS, (301, 302, 303, 307, 308))
    ]
    cases += [
        Case(
            f"{call}: round and round",
            CALLS[call],
            TYPED | {"redirects"},
            answers=(_fault(302, "moved", location="/agents/v2/app/mcpServers"),),
        )
        for call in ("listing",)
    ]
    return tuple(cases)


def again() -> tuple[Case, ...]:
    """With the default retries of our client."""
    shown = frozenset({"retries"})
    passing = {str(status): _fault(status, "later") for status in (429, 502, 503, 504)}
    passing["429 with a time"] = _fault(429, "later", retry_after="0")
    firsts: dict[str, tuple[Answer, ...]] = {name: (fault, Relayed()) for name, fault in passing.items()}
    firsts["twice 503"] = (_fault(503, ""), _fault(503, ""), Relayed())
    firsts["a broken answer"] = (RelayedAnswer(200, b"[", claimed=9), Relayed())
    return (
        *(Case(f"{name}, then all is well", Listing(), shown, answers=it, retries=None) for name, it in firsts.items()),
        Case("503 for good", Listing(), shown | TYPED, answers=(_fault(503, "no"),), retries=None),
        Case("a platform that hangs up", Listing(), shown | TYPED, answers=(HungUp(),), retries=None),
        Case("a platform that hangs up once", Listing(), NONE, answers=(HungUp(), Relayed()), retries=None),
        Case("500 is not tried again", Listing(), TYPED, answers=(_fault(500, "no"), Relayed()), retries=None),
        Case(
            "a long wait is not waited for",
            Listing(),
            TYPED,
            answers=(_fault(429, "no", retry_after="3600"),),
            retries=None,
        ),
        Case(
            "a chat that was heard is not sent again", CHAT, TYPED, answers=(_fault(503, "no"), Relayed()), retries=None
        ),
        Case("nor one that may have been", CHAT, TYPED, answers=(HungUp(), Relayed()), retries=None),
    )


def breaks() -> tuple[Case, ...]:
    nowhere = {**PRODUCTION, "MCP_PLATFORM_ENDPOINT": "http://127.0.0.1:1"}
    return (
        *(Case(f"{call}: nobody there", it, TYPED, nowhere) for call, it in CALLS.items()),
        Case("listing: broken off", Listing(), TYPED, answers=(RelayedAnswer(200, MAIL[:9], claimed=99),)),
        Case("listing: a refusal broken off", Listing(), TYPED, answers=(RelayedAnswer(500, b"no", claimed=99),)),
        Case("listing: no HTTP", Listing(), TYPED, answers=(RelayedAnswer(99),)),
        Case("chat: hung up", CHAT, TYPED, answers=(HungUp(),)),
        Case("chat: broken off", CHAT, NONE, answers=(RelayedAnswer(200, b"x", claimed=99),)),
        Case("chat: a refusal broken off", CHAT, TYPED, answers=(RelayedAnswer(500, b"x", claimed=99),)),
        *(
            Case(f"{call}: silence", it, TYPED | {"timeouts"}, answers=(Silent(),), seconds=SOON)
            for call, it in CALLS.items()
        ),
        Case(
            "listing: half an answer",
            Listing(),
            TYPED | {"timeouts"},
            answers=(Silent(after_head=True),),
            seconds=SOON,
        ),
        Case("chat: half an answer", CHAT, NONE, answers=(Silent(after_head=True),), seconds=SOON),
    )


def charsets() -> tuple[Case, ...]:
    """Content types of answers, and bytes that do not match them."""
    good = '[{"mcpServerName": "mail", "publisher": "caf\u00e9"}]'
    bad = b'[{"mcpServerName": "mail", "publisher": "\xff"}]'
    known = {"utf-8": "utf-8", '"utf-8"': "utf-8", "latin-1": "latin-1", "utf-16": "utf-16", "": "utf-8", "x": "utf-8"}
    strange, shown = ("hex", "idna", "undefined"), frozenset({"charsets"})
    typed = "application/json; charset={}"
    return (
        *(
            Case(f"charset {name!r}", Listing(), NONE, answers=(_said(200, good.encode(codec), typed.format(name)),))
            for name, codec in known.items()
        ),
        Case("text/html", Listing(), NONE, answers=(_said(200, good.encode(), "text/html"),)),
        Case("no type", Listing(), NONE, answers=(RelayedAnswer(200, good.encode()),)),
        *(
            Case(f"charset {name!r}", Listing(), shown, answers=(_said(200, good.encode(), typed.format(name)),))
            for name in strange
        ),
        *(
            Case(f"not {name}", Listing(), shown, answers=(_said(200, bad, typed.format(name)),))
            for name in ("utf-8", "x", "ascii", "utf-7", *strange)
        ),
        *(
            Case(
                f"{call}: a refusal that is not {name}",
                CALLS[call],
                TYPED | shown,
                answers=(_said(400, b"\xff", typed.format(name)),),
            )
            for call, name in product(CALLS, ("utf-8", *strange))
        ),
    )


def _said(status: int, body: bytes, kind: str) -> RelayedAnswer:
    return RelayedAnswer(status, body, (("content-type", kind),))


def sizes() -> tuple[Case, ...]:
    packed, bound, kept = (("content-encoding", "gzip"),), frozenset({"bounded-bodies"}), frozenset({"no-compression"})
    secret = Listing(token="very-secret")
    echo = "who is very-secret?"
    return (
        Case("a huge answer", Listing(), bound, answers=(RelayedAnswer(200, b"[" + b" " * (9 * MIB) + b"]"),)),
        Case("a huge refusal", Listing(), bound | TYPED, answers=(RelayedAnswer(500, b"a" * (9 * MIB)),)),
        Case("a huge answer to a chat", CHAT, NONE, answers=(RelayedAnswer(200, b"a" * (9 * MIB)),)),
        *(
            Case(f"{call}: a long refusal", it, bound | TYPED, answers=(_fault(500, "a" * 2001),))
            for call, it in CALLS.items()
        ),
        Case("compressed", Listing(), kept, answers=(RelayedAnswer(200, gzip.compress(MAIL), packed),)),
        Case("said to be compressed", Listing(), kept | TYPED, answers=(RelayedAnswer(200, MAIL, packed),)),
        Case("a compressed chat", CHAT, NONE, answers=(RelayedAnswer(200, gzip.compress(MAIL), packed),)),
        *(
            Case(
                f"{call}: a compressed refusal",
                it,
                kept | TYPED,
                answers=(RelayedAnswer(400, gzip.compress(b"no"), packed),),
            )
            for call, it in CALLS.items()
        ),
        Case(
            "not compressed, and says so",
            Listing(),
            NONE,
            answers=(RelayedAnswer(200, MAIL, (("content-encoding", "identity"),)),),
        ),
        Case("a token that is repeated", secret, TYPED | {"redacted-tokens"}, answers=(_fault(401, echo),)),
        Case(
            "a token at the end of what is shown",
            secret,
            TYPED | {"redacted-tokens"},
            answers=(_fault(401, "a" * 1993 + "very-secret"),),
        ),
    )


ANSWER_CASES = (*statuses(), *redirects(), *again(), *breaks(), *charsets(), *sizes())


# Chats: everything that is checked before sending, and everything that a chat can contain


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
    """Both send half a character, and the platform rejects it from both."""
    return TYPED if name == HALF else NONE


CHAT_CASES = (
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
