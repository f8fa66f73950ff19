"""Who `x-ms-agentid` names: turns, tokens and names of applications against each other."""

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

from microsoft_agents.activity import Activity
from microsoft_agents.hosting.core import TurnContext

from tests.referees.platform.cases import NONE, PRODUCTION, Case, Listing
from tests.referees.platform.forging import coded, token, with_claims
from tests.referees.platform.matrix.making import TYPED, turn

# What the SDK makes of an id that it cannot send.
CRASH = "<no request>"
UNUSABLE = "unusable-ids"
PLAIN = "plain-headers"
LONG = "a" * 257


@dataclass(frozen=True, slots=True)
class Source:
    """Where an id may come from: which one each side finds there, the fix if they differ, and what else it shows."""

    name: str
    value: Any
    sdk: str | None = None
    ours: str | None = None
    fix: str = ""
    also: frozenset[str] = NONE


def alike(name: str, value: Any, found: str | None = None, also: frozenset[str] = NONE) -> Source:
    return Source(name, value, found, found, also=also)


def broken(name: str, value: Any, ours: str | None = None) -> Source:
    return Source(name, value, CRASH, ours, UNUSABLE)


def sender(**said: Any) -> object:
    return turn(from_=SimpleNamespace(**said))


def blueprint(said: Any) -> object:
    return sender(agentic_app_blueprint_id=said)


def activity(**said: Any) -> Activity:
    usual = {"type": "message", "id": "activity", "conversation": {"id": "chat"}, "text": "hi"}
    return Activity.model_validate({**usual, **said})


REAL = activity(**{"from": {"id": "user", "agenticAppBlueprintId": "real"}})
NOBODY = activity(**{"from": {"id": "user"}})

TURNS = (
    alike("no turn", None),
    alike("a turn without activity", SimpleNamespace()),
    alike("an activity that is None", SimpleNamespace(activity=None)),
    alike("an activity that is text", SimpleNamespace(activity="text")),
    alike("a sender that is None", turn(from_=None)),
    alike("no sender", turn(id="activity")),
    alike("a sender without blueprint", sender(id="user")),
    alike("an empty blueprint", blueprint("")),
    alike("a sender that is a dict", turn(from_={"agentic_app_blueprint_id": "blueprint"})),
    alike("a blueprint", blueprint("blueprint"), "blueprint"),
    alike("a padded blueprint", blueprint(" blueprint "), "blueprint"),
    alike("the host's own activity without blueprint", SimpleNamespace(activity=NOBODY)),
    Source("the host's own activity", SimpleNamespace(activity=REAL), None, "real", "real-activities"),
    Source("the host's own turn", TurnContext(SimpleNamespace(), REAL), None, "real", "real-activities"),
    broken("a blueprint that is a number", blueprint(5)),
    broken("a blueprint that is an object", blueprint(object())),
    broken("a blueprint with a line break", blueprint("a\r\nx-evil: 1")),
    Source("a blueprint of spaces", blueprint("  "), "", None, UNUSABLE),
    Source("a blueprint with an accent", blueprint("é"), "é", None, UNUSABLE),
    Source("a blueprint that is too long", blueprint(LONG), LONG, None, UNUSABLE),
)

HEADLESS = coded(b'{"alg": "RS256"}')
LATIN = coded(b'{"appid": "\xe9"}')
TOKENS = (
    alike("no JWT", "token"),
    alike("all claims", token({"azp": "z", "appid": "a", "xms_par_app_azp": "x"}), "x"),
    alike("appid and azp", token({"azp": "z", "appid": "a"}), "a"),
    alike("azp", token({"azp": "z"}), "z"),
    alike("no claim", token({"sub": "somebody"})),
    alike("an empty claim", token({"xms_par_app_azp": "", "appid": "a"}), "a"),
    alike("a claim that is null", token({"appid": None, "azp": "z"}), "z"),
    alike("a claim that is 0", token({"appid": 0, "azp": "z"}), "z"),
    alike("a claim that is false", token({"appid": False, "azp": "z"}), "z"),
    alike("a claim that is an empty list", token({"appid": [], "azp": "z"}), "z"),
    alike("a padded claim", token({"appid": " a "}), "a"),
    alike("the longest claim", token({"appid": "a" * 256}), "a" * 256),
    alike("an expired token", token({"appid": "a", "exp": 1}), "a"),
    alike("a token of the future", token({"appid": "a", "nbf": 99999999999}), "a"),
    alike("an audience of somebody else", token({"appid": "a", "aud": "other"}), "a"),
    alike("alg none", token({"appid": "a"}, {"alg": "none"}, b""), "a"),
    alike("no alg", token({"appid": "a"}, {}), "a"),
    alike("a header that is a list", token({"appid": "a"}, [1])),
    alike("claims that are a list", token(["appid"])),
    alike("claims that are text", token("appid")),
    alike("claims that are no JSON", with_claims("appid")),
    alike("claims after a BOM", with_claims('\ufeff{"appid": "a"}'), "a"),
    alike("claims in Latin-1", f"{HEADLESS}.{LATIN}.c2ln"),
    alike("a claim that is said twice", with_claims('{"appid": "a", "appid": "b"}'), "b"),
    alike("claims with NaN", with_claims('{"appid": "a", "x": NaN}'), "a"),
    alike("claims with a huge number", with_claims(f'{{"appid": "a", "x": {"1" * 5000}}}')),
    alike("two parts", "a.b"),
    alike("four parts", f"{token({'appid': 'a'})}.x"),
    alike("five parts", "a.b.c.d.e"),
    alike("only dots", ".."),
    alike("no base64", "a!.b!.c"),
    broken("a claim that is a number", token({"appid": 123})),
    broken("a number before another claim", token({"appid": 123, "azp": "z"}), "z"),
    broken("a claim that is true", token({"appid": True, "azp": "z"}), "z"),
    broken("a claim that is a float", token({"appid": 1.5})),
    broken("a claim that is a list", token({"appid": ["a"]})),
    broken("a claim that is an object", token({"xms_par_app_azp": {"x": "y"}, "azp": "z"}), "z"),
    broken("a claim with a line break", token({"appid": "a\r\nx-evil: 1", "azp": "z"}), "z"),
    broken("a claim with a NUL", token({"appid": "a\0", "azp": "z"}), "z"),
    Source("a claim with a tab", token({"appid": "a\tb", "azp": "z"}), "a\tb", "z", UNUSABLE),
    Source("a claim of spaces", token({"appid": "  ", "azp": "z"}), "", "z", UNUSABLE),
    Source("a claim with an accent", token({"appid": "é", "azp": "z"}), "é", "z", UNUSABLE),
    Source("a claim that is half a character", with_claims('{"appid": "\\ud800", "azp": "z"}'), "", "z", UNUSABLE),
    Source("a claim that is too long", token({"appid": LONG, "azp": "z"}), LONG, "z", UNUSABLE),
    Source("a huge claim", token({"appid": "a" * 5000}), "a" * 5000, None, UNUSABLE),
    Source("a critical header", token({"appid": "a"}, {"alg": "RS256", "crit": ["x"]}), None, "a", "token-forms"),
    Source("a key id that is a number", token({"appid": "a"}, {"alg": "RS256", "kid": 5}), None, "a", "token-forms"),
    Source("a signature that is no base64", f"{token({'appid': 'a'}, signature=b'')}x", None, "a", "token-forms"),
    Source("a token that is very long", token({"appid": "a", "x": "y" * 17000}), "a", None, "token-forms"),
    Source("Bearer", f"Bearer {token({'appid': 'a'})}", None, "a", "bare-tokens", frozenset({"bare-tokens"})),
    Source("bearer", f"bearer {token({'azp': 'z'})}", None, "z", "bare-tokens", frozenset({"bare-tokens"})),
    Source("a padded token", f"  {token({'appid': 'a'})} ", None, "a", "bare-tokens", frozenset({"bare-tokens"})),
    alike("Bearer before no JWT", "Bearer token", None, frozenset({"bare-tokens"})),
)

NAME = "AGENT365_APPLICATION_NAME"
APPLICATIONS = (
    alike("no name", {}),
    alike("an empty name", {NAME: ""}),
    alike("a name", {NAME: "application"}, "application"),
    alike("a name with spaces", {NAME: "my application"}, "my application"),
    Source("a name with an accent", {NAME: "caf\u00e9"}, "café", "cafe", PLAIN),
    Source("a name with curly quotes", {NAME: "\u201capp\u201d"}, "“app”", '"app"', PLAIN),
    Source("a name that is too long", {NAME: LONG}, LONG, LONG[:256], PLAIN),
    Source("a name with a line break", {NAME: "a\nb"}, CRASH, "a b", PLAIN),
    Source("a name of spaces", {NAME: "  "}, "", None, PLAIN),
)

# None of these tokens can be sent: there is nothing to be compared but that.
UNSENDABLE = {
    "a line break": ("to\nken", TYPED),
    "a header of its own": ("token\r\nx-evil: 1", TYPED),
    "a NUL": ("to\0ken", TYPED),
    "half a character": ("token\ud800", TYPED),
    "an accent": ("tok\u00e9n", NONE),
    "only spaces": ("   ", NONE),
    "only the word": ("Bearer ", NONE),
}


def fixes(*sources: Source) -> frozenset[str]:
    """What a combination shows: the first source on which the sides differ, unless both stop before it."""
    shown = frozenset[str]().union(*(source.also for source in sources))
    taken = next((source for source in sources if source.sdk is not None), None)
    if taken is not None and taken.sdk == CRASH:
        # Nothing was sent that could show more.
        return frozenset({taken.fix})
    for source in sources:
        if source.sdk != source.ours:
            return shown | {source.fix}
        if source.sdk:
            break
    return shown


def case(turned: Source, carried: Source, named: Source) -> Case:
    return Case(
        f"{turned.name}, {carried.name}, {named.name}",
        Listing(token=carried.value, turn=turned.value),
        fixes(turned, carried, named),
        {**PRODUCTION, **named.value},
        sends={"x-ms-agentid": next((source.ours for source in (turned, carried, named) if source.ours), None)},
    )


CASES = (
    *(case(turned, carried, APPLICATIONS[0]) for turned, carried in product(TURNS, TOKENS)),
    *(case(TURNS[0], carried, named) for carried, named in product(TOKENS, APPLICATIONS[1:])),
    *(case(turned, TOKENS[0], named) for turned, named in product(TURNS[1:], APPLICATIONS[1:])),
    *(
        Case(f"a token with {name}", Listing(token=text), frozenset({"unsendable-tokens"}) | more)
        for name, (text, more) in UNSENDABLE.items()
    ),
    Case(
        "a token that ends with a line break",
        Listing(token=f"{token({'appid': 'a'})}\n"),
        frozenset({"bare-tokens"}),
    ),
)
