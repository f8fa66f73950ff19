"""Cases of servers: manifests and entries of every shape, and which server gets which token."""

import json
from itertools import product
from types import SimpleNamespace
from typing import Any

from tests.agent365_sdk.cases import (
    DEVELOPMENT,
    MANIFEST,
    NONE,
    PRODUCTION,
    TYPED,
    Case,
    Exchanging,
    Listing,
    Option,
    Refusal,
    manifest,
    same,
    showing,
    turn,
)
from tests.agent365_sdk.relay import Relayed, RelayedAnswer

# Sources of servers: manifests and answers of every shape, with entries of every kind


JSON = (("content-type", "application/json"),)
BOM = b"\xef\xbb\xbf"
MAIL = manifest({"mcpServerName": "mail"})

# The fixes that a manifest shows, and those that the same bytes show as an answer.
DOCUMENTS = (
    (Option("an object", MAIL), NONE),
    (Option("no key", b"{}"), NONE),
    (Option("not a list", b'{"mcpServers": {}}'), NONE),
    (Option("null as list", b'{"mcpServers": null}'), NONE),
    (Option("an empty list", b'{"mcpServers": []}'), NONE),
    (Option("a bare list", b'[{"mcpServerName": "mail"}]'), NONE),
    (Option("a key that is said twice", b'{"mcpServers": [], "mcpServers": [{"mcpServerName": "mail"}]}'), NONE),
    (Option("NaN", b'{"mcpServers": [NaN]}'), NONE),
    (Option("spaces around", b" \n" + MAIL + b"\n "), NONE),
    (Option("not JSON", b"{", TYPED), TYPED),
    (Option("more behind it", MAIL + b"x", TYPED), TYPED),
    (Option("a NUL", b"\0", TYPED), TYPED),
    (Option("nothing", b"", TYPED), NONE),
    (Option("null", b"null", TYPED), NONE),
    (Option("a number", b"5", TYPED), NONE),
    (Option("true", b"true", TYPED), NONE),
    (Option("text", b'"servers"', frozenset({"manifest-shape"})), NONE),
    (Option("text that is the key", b'"mcpServers"', TYPED), NONE),
    (Option("a list with the key", b'["mcpServers"]', frozenset({"manifest-shape"})), NONE),
    (Option("a BOM", BOM + MAIL, frozenset({"bom"})), frozenset({"bom"})),
    (Option("nested too deeply", b"[" * 200_000, TYPED), TYPED),
    (Option("a huge number", b"[" + b"1" * 5000 + b"]", TYPED), TYPED),
    (Option("Latin-1", b'[{"mcpServerName": "\xe9"}]', TYPED), frozenset({"charsets"})),
    (Option("UTF-16", '[{"mcpServerName": "mail"}]'.encode("utf-16"), TYPED), TYPED | {"charsets"}),
)


def documents() -> tuple[Case, ...]:
    shapes = [it for it, _ in DOCUMENTS]
    places = {"a manifest": MANIFEST, "a manifest above": f"../{MANIFEST}"}
    return (
        Case("no manifest", environment=DEVELOPMENT),
        Case("two manifests", environment=DEVELOPMENT, files={MANIFEST: manifest(), f"../{MANIFEST}": MAIL}),
        *(
            Case(f"{place} with {it.name}", Listing(), it.fixes, DEVELOPMENT, {path: it.value})
            for (place, path), it in product(places.items(), shapes)
        ),
        *(
            Case(f"an answer with {it.name}", Listing(), shown, answers=(RelayedAnswer(200, it.value, JSON),))
            for it, shown in DOCUMENTS
        ),
    )


NAMED = "mcpServerName"
UNIQUE = "mcpServerUniqueName"
LATTER = "encoded-names"
SHAPES = (
    *same(
        {
            "a number": 5,
            "null": None,
            "text": "mail",
            "a list": [],
            "an empty object": {},
            "a name": {NAMED: "mail"},
            "both names": {NAMED: "mail", UNIQUE: "mcp_Mail"},
            "an empty name": {NAMED: "", UNIQUE: "mcp_Mail"},
            "a name of spaces": {NAMED: " ", UNIQUE: "mcp_Mail"},
            "a name that is a number": {NAMED: 5, UNIQUE: "mcp_Mail"},
            "a unique name that is a number": {NAMED: "mail", UNIQUE: 5},
            "an empty unique name": {NAMED: "mail", UNIQUE: ""},
            "a unique name of spaces": {NAMED: "mail", UNIQUE: " "},
            "a key in other letters": {"MCPServerName": "mail"},
            "more keys": {NAMED: "mail", "headers": {"a": "b"}, "extra": [1]},
            "an address": {NAMED: "mail", "url": "https://mail.example/mcp"},
            "an address in capitals": {NAMED: "mail", "url": "HTTPS://mail.example/mcp"},
            "an address with a query": {NAMED: "../mail", "url": "https://mail.example/mcp?x=1"},
            "an empty address": {NAMED: "mail", "url": ""},
            "an address that is null": {NAMED: "mail", "url": None},
            "an address that is a number": {NAMED: "mail", "url": 5},
            "a publisher": {NAMED: "mail", "publisher": "me"},
            "an empty publisher": {NAMED: "mail", "publisher": ""},
            "a publisher that is a number": {NAMED: "mail", "publisher": 5},
            "a publisher that is an object": {NAMED: "mail", "publisher": {"a": None}},
            "an id that is a number": {NAMED: "mail", "id": 5},
        }
    ),
    *showing(
        "unique-names", {"only a unique name": {UNIQUE: "mcp_Mail"}, "null as name": {NAMED: None, UNIQUE: "mcp"}}
    ),
    *showing(
        LATTER,
        {
            "spaces around a name": {NAMED: " mail "},
            "letters of others": {NAMED: "caf\u00e9"},
            "a way up and a query": {NAMED: "../x?y=1"},
            "a slash": {NAMED: "a/b"},
            "a line break": {NAMED: "a\nb"},
            "a NUL": {NAMED: "a\0b"},
            "an equals sign": {NAMED: "a=b"},
            "only dots": {NAMED: ".."},
            "a name that is too long": {NAMED: "a" * 257},
        },
    ),
    *showing(
        "unusable-urls",
        {
            "an address of spaces": {NAMED: "mail", "url": " "},
            "an address without scheme": {NAMED: "mail", "url": "mail.example/mcp"},
            "a path alone": {NAMED: "mail", "url": "/mcp"},
            "another scheme": {NAMED: "mail", "url": "ftp://mail.example"},
            "a script": {NAMED: "mail", "url": "javascript:alert(1)"},
            "a login": {NAMED: "mail", "url": "https://user:secret@mail.example/mcp"},
            "a space in it": {NAMED: "mail", "url": "https://mail.example/a b"},
            "a line break behind it": {NAMED: "mail", "url": "https://mail.example/\r\nx-evil: 1"},
            "an accent in it": {NAMED: "mail", "url": "https://mail.example/\u00e9"},
            "an open bracket": {NAMED: "mail", "url": "http://[::1"},
            "an address that is too long": {NAMED: "mail", "url": f"https://mail.example/{'a' * 2000}"},
        },
    ),
    *showing(
        "connections",
        {
            "an id": {NAMED: "mail", "id": "1"},
            "a status": {NAMED: "mail", "connectivityStatus": "Pending"},
            "where to connect": {NAMED: "mail", "allConnectionsUrl": "https://connect.example"},
            "what to connect": {NAMED: "mail", "missingConnectionsUrl": "https://connect.example"},
        },
    ),
)
# The name of its variable cannot be looked up, so the SDK fails there and our client does not.
HALF = {NAMED: "mail\ud800"}


def entries() -> tuple[Case, ...]:
    """Each kind between two usual servers: in a manifest, and in an answer of the platform."""

    def among(entry: object) -> bytes:
        return manifest({NAMED: "first"}, entry, {NAMED: "last"})

    return (
        *(Case(f"declared: {it.name}", Listing(), it.fixes, DEVELOPMENT, {MANIFEST: among(it.value)}) for it in SHAPES),
        *(Case(f"told: {it.name}", Listing(), it.fixes, answers=(_told(among(it.value)),)) for it in SHAPES),
        Case("declared: half a character", Listing(), frozenset({LATTER}), DEVELOPMENT, {MANIFEST: among(HALF)}),
        Case("told: half a character", Listing(), frozenset({LATTER}), answers=(_told(among(HALF)),)),
        Case("told twice", Listing(), answers=(_told(manifest({NAMED: "a"}, {NAMED: "a"})),)),
        Case("told in a bare list", Listing(), answers=(_told(json.dumps([{NAMED: "a"}, 5, {NAMED: "b"}]).encode()),)),
        Case("many", Listing(), answers=(_told(manifest(*({NAMED: f"s{number}"} for number in range(500)))),)),
    )


def _told(body: bytes) -> Relayed:
    """An answer from the local platform."""
    return Relayed({"status": 200, "body": body.decode(), "headers": dict(JSON)})


ENTRY_CASES = (*documents(), *entries())


# Tokens of servers: audiences and scopes, exchanges, and variables during development


SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1"
ABSENT = object()
FIRST_KIND = {
    "none": ABSENT,
    "null": None,
    "empty": "",
    "default": "default",
    "Default": "Default",
    "default with spaces": " DEFAULT ",
    "the shared one": SHARED,
    "in capitals": SHARED.upper(),
    "with spaces": f" {SHARED} ",
    "as address": f"api://{SHARED}",
    "as address in capitals": f"API://{SHARED.upper()}",
    "false": False,
}
SECOND_KIND = {
    "its own": "11111111-0000-0000-0000-000000000000",
    "its own in capitals": " API://ABCDEF00-0000-0000-0000-000000000000 ",
    "a space": " ",
    "a number": 5,
    "a list": ["a"],
    "text": "null",
    "the shared one and more": f"{SHARED}/x",
}
SCOPES = {
    "none": ABSENT,
    "null": None,
    "empty": "",
    "the text null": "NULL",
    "a scope": "Tools.ListInvoke.All",
    "a number": 5,
    "spaces": " ",
    "default": ".default",
}
OVERRIDES: tuple[dict[str, str], ...] = (
    {},
    {"MCP_PLATFORM_AUTHENTICATION_SCOPE": ""},
    {"MCP_PLATFORM_AUTHENTICATION_SCOPE": "api://other/.default"},
)
TURN = turn(id="activity")


def result(token: object) -> SimpleNamespace:
    return SimpleNamespace(token=token)


def honest(scope: str) -> SimpleNamespace:
    return result(f"for-{scope!r}")


def server(name: str, audience: object = ABSENT, scope: object = ABSENT) -> dict[str, Any]:
    said = {"mcpServerName": name, "audience": audience, "scope": scope}
    return {key: value for key, value in said.items() if value is not ABSENT}


def told(*servers: dict[str, Any]) -> tuple[Relayed, ...]:
    said = {"status": 200, "body": manifest(*servers).decode(), "headers": {"content-type": "application/json"}}
    return (Relayed(said),)


def exchanged(gives: object = honest) -> Listing:
    return Listing(turn=TURN, exchanging=Exchanging(gives), handler="AGENTIC")


def kinds() -> tuple[Case, ...]:
    """Every audience with every scope, with and without everything that an exchange needs."""
    audiences = {**FIRST_KIND, **SECOND_KIND}
    cases: list[Case] = []
    for (audience, said), (scope, wanted) in product(audiences.items(), SCOPES.items()):
        answers = told(server("mail", said, wanted), server("calendar"))
        name = f"audience {audience}, scope {scope}"
        shown = TYPED if audience in SECOND_KIND else NONE
        cases += [
            Case(name, exchanged(), answers=answers),
            Case(f"{name}, without context", Listing(), shown, answers=answers),
            Case(
                f"{name}, while developing",
                Listing(),
                NONE,
                {**DEVELOPMENT, "BEARER_TOKEN": "shared"},
                {MANIFEST: manifest(server("mail", said, wanted))},
            ),
        ]
    return tuple(cases)


def contexts() -> tuple[Case, ...]:
    """Each part of the context missing; each outcome of an exchange; one exchange for each scope."""
    parts = product((None, Exchanging(honest)), (None, "", "AGENTIC"), (None, TURN))
    second, first = told(server("mail", "own")), told(server("mail"))
    everything = [server(f"s{number}", audience, scope) for number, (audience, scope) in enumerate(_crowd())]
    return (
        *(
            Case(
                f"{bool(exchanging)}, {handler!r}, {bool(turned)}, {'own' if answers is second else 'shared'}",
                Listing(turn=turned, exchanging=exchanging, handler=handler),
                NONE if answers is first or (exchanging and handler is not None and turned) else TYPED,
                answers=answers,
            )
            for (exchanging, handler, turned), answers in product(parts, (first, second))
        ),
        *(
            Case(f"an exchange that gives {it.name}, {name}", exchanged(it.value), it.fixes, answers=answers)
            for it, (name, answers) in product(ENDINGS, {"shared": first, "own": second}.items())
        ),
        *(
            Case(f"many, scope {override}", exchanged(), NONE, {**PRODUCTION, **override}, answers=told(*everything))
            for override in OVERRIDES
        ),
        Case("several of the second kind without context", Listing(), TYPED, answers=told(*everything)),
        Case("no servers to exchange for", exchanged(), answers=told()),
    )


def _crowd() -> list[tuple[object, object]]:
    return [*product(("own", " OWN ", "other", ABSENT, "default", SHARED), ("a", "A", ABSENT)), ("own", "a")]


ENDINGS = (
    *same({"a token": result("token"), "an exception": Refusal("no"), "a ValueError": ValueError("no")}),
    *showing("typed-errors", {"None": None, "no token": result(None), "an empty token": result("")}),
    *showing(
        "bare-tokens",
        {"Bearer": result("Bearer token"), "bearer": result("bearer token"), "spaces around it": result(" token\n")},
    ),
    *showing(
        "unsendable-tokens",
        {
            "a line break": result("to\r\nken"),
            "an accent": result("tok\u00e9n"),
            "a number": result(5),
            "only the word": result("Bearer "),
            "only spaces": result("  "),
            "something without a token": SimpleNamespace(),
        },
    ),
    *showing("timeouts", {"a time-out": TimeoutError()}),
)

OWN = frozenset({"dev-tokens"})
DECLARED = (server("mail"), server("calendar"), server("files", "own"))
VARIABLES = (
    Option("none", {}),
    Option("the shared one", {"BEARER_TOKEN": "shared"}),
    Option("an empty one", {"BEARER_TOKEN": ""}),
    Option("with the word", {"BEARER_TOKEN": "Bearer shared"}),
    Option("with the word in small letters", {"BEARER_TOKEN": "bearer shared"}),
    Option("only the word", {"BEARER_TOKEN": "Bearer "}),
    Option("the first one's own", {"BEARER_TOKEN_MAIL": "mail"}, OWN),
    Option("the first one's own and the shared one", {"BEARER_TOKEN": "shared", "BEARER_TOKEN_MAIL": "mail"}, OWN),
    Option("the second one's own", {"BEARER_TOKEN_CALENDAR": "calendar"}, OWN),
    Option("one of the second kind", {"BEARER_TOKEN_FILES": "files"}),
    Option("that and the shared one", {"BEARER_TOKEN_FILES": "files", "BEARER_TOKEN": "shared"}),
    Option("each one's own", {f"BEARER_TOKEN_{name}": name for name in ("MAIL", "CALENDAR", "FILES")}, OWN),
    Option("an empty one of its own", {"BEARER_TOKEN_MAIL": "", "BEARER_TOKEN": "shared"}),
    Option("small letters", {"bearer_token_mail": "mail", "BEARER_TOKEN_mail": "mail"}),
    Option("a tab after the word", {"BEARER_TOKEN": "Bearer\tshared"}, frozenset({"bare-tokens"})),
    Option("spaces around it", {"BEARER_TOKEN": " shared "}, frozenset({"bare-tokens"})),
    Option("a line break behind it", {"BEARER_TOKEN": "shared\n"}, frozenset({"bare-tokens"})),
    Option("a line break in it", {"BEARER_TOKEN": "sha\nred"}, frozenset({"unsendable-tokens"})),
    Option("an accent", {"BEARER_TOKEN": "shar\u00e9d"}, frozenset({"unsendable-tokens"})),
)


def variables() -> tuple[Case, ...]:
    files = {MANIFEST: manifest(*DECLARED)}
    return (
        *(Case(f"variables: {it.name}", Listing(), it.fixes, {**DEVELOPMENT, **it.value}, files) for it in VARIABLES),
        *(
            Case(f"variables in production: {it.name}", Listing(), NONE, {**PRODUCTION, **it.value}, files)
            for it in VARIABLES
        ),
        Case(
            "an exchange while developing",
            exchanged(),
            NONE,
            {**DEVELOPMENT, "BEARER_TOKEN": "shared"},
            files,
        ),
    )


AUDIENCE_CASES = (*kinds(), *contexts(), *variables())
