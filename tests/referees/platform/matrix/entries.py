"""What servers are made of: manifests and answers of every shape, and entries of every kind in both."""

import json
from itertools import product

from tests.referees.platform.cases import DEVELOPMENT, MANIFEST, NONE, Case, Listing
from tests.referees.platform.matrix.making import TYPED, Option, manifest, same, showing
from tests.referees.platform.relay import Relayed, RelayedAnswer

JSON = (("content-type", "application/json"),)
BOM = b"\xef\xbb\xbf"
MAIL = manifest({"mcpServerName": "mail"})

# What a manifest shows, and what the same bytes show as an answer.
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
# The name of its variable cannot be looked up, so that the SDK fails there and not here.
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
    """An answer that the local platform gives."""
    return Relayed({"status": 200, "body": body.decode(), "headers": dict(JSON)})


CASES = (*documents(), *entries())
