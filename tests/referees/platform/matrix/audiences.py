"""Which token goes to which server: audiences and scopes, exchanges, and variables while developing."""

from itertools import product
from types import SimpleNamespace
from typing import Any

from tests.referees.platform.cases import DEVELOPMENT, MANIFEST, NONE, PRODUCTION, Case, Exchanging, Listing, Refusal
from tests.referees.platform.matrix.making import TYPED, Option, manifest, same, showing, turn
from tests.referees.platform.relay import Relayed

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
    """Every audience with every scope, with all that an exchange needs and without."""
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
    """Each part of the context missing; each way in which an exchange can end; one exchange a scope."""
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


CASES = (*kinds(), *contexts(), *variables())
